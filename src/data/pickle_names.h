// Names in PyTorch's pickles.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "naru/dtype.h"

namespace naru::data {

struct StorageName {
  const char* name;
  DType dtype;
};
// Looks up a storage type by name or by dtype; null if there is none.
const StorageName* storage_called(std::string_view name);
const StorageName* storage_of(DType dtype);
std::optional<DType> dtype_called(std::string_view name);
// True if "module name" is a function or type that is allowed in a file of data.
bool is_known_global(std::string_view global);
// Bytes as UTF-8 text with one character per byte, because protocol 2 has no bytes type, and back (nullopt if the text is not of that form).
std::string latin1_text(std::string_view bytes);
std::optional<std::string> latin1_bytes(std::string_view text);

}  // namespace naru::data
