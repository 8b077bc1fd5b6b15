// Parsing of the bindings' parameter lists: "input, dim=None, *, dtype=None, @options".
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "object/function.h"

namespace naru::py {

// Parses a list into an overload; `types` are those of the parameters, in order. Throws ValueError if the numbers differ.
std::unique_ptr<Overload> read_params(std::string_view text, const std::vector<TypeInfo>& types);
// Removes out=, which methods don't have.
void remove_out(Overload& overload);

}  // namespace naru::py
