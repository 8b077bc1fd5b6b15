# How everything here is compiled: one interface target, naru_flags, and the helper that compiles a folder.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
if(BUILD_SHARED_LIBS)
  set(CMAKE_CXX_VISIBILITY_PRESET default)  # cmake/naru.map says what leaves the library
else()
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
endif()
# -O2 everywhere: our speed comes from code made at run time. host/ holds the few loops that gain from -O3 (src/CMakeLists.txt). Within a project of
# somebody else, where no build type says otherwise, naru alone is compiled so.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(NARU_RELEASE $<CONFIG:Release>)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(NARU_RELEASE 1)
  string(APPEND CMAKE_CXX_FLAGS " ${CMAKE_CXX_FLAGS_RELEASE}")
endif()

find_program(NARU_CCACHE ccache)
mark_as_advanced(NARU_CCACHE)
if(NARU_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness is what ccache asks for before it will cache a compilation that uses a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${NARU_CCACHE})
endif()

add_library(naru_flags INTERFACE)
target_include_directories(naru_flags INTERFACE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
target_compile_options(naru_flags INTERFACE
  -Wall -Wextra
  # Where much is inlined, g++ 12 takes the unused part of Dims' room for an error.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  # The same bits on every machine: a product and a sum are never contracted behind our back.
  -ffp-contract=off)
target_compile_definitions(naru_flags INTERFACE $<$<CONFIG:Debug>:_GLIBCXX_ASSERTIONS>)
if(BUILD_SHARED_LIBS)
  target_compile_options(naru_flags INTERFACE -fno-semantic-interposition)
endif()
target_link_libraries(naru_flags INTERFACE fmt::fmt Threads::Threads ${CMAKE_DL_LIBS})
if(WIN32)
  # The system's headers leave names of functions as they are, and bring no more than they must.
  target_compile_definitions(naru_flags INTERFACE NOMINMAX WIN32_LEAN_AND_MEAN)
endif()

if(NARU_SANITIZE)
  target_compile_options(naru_flags INTERFACE
    -fsanitize=${NARU_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(naru_flags INTERFACE -fsanitize=${NARU_SANITIZE})
endif()

# A source of runtime/ or host/ whose name ends in a system's (child_posix.cpp) is for that system alone; elsewhere: all but Linux.
set(NARU_SYSTEMS linux macos posix windows elsewhere)
if(WIN32)
  set(NARU_SYSTEM windows elsewhere)
elseif(APPLE)
  set(NARU_SYSTEM macos posix elsewhere)
else()
  set(NARU_SYSTEM linux posix)
endif()

# Sources of a target are compiled in groups, four to eight as one: half of what the compiler does for a source is reading headers. A source's group
# follows from its name, so that a new one meets only those of its own.
option(NARU_TOGETHER "Compile several sources as one" ON)
function(naru_together target)
  if(NARU_TOGETHER)
    get_target_property(sources ${target} SOURCES)
    list(LENGTH sources count)
    set(groups 1)
    while(count GREATER 8)
      math(EXPR groups "${groups} * 2")
      math(EXPR count "${count} / 2")
    endwhile()
    foreach(source IN LISTS sources)
      get_filename_component(name "${source}" NAME)
      string(MD5 number "${name}")
      string(SUBSTRING "${number}" 0 4 number)
      math(EXPR number "0x${number} % ${groups}")
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "group${number}")
    endforeach()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  endif()
endfunction()

# naru_objects(TARGET FOLDER): an object library of the sources under a folder.
function(naru_objects target folder)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${folder}/*.cpp")
  foreach(system IN LISTS NARU_SYSTEMS)
    if(NOT system IN_LIST NARU_SYSTEM)
      list(FILTER sources EXCLUDE REGEX "/(runtime|host)/[^/]*_${system}[.]cpp$")
    endif()
  endforeach()
  if(NOT sources)
    message(FATAL_ERROR "no sources in ${folder}")
  endif()
  add_library(${target} OBJECT ${sources})
  target_link_libraries(${target} PRIVATE naru_flags)
  naru_together(${target})
  target_compile_definitions(${target} PRIVATE NARU_LIBRARY)  # its calls have no place in the program (naru/place.h)
endfunction()
