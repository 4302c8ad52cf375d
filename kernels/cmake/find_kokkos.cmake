# Kokkos 3.4 ... 5.x, installed or fetched. Sets NSP_KOKKOS_SHARED.
if(NSP_FETCH_KOKKOS)
  include(FetchContent)
  set(Kokkos_ENABLE_SERIAL ON CACHE BOOL "")
  set(Kokkos_ENABLE_OPENMP ON CACHE BOOL "")
  set(nsp_shared_before ${BUILD_SHARED_LIBS})
  set(BUILD_SHARED_LIBS OFF)
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)
  set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
  FetchContent_Declare(Kokkos
    URL https://github.com/kokkos/kokkos/releases/download/4.7.01/kokkos-4.7.01.tar.gz
    DOWNLOAD_EXTRACT_TIMESTAMP OFF)
  FetchContent_MakeAvailable(Kokkos)
  set(BUILD_SHARED_LIBS ${nsp_shared_before})
else()
  find_package(Kokkos QUIET)
  if(NOT Kokkos_FOUND)
    message(FATAL_ERROR "No Kokkos was found. The CPU kernels are written in it. Run setup.sh (it builds one into build/deps/kokkos), "
      "name one with Kokkos_ROOT or CMAKE_PREFIX_PATH, or set NSP_FETCH_KOKKOS=ON.")
  endif()
  if(Kokkos_VERSION VERSION_LESS 3.4 OR Kokkos_VERSION VERSION_GREATER_EQUAL 6)
    message(FATAL_ERROR "Kokkos ${Kokkos_VERSION} was found. The kernels are written for 3.4 to 5.x. Name another one with Kokkos_ROOT.")
  endif()
  # Debian's target names /usr/lib/include, which does not exist; the headers are in /usr/include/trilinos, as the
  # package's own variable says.
  get_target_property(nsp_kokkos_includes Kokkos::kokkos INTERFACE_INCLUDE_DIRECTORIES)
  if(nsp_kokkos_includes AND NOT EXISTS "${nsp_kokkos_includes}" AND EXISTS "${Kokkos_INCLUDE_DIRS}")
    set_target_properties(Kokkos::kokkos PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${Kokkos_INCLUDE_DIRS}")
  endif()
endif()

# Whether any library behind Kokkos::kokkos is a shared one.
set(NSP_KOKKOS_SHARED OFF)
get_target_property(nsp_kokkos_libraries Kokkos::kokkos INTERFACE_LINK_LIBRARIES)
foreach(library Kokkos::kokkos ${nsp_kokkos_libraries})
  if(TARGET ${library})
    get_target_property(type ${library} TYPE)
    if(type STREQUAL "SHARED_LIBRARY")
      set(NSP_KOKKOS_SHARED ON)
    endif()
  endif()
endforeach()
message(STATUS "nsp kernels: Kokkos ${Kokkos_VERSION} (${Kokkos_DEVICES})")
