# The toolchain for Windows on x86-64, with mingw-w64's headers and the universal C runtime (docs/platforms.md lists what has been tested).
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR AMD64)
set(NARU_TRIPLE x86_64-windows-gnu)
include("${CMAKE_CURRENT_LIST_DIR}/zig.cmake")
