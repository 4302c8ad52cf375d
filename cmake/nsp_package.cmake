# What `cmake --install` lays down, and the package by which find_package(nsp) finds it, wherever it is moved to.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/nsp)
string(REGEX MATCH "^[0-9]+" compiler_major "${CMAKE_CXX_COMPILER_VERSION}")
set(NSP_COMPILER "${CMAKE_CXX_COMPILER_ID} ${compiler_major}")

set_target_properties(nsp_flags PROPERTIES EXPORT_NAME flags)
install(TARGETS nsp nsp_app nsp_flags EXPORT nsp_targets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT nsp_targets NAMESPACE nsp:: FILE nsp_targets.cmake DESTINATION ${package_dir})
configure_package_config_file(cmake/nsp_config.cmake.in ${PROJECT_BINARY_DIR}/package/nsp-config.cmake INSTALL_DESTINATION ${package_dir})
# The interfaces may change with every minor version, and the build stamp holds the whole version.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/nsp-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/package/nsp-config.cmake ${PROJECT_BINARY_DIR}/package/nsp-config-version.cmake
  ${PROJECT_SOURCE_DIR}/cmake/nsp_add_plugin.cmake
  DESTINATION ${package_dir})
