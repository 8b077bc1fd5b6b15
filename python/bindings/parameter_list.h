// Parameter lists as bindings write them: "input, dim=None, *, dtype=None, @options".
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "function.h"

namespace naru::py {

// The overload that a list describes; `types`: of its parameters, in order. ValueError where they differ in number.
std::unique_ptr<Overload> read_params(std::string_view text, const std::vector<TypeInfo>& types);
// Methods have no out=.
void remove_out(Overload& overload);

}  // namespace naru::py
