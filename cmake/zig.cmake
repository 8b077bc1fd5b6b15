# Common to the toolchains for other systems: clang from the Python package ziglang, which includes headers and libraries of those systems. A
# toolchain sets its system, its processor and NARU_TRIPLE, and includes this file. `./run build --target NAME` makes the environment with the
# compiler.
set(NARU_ZIG "${CMAKE_CURRENT_LIST_DIR}/../.venv-zig/bin/python" CACHE FILEPATH "A Python that has the package ziglang")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES NARU_ZIG)
execute_process(COMMAND "${NARU_ZIG}" -c "import importlib.metadata as m, pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent / 'zig', m.version('ziglang'), sep=';')"
  OUTPUT_VARIABLE zig OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status ERROR_QUIET)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${NARU_ZIG} has no package ziglang: ./run build --target NAME makes an environment that has it, or name another Python with -DNARU_ZIG=...")
endif()

list(POP_BACK zig version)

# A wrapper script for each tool: CMake and ccache need a single executable, and ccache identifies the compiler by its name. It is to compare the
# scripts' text, in which the version is, not when they were made: then another checkout's build finds what this one compiled.
set(NARU_CCACHE_SETTINGS CCACHE_COMPILERCHECK=content)
set(tools "${CMAKE_BINARY_DIR}/zig-${NARU_TRIPLE}")
if(CMAKE_BINARY_DIR MATCHES "/CMakeScratch/|/CMakeTmp")
  get_filename_component(tools "${CMAKE_CXX_COMPILER}" DIRECTORY)  # one of CMake's try_compile projects, which uses the existing scripts
endif()
foreach(tool IN ITEMS "clang++|c++ -target ${NARU_TRIPLE}" "clang|cc -target ${NARU_TRIPLE}" "ar|ar" "ranlib|ranlib" "rc|rc" "dlltool|dlltool" "objdump|objdump")
  string(REGEX REPLACE "[|].*" "" name "${tool}")
  string(REGEX REPLACE ".*[|]" "" call "${tool}")
  file(CONFIGURE OUTPUT "${tools}/${name}" CONTENT "#!/bin/sh\n# ziglang ${version}\nexec '${zig}' ${call} \"$@\"\n" @ONLY)
  file(CHMOD "${tools}/${name}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endforeach()
set(CMAKE_C_COMPILER "${tools}/clang")
set(CMAKE_CXX_COMPILER "${tools}/clang++")
set(CMAKE_AR "${tools}/ar" CACHE FILEPATH "")
set(CMAKE_RANLIB "${tools}/ranlib" CACHE FILEPATH "")
set(CMAKE_RC_COMPILER "${tools}/rc")

set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)  # try_compile need not link, which would first build the system's libraries

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_FIND_ROOT_PATH "${tools}")
