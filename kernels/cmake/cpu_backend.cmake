# nsp_add_cpu_backend(ARCH): the module libnsp_backend_cpu_<arch>.so.

# What -march=<arch> may make the compiler emit: the bits of the note (NSP_CPU_* of nsp/abi.h), the list of features that
# the probe asks the processor for, and the level that decides which module is preferred.
function(nsp_cpu_features arch bits_out checks_out level_out)
  set(bits 0)
  set(checks "")
  set(level 1)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=${arch} -dM -E -x c++ /dev/null OUTPUT_VARIABLE macros RESULT_VARIABLE failed)
    if(failed)
      message(FATAL_ERROR "The compiler does not know -march=${arch}. NSP_CPU_ARCHS lists native, x86-64-v2, x86-64-v3 or x86-64-v4.")
    endif()
    # Macro of the compiler = name in __builtin_cpu_supports. Vector and bit-manipulation sets that code generation uses.
    set(pairs SSE3=sse3 SSSE3=ssse3 SSE4_1=sse4.1 SSE4_2=sse4.2 POPCNT=popcnt SSE4A=sse4a AVX=avx AVX2=avx2 FMA=fma FMA4=fma4 XOP=xop BMI=bmi
      BMI2=bmi2 GFNI=gfni AVX512F=avx512f AVX512VL=avx512vl AVX512BW=avx512bw AVX512DQ=avx512dq AVX512CD=avx512cd AVX512VBMI=avx512vbmi
      AVX512IFMA=avx512ifma AVX512VNNI=avx512vnni AVX512VBMI2=avx512vbmi2 AVX512BITALG=avx512bitalg AVX512VPOPCNTDQ=avx512vpopcntdq
      AVX512BF16=avx512bf16)
    foreach(pair IN LISTS pairs)
      string(REPLACE "=" ";" pair ${pair})
      list(GET pair 0 macro)
      list(GET pair 1 name)
      if(macros MATCHES "#define __${macro}__ 1")
        string(APPEND checks " NSP_NEED(\"${name}\")")
        set(has_${macro} ON)
      endif()
    endforeach()
    if(has_SSE4_2 AND has_POPCNT)
      math(EXPR bits "${bits} | 1")
      set(level 1)
    endif()
    if(has_AVX2 AND has_FMA AND has_BMI2)
      math(EXPR bits "${bits} | 2")
      set(level 2)
    endif()
    if(has_AVX512F AND has_AVX512BW AND has_AVX512DQ AND has_AVX512CD AND has_AVX512VL)
      math(EXPR bits "${bits} | 4")
      set(level 3)
    endif()
    if(has_AVX512BF16)
      math(EXPR bits "${bits} | 8")
    endif()
    if(has_AVX512VNNI)
      math(EXPR bits "${bits} | 16")
    endif()
  endif()
  set(${bits_out} ${bits} PARENT_SCOPE)
  set(${checks_out} "${checks}" PARENT_SCOPE)
  set(${level_out} ${level} PARENT_SCOPE)
endfunction()

