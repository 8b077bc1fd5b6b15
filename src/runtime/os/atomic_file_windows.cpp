#include "runtime/os/atomic_file.h"

#include <fmt/format.h>

#include <windows.h>

#include <fcntl.h>
#include <io.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "runtime/os/file_path.h"

namespace naru::runtime {

namespace fs = std::filesystem;

AtomicFile::AtomicFile(const std::string& path) : asked_(path), target_(path) {
  if (path.find('\0') != std::string::npos) throw FileError(EINVAL, path, "the path has a null character");
  std::error_code none;
  const fs::path real = fs::weakly_canonical(file_path(path), none);
  if (!none) target_ = path_text(real);
  const fs::file_status old = fs::status(file_path(target_), none);
  if (fs::is_directory(old)) errno = EISDIR, fail("open");
  if (fs::exists(old) && !fs::is_regular_file(old)) {
    direct_ = true;
    file_ = _wopen(file_path(target_).c_str(), _O_WRONLY | _O_BINARY | _O_NOINHERIT);
    if (file_ < 0) fail("open");
    return;
  }
  // A file without write permission must not be replaced either.
  replaces_ = fs::exists(old);
  if (replaces_ && _waccess(file_path(target_).c_str(), 2) != 0) fail("open");
  open_beside(_S_IREAD | _S_IWRITE);
}

void AtomicFile::open_beside(int mode) {
  static std::atomic<uint64_t> count{0};
  while (file_ < 0) {
    beside_ = fmt::format("{}.{}-{}.tmp", target_, GetCurrentProcessId(), count++);
    file_ = _wopen(file_path(beside_).c_str(), _O_CREAT | _O_EXCL | _O_RDWR | _O_BINARY | _O_NOINHERIT, mode);
    if (file_ < 0 && errno != EEXIST) {
      beside_.clear();
      fail("open");
    }
  }
}

void AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const int n = _write(file_, bytes.data(), static_cast<unsigned>(std::min(bytes.size(), size_t{1} << 30)));
    if (n == 0) errno = ENOSPC;
    if (n <= 0) fail("write");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

void AtomicFile::commit() {
  if (file_ < 0) throw FileError(EBADF, asked_, "the file was committed or discarded before");
  if (!direct_ && _commit(file_) != 0) fail("write");
  const int file = file_;
  file_ = -1;
  if (_close(file) != 0) fail("write");
  if (direct_) return;
  if (!MoveFileExW(file_path(beside_).c_str(), file_path(target_).c_str(), MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH)) {
    errno = EACCES;
    fail("replace");
  }
  beside_.clear();
}

void AtomicFile::discard() noexcept {
  if (file_ >= 0) _close(file_);
  if (!beside_.empty()) DeleteFileW(file_path(beside_).c_str());
  file_ = -1;
  beside_.clear();
}

}  // namespace naru::runtime
