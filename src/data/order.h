// The order of the samples in a pass.
#pragma once

#include <vector>

#include "naru/data.h"

namespace naru::data {

// 0 to n - 1 in random order.
std::vector<int64_t> shuffled(int64_t n, Generator* generator);
// As the options ask for.
std::vector<int64_t> order_of(int64_t n, const LoaderOptions& options);

}  // namespace naru::data
