# The C++ part of the Python package: naru/include, naru/lib and naru/share/cmake, which naru.utils.cmake_prefix_path names.

# naru_configure_for_cpp(FOLDER): writes the files for find_package(naru) below the package's folder.
function(naru_configure_for_cpp folder)
  get_target_property(NARU_SOVERSION naru SOVERSION)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/packageConfig.cmake.in" "${folder}/share/cmake/naru/naruConfig.cmake" @ONLY)
  include(CMakePackageConfigHelpers)
  write_basic_package_version_file("${folder}/share/cmake/naru/naruConfigVersion.cmake" VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
endfunction()

# naru_install_for_cpp(FOLDER): installs those files and the headers into a wheel.
function(naru_install_for_cpp folder)
  install(DIRECTORY "${folder}/share" DESTINATION naru COMPONENT python EXCLUDE_FROM_ALL)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/include" DESTINATION naru COMPONENT python EXCLUDE_FROM_ALL
    FILES_MATCHING PATTERN "*.h" PATTERN "*.inc")
endfunction()
