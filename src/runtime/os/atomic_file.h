// AtomicFile: a file that is written completely or not at all. Data is written to a temporary file in the target's folder, synced to disk,
// and then renamed to the target. A crash, a full disk or a kill at any moment leaves the old file as it was.
#pragma once

#include <string>
#include <string_view>

#include "naru/error.h"

namespace naru::runtime {

// A system error on a file; Python raises OSError with this errno.
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
  // Follows symbolic links; an existing file keeps its mode and, if possible, its owner. A target that is not a regular file (a pipe,
  // /dev/stdout) is written directly. Throws FileError if the file can't be written.
  explicit AtomicFile(const std::string& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  // Discards the new file unless commit() was called.
  ~AtomicFile();

  // An open file descriptor to write to.
  int file() const noexcept { return file_; }
  void write(std::string_view bytes);
  // Replaces the target, durably even after a power failure. If it throws FileError, the target is unchanged.
  void commit();
  void discard() noexcept;

 private:
  [[noreturn]] void fail(const char* what);
  void open_beside(int mode_of_new);
  void keep_attributes();
  void give_name();

  std::string asked_, target_, folder_;
  std::string beside_;  // "" while the new file has no name
  int file_ = -1;
  bool direct_ = false, replaces_ = false;
};

}  // namespace naru::runtime
