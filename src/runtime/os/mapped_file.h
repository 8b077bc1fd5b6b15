// A private (copy-on-write) mapping of a file: writes to it never reach the file.
#pragma once

#include <string>
#include <string_view>

namespace naru::runtime {

class MappedFile {
 public:
  // what: the format, for errors. Throws a RuntimeError with the system's message for a file that can't be opened or is not a regular file.
  MappedFile(const char* what, const std::string& path);
  MappedFile(const MappedFile&) = delete;
  ~MappedFile();
  char* data() const noexcept { return static_cast<char*>(data_); }
  std::string_view bytes() const noexcept { return {data(), size_}; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace naru::runtime
