// Files of tensors, in PyTorch's format and in that of safetensors. No code is ever run when one is read. Modules and optimizers: naru/checkpoint.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "naru/standard.h"
#include "naru/tensor.h"
#include "naru/value.h"

namespace naru {

// --- PyTorch's: a zip archive of a pickle and the bytes of each storage (docs/files.md)

// Writes a new file that takes the old one's place when it is complete and on the disk (runtime/atomic_file.h). torch.load and naru.load read it in Python.
// Tensors that share memory still do when they are loaded. Throws RuntimeError where the file can't be written and for types that the format has not,
// ValueError for texts that are no UTF-8.
void save(const Value& value, const std::string& path);
std::string save_to_bytes(const Value& value);
// What save, or torch.save from version 1.6 on, has written: plain data, of which Python's lists, dicts (OrderedDict too), tuples, texts, numbers and tensors
// become values. Tensors go to `device`; if none is named where they were, or to cpu where that device is absent. On cpu they lie in the file's pages, which
// must not be cut short meanwhile. Throws RuntimeError for a file that is damaged, none of these, compressed, or more than data.
Value load(const std::string& path, std::optional<Device> device = {}, Place where = NARU_CALLER);
// The same of bytes in memory, which are copied.
Value load_from_bytes(std::string_view bytes, std::optional<Device> device = {});

// --- safetensors: names, types and shapes as JSON, then the bytes
// Layout: 8 bytes, the length n of the header, little-endian; n bytes of JSON, filled up with spaces; the data, without gaps.

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
