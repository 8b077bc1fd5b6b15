# The toolchain for macOS on Apple silicon. Its output has never been run (docs/platforms.md).
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR arm64)
# macOS 11 is the first for these processors.
set(NARU_TRIPLE aarch64-macos.11.0)
include("${CMAKE_CURRENT_LIST_DIR}/zig.cmake")
