#include "ops/tensor/flops.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "core/per_thread.h"

namespace naru {
namespace ops {

thread_local constinit int flop_counters = 0;

namespace {
using Counting = std::vector<std::shared_ptr<FlopCounter::Counts>>;
Counting& counting() { return per_thread<Counting>(); }
}  // namespace

void add_flops(const char* op, int64_t operations) {
  for (const auto& counts : counting()) {
    auto at = counts->find(std::string_view(op));
    if (at == counts->end()) at = counts->emplace(op, 0).first;
    at->second += operations;
  }
}

}  // namespace ops

void FlopCounter::start() {
  auto& all = ops::counting();
  if (std::find(all.begin(), all.end(), counts_) != all.end()) return;
  all.push_back(counts_);
  ++ops::flop_counters;
}

void FlopCounter::stop() noexcept {
  auto& all = ops::counting();
  const auto at = std::find(all.begin(), all.end(), counts_);
  if (at == all.end()) return;
  all.erase(at);
  --ops::flop_counters;
}

int64_t FlopCounter::total() const {
  return std::accumulate(counts_->begin(), counts_->end(), int64_t{0}, [](int64_t sum, const auto& row) { return sum + row.second; });
}

}  // namespace naru
