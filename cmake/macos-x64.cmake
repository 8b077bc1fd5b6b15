# The toolchain for macOS on Intel's processors. Its output has never been run (docs/platforms.md).
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(NARU_TRIPLE x86_64-macos.11.0)
include("${CMAKE_CURRENT_LIST_DIR}/zig.cmake")
