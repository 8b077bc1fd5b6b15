// Files of tensors in the safetensors format: names, types and shapes as JSON, then the bytes. No code is ever run when one is read.
// Layout: 8 bytes, the length n of the header, little-endian; n bytes of JSON, filled up with spaces; the data, without gaps.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "naru/tensor.h"

namespace naru {

struct SafeTensors {
  std::vector<std::pair<std::string, Tensor>> tensors;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
};

// The tensors lie in the file's pages (read when they are touched, private to this process) until they are moved to a device; those that are not
// aligned to their type are copied. The file must not be cut short meanwhile. Throws ValueError that says what is wrong with a file that is
// cut short, contradicts itself, or has a type that is not known, RuntimeError for one that can't be opened.
SafeTensors load_safetensors(const std::string& path);
// The same of bytes in memory, which are copied.
SafeTensors parse_safetensors(std::string_view bytes);
// Writes a new file that takes the old one's place when it is complete and on the disk (runtime/atomic_file.h). Throws ValueError for names that are doubled or reserved,
// RuntimeError if the file can't be written.
void save_safetensors(const std::string& path, const SafeTensors& tensors);
std::string to_safetensors(const SafeTensors& tensors);

}  // namespace naru
