// What PyTorch's pickles call things.
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
// By name and by type; null where there is none.
const StorageName* storage_called(std::string_view name);
const StorageName* storage_of(DType dtype);
std::optional<DType> dtype_called(std::string_view name);
// Whether "module name" is a function or a type that a file of data may have.
bool is_known_global(std::string_view global);
// Bytes as a text of one character each, in UTF-8, and back (none where it is no such text): protocol 2 has no bytes.
std::string latin1_text(std::string_view bytes);
std::optional<std::string> latin1_bytes(std::string_view text);

}  // namespace naru::data
