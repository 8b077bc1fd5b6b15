# The toolchain for aarch64: Debian's cross compiler (version 12 if available), a sysroot with the libraries of that architecture, and qemu to run
# the programs. `./run build --aarch64` makes the sysroot (tools/aarch64).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)

set(NARU_SYSROOT "${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-sysroot" CACHE PATH "Debian's packages for arm64, unpacked")
get_filename_component(CMAKE_SYSROOT "${NARU_SYSROOT}" ABSOLUTE)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES NARU_SYSROOT)

find_program(NARU_CROSS_CC NAMES aarch64-linux-gnu-gcc aarch64-linux-gnu-gcc-12 REQUIRED)
find_program(NARU_CROSS_CXX NAMES aarch64-linux-gnu-g++ aarch64-linux-gnu-g++-12 REQUIRED)
set(CMAKE_C_COMPILER "${NARU_CROSS_CC}")
set(CMAKE_CXX_COMPILER "${NARU_CROSS_CXX}")
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE BOTH)  # nanobind comes from the build machine's Python

find_program(NARU_QEMU NAMES qemu-aarch64-static qemu-aarch64)
if(NARU_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${NARU_QEMU};-L;${CMAKE_SYSROOT};-cpu;max")
endif()

# The extension is for the sysroot's Python (Debian's); the build machine's Python only runs nanobind's scripts.
set(Python_INCLUDE_DIR "${CMAKE_SYSROOT}/usr/include/python3.11" CACHE PATH "")
set(Python_SOABI cpython-311-aarch64-linux-gnu CACHE STRING "")
set(NB_SUFFIX ".${Python_SOABI}.so" CACHE INTERNAL "")
set(NB_SUFFIX_S ".abi3.so" CACHE INTERNAL "")
