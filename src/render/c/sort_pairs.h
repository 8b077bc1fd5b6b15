// Text about the pairs that sorts work on: a key, whose order as an unsigned number is that of the values, and a position, `keys[i]` and `places[i]`.
#pragma once

#include <string>

#include "naru/dtype.h"

namespace naru::render::c {

// FUNCTION key_of: the key of an element read as unsigned bits: -0 and 0 are equal, all NaN are equal and greatest. low: only this many low bits
// differ between elements, none of which is negative.
std::string key_function(DType t, bool descending, int low);
// The unsigned type of an element's size.
const char* bits_type(DType t) noexcept;
// True if the pair at i comes before the one at j.
std::string pair_before(const std::string& i, const std::string& j);
// Exchanges the pairs at i and j. key: the keys' type.
std::string exchange_pairs(const char* key);

}  // namespace naru::render::c
