// AtomicFile: a file that is written whole or not at all. The bytes go to a file beside the target, reach the disk, and only then take the
// target's name, so that a crash, a full disk or a kill at any moment leaves the old file as it was.
#pragma once

#include <string>
#include <string_view>

#include "naru/error.h"

namespace naru::runtime {

// What the system said of a file; Python raises OSError with this number.
class FileError : public RuntimeError {
 public:
  FileError(int number, const std::string& path, const std::string& text) : RuntimeError(text), number_(number), path_(path) {}
  int number() const noexcept { return number_; }
  const std::string& path() const noexcept { return path_; }

 private:
  int number_;
  std::string path_;
};

class AtomicFile {
 public:
  // Symbolic links are followed; what is there keeps its mode and, as far as may be, its owner. A target that is no regular file (a pipe,
  // /dev/stdout) is written directly. Throws FileError where it can't be written.
  explicit AtomicFile(const std::string& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  // Without commit() nothing has happened.
  ~AtomicFile();

  // An open file to write to.
  int file() const noexcept { return file_; }
  void write(std::string_view bytes);
  // The target is the new file from here on, also after a power failure. Throws FileError, and the target is as it was.
  void commit();
  void discard() noexcept;

 private:
  [[noreturn]] void fail(const char* what);
  void open_beside(int mode_of_new);
  void keep_attributes();
  void give_name();

  std::string asked_, target_, folder_;
  std::string beside_;  // "" while the new file has no name yet
  int file_ = -1;
  bool direct_ = false, replaces_ = false;
};

}  // namespace naru::runtime
