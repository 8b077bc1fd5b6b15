#include "runtime/os/atomic_file.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>

namespace naru::runtime {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

// Resolves a chain of symbolic links; the final file need not exist.
std::string followed(std::string path) {
  constexpr int kMostLinks = 40;
  for (int i = 0; i < kMostLinks; ++i) {
    char link[PATH_MAX];
    const ssize_t n = readlink(path.c_str(), link, sizeof link);
    if (n < 0) break;
    const std::string next(link, static_cast<size_t>(n));
    path = next.starts_with('/') ? next : folder_of(path) + "/" + next;
  }
  return path;
}

std::string name_beside(const std::string& target) {
  static std::atomic<uint64_t> count{0};
  const size_t slash = target.rfind('/');
  const std::string name = slash == std::string::npos ? target : target.substr(slash + 1);
  // Truncated, because file names have a maximum length.
  return folder_of(target) + "/." + name.substr(0, 200) + "." + std::to_string(getpid()) + "-" + std::to_string(count++) + ".tmp";
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : asked_(path), target_(followed(path)), folder_(folder_of(target_)) {
  if (path.find('\0') != std::string::npos) throw FileError(EINVAL, path, "the path has a null character");
  struct stat old {};
  if (stat(target_.c_str(), &old) == 0) {
    if (S_ISDIR(old.st_mode)) errno = EISDIR, fail("open");
    if (!S_ISREG(old.st_mode)) {
      direct_ = true;
      file_ = open(target_.c_str(), O_WRONLY | O_CLOEXEC);
      if (file_ < 0) fail("open");
      return;
    }
    // A file without write permission must not be replaced either.
    if (faccessat(AT_FDCWD, target_.c_str(), W_OK, AT_EACCESS) != 0) fail("open");
    replaces_ = true;
  } else if (errno != ENOENT) {
    fail("open");
  }
  open_beside(0666);
}

void AtomicFile::open_beside(int mode) {
#ifdef O_TMPFILE
  // An unnamed file: if this process is killed, no file is left over. (linkat through /proc names it later.)
  if (access("/proc/self/fd", F_OK) == 0) file_ = open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
#endif
  while (file_ < 0) {
    beside_ = name_beside(target_);
    file_ = open(beside_.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode);
    if (file_ < 0 && errno != EEXIST) {
      beside_.clear();
      fail("open");
    }
  }
}

void AtomicFile::keep_attributes() {
  struct stat old {};
  if (!replaces_ || stat(target_.c_str(), &old) != 0) return;
  struct stat made {};
  if (fstat(file_, &made) == 0 && (made.st_uid != old.st_uid || made.st_gid != old.st_gid))
    if (fchown(file_, old.st_uid, old.st_gid) != 0 && fchown(file_, static_cast<uid_t>(-1), old.st_gid) != 0) errno = 0;
  // After fchown, which may clear mode bits.
  if (fchmod(file_, old.st_mode & 07777) != 0) fail("keep the mode of");
}

void AtomicFile::give_name() {
  if (!beside_.empty()) return;
  const std::string open_file = "/proc/self/fd/" + std::to_string(file_);
  do {
    beside_ = name_beside(target_);
  } while (linkat(AT_FDCWD, open_file.c_str(), AT_FDCWD, beside_.c_str(), AT_SYMLINK_FOLLOW) != 0 && errno == EEXIST);
  struct stat made {};
  if (stat(beside_.c_str(), &made) != 0) beside_.clear(), fail("name");
}

void AtomicFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    // Linux writes less than 2 GiB per call.
    const ssize_t n = ::write(file_, bytes.data(), std::min(bytes.size(), size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = ENOSPC;
    if (n <= 0) fail("write");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

void AtomicFile::commit() {
  if (file_ < 0) throw FileError(EBADF, asked_, "the file was committed or discarded before");
  if (!direct_) {
    keep_attributes();
    if (fsync(file_) != 0) fail("write");
    give_name();
  }
  const int file = file_;
  file_ = -1;
  if (close(file) != 0 && errno != EINTR) fail("write");
  if (direct_) return;
  if (rename(beside_.c_str(), target_.c_str()) != 0) fail("replace");
  beside_.clear();
  // Sync the folder as well, so that the new name is durable. Some file systems can't do this, and do not need it.
  const int folder = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  fsync(folder);
  close(folder);
}

void AtomicFile::discard() noexcept {
  if (file_ >= 0) close(file_);
  if (!beside_.empty()) unlink(beside_.c_str());
  file_ = -1;
  beside_.clear();
}

}  // namespace naru::runtime
