#include "runtime/os/mapped_file.h"

#include <windows.h>

#include <system_error>

#include "naru/error.h"
#include "runtime/os/file_path.h"

namespace naru::runtime {

MappedFile::MappedFile(const char* what, const std::string& path) {
  const auto fail = [&] { throw RuntimeError("{}: {}: {}", what, path, std::system_category().message(static_cast<int>(GetLastError()))); };
  const HANDLE file = CreateFileW(file_path(path).c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                  OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (file == INVALID_HANDLE_VALUE) fail();
  LARGE_INTEGER size{};
  if (GetFileType(file) != FILE_TYPE_DISK || !GetFileSizeEx(file, &size)) {
    CloseHandle(file);
    throw RuntimeError("{}: {} is no regular file", what, path);
  }
  size_ = static_cast<size_t>(size.QuadPart);
  if (size_) {
    const HANDLE mapping = CreateFileMappingW(file, nullptr, PAGE_WRITECOPY, 0, 0, nullptr);
    if (mapping) data_ = MapViewOfFile(mapping, FILE_MAP_COPY, 0, 0, 0);
    const DWORD error = GetLastError();
    if (mapping) CloseHandle(mapping);
    SetLastError(error);
  }
  const DWORD error = GetLastError();
  CloseHandle(file);
  SetLastError(error);
  if (size_ && !data_) fail();
}

MappedFile::~MappedFile() {
  if (data_) UnmapViewOfFile(data_);
}

}  // namespace naru::runtime