function(nsp_add_cpu_backend arch)
  string(REPLACE "-" "_" suffix ${arch})
  set(module nsp_backend_cpu_${suffix})
  set(objects nsp_kernels_cpu_${suffix})

  nsp_cpu_features(${arch} NSP_MODULE_CPU_BITS NSP_MODULE_CPU_CHECKS level)
  # The widest set wins; of equal levels the module made for this very processor.
  math(EXPR NSP_MODULE_SCORE "${level} * 100")
  if(arch STREQUAL "native")
    math(EXPR NSP_MODULE_SCORE "${NSP_MODULE_SCORE} + 50")
  endif()
  set(NSP_MODULE_NAME "cpu_${suffix}")
  set(NSP_MODULE_ARCH "${arch}")
  set(generated ${CMAKE_CURRENT_BINARY_DIR}/${module})
  configure_file(cpu/module_config.h.in ${generated}/module_config.h @ONLY)

  # Everything that may hold instructions of the set.
  add_library(${objects} OBJECT
    cpu/backend.cpp cpu/device.cpp cpu/executor.cpp cpu/host_memory.cpp cpu/scratch.cpp
    ops/table.cpp ops/checks.cpp ops/op_checks.cpp ops/op_checks_elementwise.cpp
    ops/embedding.cpp ops/norm.cpp ops/column_sum.cpp ops/rope.cpp ops/attention_forward.cpp ops/attention_backward.cpp
    ops/activation.cpp ops/classifier.cpp ops/copy.cpp ops/reduce.cpp ops/random.cpp
    ops/elementwise.cpp ops/optimizer.cpp
    ops/matmul.cpp ops/matmul_table.cpp ops/packed_gemm.cpp ${NSP_GEMM_SOURCES})
  target_compile_options(${objects} PRIVATE -march=${arch} -Wall -Wextra -fno-gnu-unique -fno-math-errno $<$<NOT:$<CONFIG:Debug>>:-O3>)
  target_include_directories(${objects} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${NSP_INCLUDE_DIR} ${NSP_GEMM_INCLUDE_DIRS})
  target_link_libraries(${objects} PRIVATE Kokkos::kokkos Threads::Threads ${NSP_GEMM_LIBRARIES})

  # Descriptor and probe run before it is known that the processor has the set: no arch flags (not even those that an
  # architecture-bound Kokkos hands on), no LTO.
  set(descriptor nsp_descriptor_cpu_${suffix})
  add_library(${descriptor} OBJECT cpu/module.cpp)
  target_include_directories(${descriptor} PRIVATE ${generated} ${NSP_INCLUDE_DIR})
  target_compile_options(${descriptor} PRIVATE -Wall -Wextra -fno-lto)

  add_library(${module} MODULE $<TARGET_OBJECTS:${objects}> $<TARGET_OBJECTS:${descriptor}>)
  target_link_libraries(${module} PRIVATE Kokkos::kokkos Threads::Threads ${NSP_GEMM_LIBRARIES} ${CMAKE_DL_LIBS})
  target_link_options(${module} PRIVATE -Wl,--exclude-libs,ALL -Wl,--version-script=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/nsp_plugin.map -Wl,--as-needed)
  set_property(TARGET ${module} APPEND PROPERTY LINK_DEPENDS ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/nsp_plugin.map)
  set_target_properties(${module} ${objects} ${descriptor} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    INTERPROCEDURAL_OPTIMIZATION OFF)
  set_target_properties(${module} PROPERTIES LINKER_LANGUAGE CXX
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${NSP_MODULE_DIR})
  if(NSP_SANITIZE)
    target_compile_options(${objects} PRIVATE -fsanitize=${NSP_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=undefined)
    target_link_options(${module} PRIVATE -fsanitize=${NSP_SANITIZE})
  endif()
  install(TARGETS ${module} LIBRARY DESTINATION ${NSP_MODULE_DIR})
endfunction()

# Files whose ops promise the same bits on every backend: no contraction, IEEE divide and square root.
set_source_files_properties(ops/elementwise.cpp ops/optimizer.cpp PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=off;-fopenmp-simd")
# The others may contract and need not keep the order of floating-point traps.
set_source_files_properties(ops/embedding.cpp ops/norm.cpp ops/column_sum.cpp ops/rope.cpp ops/attention_forward.cpp ops/attention_backward.cpp
  ops/activation.cpp ops/classifier.cpp ops/reduce.cpp ops/random.cpp ops/matmul.cpp ops/packed_gemm.cpp
  PROPERTIES COMPILE_OPTIONS "-ffp-contract=fast;-fno-trapping-math;-fopenmp-simd")
# GCC 12 warns of its own AVX-512 intrinsics.
set_property(SOURCE ops/packed_gemm.cpp APPEND PROPERTY COMPILE_OPTIONS "$<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>")
