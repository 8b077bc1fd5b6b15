# `cmake --install build/release --prefix P`: headers, archive, and the file that find_package(naru) reads.
include(CMakePackageConfigHelpers)
set(destination "${CMAKE_INSTALL_LIBDIR}/cmake/naru")

install(TARGETS naru EXPORT naruTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h" PATTERN "*.inc")
install(EXPORT naruTargets NAMESPACE naru:: DESTINATION "${destination}")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/naruConfig.cmake.in" "${PROJECT_BINARY_DIR}/naruConfig.cmake"
  INSTALL_DESTINATION "${destination}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/naruConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/naruConfig.cmake" "${PROJECT_BINARY_DIR}/naruConfigVersion.cmake"
  DESTINATION "${destination}")
