# `cmake --install build/release --prefix P` installs headers, the library, and the files for find_package(naru) and pkg-config.
include(CMakePackageConfigHelpers)
set(destination "${CMAKE_INSTALL_LIBDIR}/cmake/naru")

install(TARGETS naru naru_precompiled EXPORT naruTargets DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h" PATTERN "*.inc")
install(EXPORT naruTargets NAMESPACE naru:: DESTINATION "${destination}")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/naruConfig.cmake.in" "${PROJECT_BINARY_DIR}/naruConfig.cmake"
  INSTALL_DESTINATION "${destination}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/naruConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/naruConfig.cmake" "${PROJECT_BINARY_DIR}/naruConfigVersion.cmake"
  DESTINATION "${destination}")

# A static library does not link its dependencies: its user must list them.
set(libs "-lnaru")
if(NOT BUILD_SHARED_LIBS)
  string(APPEND libs " -Wl,--undefined=naru_asmjit_globals -lasmjit -lfmt -ldl -pthread")
endif()
file(RELATIVE_PATH up "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/naru.pc.in" "${PROJECT_BINARY_DIR}/naru.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/naru.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

# `cpack` in the build folder makes a Debian package of the same files; apt installs what programs that link naru need.
set(needed "libstdc++-12-dev | libstdc++-13-dev | libstdc++-14-dev")
if(NOT BUILD_SHARED_LIBS)
  string(APPEND needed ", libasmjit-dev, libfmt-dev")
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME libnaru-dev)
set(CPACK_PACKAGE_CONTACT "the naru developers")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "${needed}")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libopenblas0, libdnnl2")
set(CPACK_COMPONENTS_ALL Unspecified)  # without the Python extension, which pip installs
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
include(CPack)
