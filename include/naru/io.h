// Reading and writing tensor files in PyTorch's format and in safetensors. Loading never executes code. Modules and optimizers:
// naru/io/checkpoint.h.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "naru/io/value.h"
#include "naru/standard.h"
#include "naru/tensor.h"

namespace naru {

// --- PyTorch's format: a zip archive of a pickle and the bytes of each storage (docs/files.md)

// Writes a new file and atomically replaces the old one when the new one is complete and on disk (runtime/os/atomic_file.h). torch.load and
// naru.load can read it in Python. Tensors that share storage still share it after loading. Throws RuntimeError if the file can't be
// written or the format does not support a dtype, ValueError for text that is not UTF-8.
void save(const Value& value, const std::string& path);
std::string save_to_bytes(const Value& value);
// Loads what save wrote, or torch.save since version 1.6: lists, dicts (including OrderedDict), tuples, strings, numbers and tensors.
// Tensors go to `device`; by default to the device they were saved from, or to cpu if that is absent. cpu tensors are memory-mapped, so the
// file must not be truncated while they live. Throws RuntimeError if the file is damaged, compressed, in another format, or contains more
// than data.
Value load(const std::string& path, std::optional<Device> device = {}, SourceLocation where = NARU_CURRENT_LOCATION);
// The same for bytes in memory, which are copied.
Value load_from_bytes(std::string_view bytes, std::optional<Device> device = {});

// --- safetensors: names, dtypes and shapes as JSON, then the data
// Layout: 8 bytes, the header's length n, little-endian; n bytes of JSON, padded with spaces; the data, without gaps.

struct SafeTensors {
  std::vector<std::pair<std::string, Tensor>> tensors;  // in the order of their data in the file
  std::map<std::string, std::string> metadata;
};

// The tensors are memory-mapped (read on first access, private to this process) until they are moved to a device; tensors that are not
// aligned to their element type are copied. The file must not be truncated while they live. Throws ValueError with the reason if the file
// is truncated, inconsistent, or has an unknown dtype, RuntimeError if it can't be opened.
SafeTensors load_safetensors(const std::string& path);
// The same for bytes in memory, which are copied.
SafeTensors parse_safetensors(std::string_view bytes);
// Writes a new file and atomically replaces the old one when the new one is complete and on disk (runtime/os/atomic_file.h). Throws
// ValueError for duplicate or reserved names, RuntimeError if the file can't be written.
void save_safetensors(const std::string& path, const SafeTensors& tensors);
std::string to_safetensors(const SafeTensors& tensors);

}  // namespace naru
