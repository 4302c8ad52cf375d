# nsp_add_plugin(KIND NAME SOURCES file ... [LIBS library ...])
#
# A plug-in of nsp: the target nsp_KIND_NAME, built as libnsp_KIND_NAME.so in BUILD/lib/nsp (a folder for --plugin-path or
# NSP_PLUGIN_PATH) and installed into PREFIX/lib/nsp, where a program in PREFIX/bin finds it. KIND is sync, parallel, optimizer,
# memory or comm. KIND and NAME must be those of the NSP_PLUGIN line in SOURCES; it writes the note by which nsp knows the module.
# nsp's own plug-ins are built by this function, and after find_package(nsp) anybody's.

function(nsp_add_plugin kind name)
  cmake_parse_arguments(PARSE_ARGV 2 A "" "" "SOURCES;LIBS")
  set(kinds sync parallel optimizer memory comm)
  if(NOT kind IN_LIST kinds)
    list(JOIN kinds ", " known)
    message(FATAL_ERROR "nsp_add_plugin: '${kind}' is not a kind of plug-in that is built with it. The kinds are ${known}; "
      "a compute backend is a C table with kernels and is built like the ones in nsp's folder kernels.")
  endif()
  if(NOT name MATCHES "^[a-z0-9_]+$")
    message(FATAL_ERROR "nsp_add_plugin: the name '${name}' has other characters than a-z, 0-9 and _. It becomes a file name and the section of "
      "the plug-in's options. Choose another name, here and in the NSP_PLUGIN line.")
  endif()
  if(NOT A_SOURCES OR A_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "nsp_add_plugin(${kind} ${name}): sources are missing or in the wrong place (${A_UNPARSED_ARGUMENTS}). "
      "Write nsp_add_plugin(${kind} ${name} SOURCES plugin.cpp).")
  endif()
  # The interfaces are C++ classes, so nsp refuses a module of another compiler. Said here, it costs no build. (NSP_COMPILER: only in
  # the installed package.)
  string(REGEX MATCH "^[0-9]+" major "${CMAKE_CXX_COMPILER_VERSION}")
  if(NSP_COMPILER AND NOT NSP_COMPILER STREQUAL "${CMAKE_CXX_COMPILER_ID} ${major}")
    message(FATAL_ERROR "nsp_add_plugin(${kind} ${name}): this nsp was built with ${NSP_COMPILER}, and this project uses ${CMAKE_CXX_COMPILER_ID} ${major}. "
      "nsp would refuse the module. Choose the same compiler with CMAKE_CXX_COMPILER, or build nsp with this one.")
  endif()

  set(target nsp_${kind}_${name})
  add_library(${target} MODULE ${A_SOURCES})
  target_link_libraries(${target} PRIVATE nsp::nsp ${A_LIBS})
  # What is missing shall be said by the linker, not when a job starts. (clang leaves the sanitizers' functions to the program.)
  if(NOT NSP_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,--no-undefined)
  endif()
  # The C++ standard is part of the stamp, so the surrounding project's must not leak in. nsp_plugin is the one symbol that a module shows.
  set_target_properties(${target} PROPERTIES
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${NSP_MODULE_DIR}
    INSTALL_RPATH "$ORIGIN/..")
  install(TARGETS ${target} LIBRARY DESTINATION ${NSP_MODULE_DIR})
endfunction()
