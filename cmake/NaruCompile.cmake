# Common compile settings: the interface target naru_flags, and functions that compile folders.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
if(BUILD_SHARED_LIBS)
  set(CMAKE_CXX_VISIBILITY_PRESET default)  # cmake/naru.map lists the exported symbols
else()
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
endif()
# -O2 everywhere: most time is spent in code generated at run time. backends/cpu/ has the few loops that gain from -O3 (src/CMakeLists.txt). In
# another project without a build type, these flags apply to naru alone.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(NARU_RELEASE $<CONFIG:Release>)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(NARU_RELEASE 1)
  string(APPEND CMAKE_CXX_FLAGS " ${CMAKE_CXX_FLAGS_RELEASE}")
endif()

find_program(NARU_CCACHE ccache)
mark_as_advanced(NARU_CCACHE)
if(NARU_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  # ccache caches compilations that use a precompiled header only with this sloppiness.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${NARU_CCACHE_SETTINGS} ${NARU_CCACHE})
endif()

add_library(naru_flags INTERFACE)
target_include_directories(naru_flags INTERFACE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
target_compile_options(naru_flags INTERFACE
  -Wall -Wextra
  # With much inlining, g++ 12 reports the unused part of Dims' storage as uninitialised.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  # The same bits on every machine: never contract a product and a sum to an fma.
  -ffp-contract=off)
target_compile_definitions(naru_flags INTERFACE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
if(BUILD_SHARED_LIBS)
  target_compile_options(naru_flags INTERFACE -fno-semantic-interposition)
endif()
target_link_libraries(naru_flags INTERFACE fmt::fmt Threads::Threads ${CMAKE_DL_LIBS})
if(WIN32)
  # Windows headers must not define min and max as macros; include only the core headers.
  target_compile_definitions(naru_flags INTERFACE NOMINMAX WIN32_LEAN_AND_MEAN)
endif()

if(NARU_SANITIZE)
  target_compile_options(naru_flags INTERFACE
    -fsanitize=${NARU_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(naru_flags INTERFACE -fsanitize=${NARU_SANITIZE})
endif()

# A source of runtime/os/ or kernels/host/ whose name ends in a system (child_posix.cpp) is compiled for that system only; elsewhere: all systems
# except Linux.
set(NARU_SYSTEMS linux macos posix windows elsewhere)
if(WIN32)
  set(NARU_SYSTEM windows elsewhere)
elseif(APPLE)
  set(NARU_SYSTEM macos posix elsewhere)
else()
  set(NARU_SYSTEM linux posix)
endif()

# Unity builds: the sources of a folder are compiled as one, because half of a source's compile time is reading headers. Therefore file-local
# names must be unique in their folder, even if a file is renamed.
option(NARU_TOGETHER "Compile the sources of a folder as one" ON)
function(naru_together target)
  if(NARU_TOGETHER)
    get_target_property(sources ${target} SOURCES)
    foreach(source IN LISTS sources)
      get_filename_component(folder "${source}" DIRECTORY)
      file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${folder}")
      string(REPLACE "/" "_" folder "${folder}")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${folder}")
    endforeach()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  endif()
endfunction()

# naru_compile(TARGET SOURCES...): an object library of these sources.
function(naru_compile target)
  add_library(${target} OBJECT ${ARGN})
  target_link_libraries(${target} PRIVATE naru_flags)
  naru_together(${target})
  target_compile_definitions(${target} PRIVATE NARU_LIBRARY)  # calls within the library record no source location (naru/source_location.h)
endfunction()

# naru_objects(TARGET FOLDERS...): an object library of the sources in and under these folders, without those for other systems.
function(naru_objects target)
  list(TRANSFORM ARGN APPEND "/*.cpp" OUTPUT_VARIABLE patterns)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${patterns})
  foreach(system IN LISTS NARU_SYSTEMS)
    if(NOT system IN_LIST NARU_SYSTEM)
      list(FILTER sources EXCLUDE REGEX "/(runtime/os|kernels/host)/[^/]*_${system}[.]cpp$")
    endif()
  endforeach()
  if(NOT sources)
    message(FATAL_ERROR "no sources in ${ARGN}")
  endif()
  naru_compile(${target} ${sources})
endfunction()
