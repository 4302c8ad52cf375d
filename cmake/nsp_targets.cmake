# The kinds of target that nsp is made of. Everything outside kernels/ is built for the portable baseline.

add_library(nsp_flags INTERFACE)
target_compile_features(nsp_flags INTERFACE cxx_std_20)
target_include_directories(nsp_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/core/include>
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_options(nsp_flags INTERFACE $<BUILD_INTERFACE:-Wall;-Wextra;-Wno-missing-field-initializers>)
if(NSP_SANITIZE)
  # Targets with the property NSP_PLAIN, or in a directory with it, are linked to the sanitizer's library, but not watched themselves.
  define_property(TARGET PROPERTY NSP_PLAIN INHERITED)
  define_property(DIRECTORY PROPERTY NSP_PLAIN INHERITED)
  set(watched $<NOT:$<BOOL:$<TARGET_PROPERTY:NSP_PLAIN>>>)
  target_compile_options(nsp_flags INTERFACE
    $<BUILD_INTERFACE:-fno-omit-frame-pointer;$<${watched}:-fsanitize=${NSP_SANITIZE};-fno-sanitize-recover=undefined>>)
  target_link_options(nsp_flags INTERFACE $<BUILD_INTERFACE:-fsanitize=${NSP_SANITIZE}>)
endif()

# nsp_part(NAME SOURCES ... [LIBS ...]): a part of libnsp.so as an object library nsp_NAME, which unit tests may link alone.
function(nsp_part name)
  cmake_parse_arguments(A "" "" "SOURCES;LIBS" ${ARGN})
  add_library(nsp_${name} OBJECT ${A_SOURCES})
  target_link_libraries(nsp_${name} PUBLIC nsp_flags ${A_LIBS})
  set_property(GLOBAL APPEND PROPERTY NSP_PARTS nsp_${name})
endfunction()

# Compiling the tests would take most of the time of a build: GoogleTest's header comes precompiled, and they are optimised less
# than what they test. nsp_test_base is the program that the precompiled header belongs to.
function(nsp_test_compile target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(target STREQUAL nsp_test_base)
    target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/precompiled.hpp)
  elseif(NOT "${ARGN}" MATCHES "\\.c(;|$)")  # a program with C sources would need the header in C as well
    target_precompile_headers(${target} REUSE_FROM nsp_test_base)
  endif()
endfunction()

# nsp_test(NAME SOURCES ... [LIBS ...] [LABELS ...] [RANKS N] [TIMEOUT S] [ARGS ...])
# One GoogleTest program. With RANKS it is started by mpirun with that many processes (an own main is expected in SOURCES). Sanitizer
# builds leave out those with the label slow, and ThreadSanitizer's all that are neither unit, mpi nor threads.
function(nsp_test name)
  cmake_parse_arguments(A "" "RANKS;TIMEOUT" "SOURCES;LIBS;LABELS;ARGS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  nsp_test_compile(${name} ${A_SOURCES})
  if(NOT A_LIBS)
    set(A_LIBS nsp)
  endif()
  target_link_libraries(${name} PRIVATE nsp_flags ${A_LIBS} GTest::gtest)
  if(NOT A_RANKS)
    target_link_libraries(${name} PRIVATE GTest::gtest_main)
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests
    BUILD_RPATH "${CMAKE_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR}")
  if(NOT A_LABELS)
    set(A_LABELS unit)
  endif()
  if(NSP_SANITIZE AND ("slow" IN_LIST A_LABELS OR (NSP_SANITIZE STREQUAL "thread" AND NOT "${A_LABELS}" MATCHES "unit|mpi|threads")))
    set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 300)
  endif()
  if(A_RANKS)
    add_test(NAME ${name} COMMAND mpirun -np ${A_RANKS} $<TARGET_FILE:${name}> ${A_ARGS})
  else()
    set(A_RANKS 1)
    add_test(NAME ${name} COMMAND ${name} ${A_ARGS})
  endif()
  set(processors ${A_RANKS})
  if(processors GREATER 2)
    set(processors 2)
  endif()
  nsp_test_properties(${name} "${A_LABELS}" ${processors} ${A_TIMEOUT})
endfunction()

# What every test of nsp is run with: as root, oversubscribed, one compute thread a rank, modules from the build tree.
function(nsp_test_properties name labels processors timeout)
  set(env
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    NSP_PLUGIN_PATH=${CMAKE_BINARY_DIR}/${NSP_MODULE_DIR}
    NSP_TEST_BIN_DIR=${CMAKE_BINARY_DIR}/bin
    NSP_TEST_SOURCE_DIR=${PROJECT_SOURCE_DIR})
  if(NSP_SANITIZE STREQUAL "thread")
    math(EXPR timeout "${timeout} * 5")  # it makes programs that much slower
  endif()
  if(NSP_SANITIZE)
    # The libraries below MPI have no frame pointers, and their leaks are told by name; the slow way costs a factor of three.
    set(fast_unwind 1)
    if("mpi" IN_LIST labels)
      set(fast_unwind 0)
    endif()
    list(APPEND env
      ASAN_OPTIONS=fast_unwind_on_malloc=${fast_unwind}
      # LeakSanitizer itself crashes now and then when it looks into the thread-local storage of modules that were dlopened.
      LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp:print_suppressions=0:use_tls=0
      UBSAN_OPTIONS=print_stacktrace=1
      TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp:ignore_noninstrumented_modules=1:second_deadlock_stack=1
      OPENBLAS_NUM_THREADS=1)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" PROCESSORS ${processors} TIMEOUT ${timeout} ENVIRONMENT "${env}")
endfunction()
