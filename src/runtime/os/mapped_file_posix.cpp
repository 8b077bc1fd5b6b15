#include "runtime/os/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "naru/error.h"

namespace naru::runtime {

MappedFile::MappedFile(const char* what, const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat s {};
  if (file < 0 || fstat(file, &s) != 0) {
    const int error = errno;
    if (file >= 0) close(file);
    throw RuntimeError("{}: {}: {}", what, path, std::strerror(error));
  }
  size_ = static_cast<size_t>(s.st_size);
  if (S_ISREG(s.st_mode) && size_) data_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
  close(file);
  if (data_ == MAP_FAILED) {
    data_ = nullptr;
    throw RuntimeError("{}: {}: {}", what, path, std::strerror(errno));
  }
  if (!S_ISREG(s.st_mode)) throw RuntimeError("{}: {} is no regular file", what, path);
}

MappedFile::~MappedFile() {
  if (data_) munmap(data_, size_);
}

}  // namespace naru::runtime
