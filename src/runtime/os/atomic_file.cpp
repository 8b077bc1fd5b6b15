// The portable part of AtomicFile; the rest is in atomic_file_posix.cpp and atomic_file_windows.cpp.
#include "runtime/os/atomic_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace naru::runtime {

AtomicFile::~AtomicFile() { discard(); }

void AtomicFile::fail(const char* what) {
  const int number = errno;
  discard();
  throw FileError(number, asked_, fmt::format("{}: could not {} it: {}", asked_, what, std::strerror(number)));
}

}  // namespace naru::runtime
