# The libraries behind matmul: a CBLAS (any; OpenBLAS is what the table of ops/matmul_table.cpp was measured with) and,
# where installed, oneDNN. Sets NSP_GEMM_SOURCES, _LIBRARIES and _INCLUDE_DIRS: a missing library leaves its file out.
find_package(BLAS QUIET)
find_path(NSP_CBLAS_INCLUDE_DIR cblas.h PATH_SUFFIXES openblas openblas-pthread cblas)
set(CMAKE_REQUIRED_LIBRARIES ${BLAS_LIBRARIES})
set(CMAKE_REQUIRED_INCLUDES ${NSP_CBLAS_INCLUDE_DIR})
include(CheckCXXSymbolExists)
if(BLAS_FOUND AND NSP_CBLAS_INCLUDE_DIR)
  check_cxx_symbol_exists(cblas_sgemm cblas.h NSP_HAVE_CBLAS)
endif()
unset(CMAKE_REQUIRED_LIBRARIES)
unset(CMAKE_REQUIRED_INCLUDES)
if(NOT NSP_HAVE_CBLAS)
  message(FATAL_ERROR "No BLAS with a C interface (cblas.h, cblas_sgemm) was found. Matrix products need one. "
    "Install libopenblas-dev or name another with BLA_VENDOR and CMAKE_PREFIX_PATH.")
endif()
set(NSP_GEMM_LIBRARIES ${BLAS_LIBRARIES})
set(NSP_GEMM_SOURCES ops/gemm_cblas.cpp)

# By library and header: the CMake package of Debian's oneDNN insists on OpenCL's development files. Each of our threads
# computes a tile of its own, so oneDNN must be told to stay on the caller's thread, which works for its OpenMP and
# sequential builds.
set(nsp_onednn "not used")
set(NSP_GEMM_INCLUDE_DIRS ${NSP_CBLAS_INCLUDE_DIR})
if(NSP_USE_ONEDNN)
  find_path(NSP_ONEDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
  find_library(NSP_ONEDNN_LIBRARY dnnl)
  find_package(OpenMP QUIET COMPONENTS CXX)
endif()
if(NSP_USE_ONEDNN AND NSP_ONEDNN_INCLUDE_DIR AND NSP_ONEDNN_LIBRARY AND OpenMP_CXX_FOUND)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_INCLUDES ${NSP_ONEDNN_INCLUDE_DIR})
  check_cxx_source_compiles("
    #include <oneapi/dnnl/dnnl_config.h>
    #if DNNL_CPU_RUNTIME != DNNL_RUNTIME_OMP && DNNL_CPU_RUNTIME != DNNL_RUNTIME_SEQ
    #error another threading
    #endif
    int main() { return 0; }" NSP_ONEDNN_THREADING_FITS)
  unset(CMAKE_REQUIRED_INCLUDES)
endif()
if(NSP_ONEDNN_THREADING_FITS)
  list(APPEND NSP_GEMM_LIBRARIES ${NSP_ONEDNN_LIBRARY} ${OpenMP_CXX_LIBRARIES})
  list(APPEND NSP_GEMM_SOURCES ops/gemm_onednn.cpp)
  list(APPEND NSP_GEMM_INCLUDE_DIRS ${NSP_ONEDNN_INCLUDE_DIR})
  set_source_files_properties(ops/gemm_onednn.cpp PROPERTIES COMPILE_OPTIONS "${OpenMP_CXX_FLAGS}")
  set(nsp_onednn "${NSP_ONEDNN_LIBRARY}")
else()
  list(APPEND NSP_GEMM_SOURCES ops/gemm_no_onednn.cpp)
endif()
message(STATUS "nsp kernels: CBLAS ${BLAS_LIBRARIES}, oneDNN ${nsp_onednn}")
