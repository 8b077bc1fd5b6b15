#include "naru/vmap.h"

#include "naru/ops.h"
#include "ops/batch/batch.h"
#include "ops/random/host_draws.h"

namespace naru::detail {

VmapScope::VmapScope(std::span<const Tensor* const> arguments, const VmapOptions& options)
    : arguments_(arguments.begin(), arguments.end()), options_(options) {
  const auto& dims = options.in_dims;
  if (!dims.empty() && dims.size() != arguments.size())
    throw ValueError("vmap: in_dims has {} entries, but the function was given {} arguments", dims.size(), arguments.size());
  bool found = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!dims.empty() && !dims[i]) continue;
    const Tensor& t = *arguments[i];
    const int64_t d = dims.empty() ? 0 : *dims[i];
    if (!t.defined() || d < -t.dim() || d >= t.dim())
      throw ValueError("vmap: in_dims: argument {} has no dimension {} (its shape: {})", i, d, t.defined() ? t.sizes().str() : "undefined");
    const int64_t n = t.size(d);
    if (found && n != size_)
      throw ValueError("vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {} and {}", size_, n);
    size_ = n, found = true;
  }
  if (!found) throw ValueError("vmap: Expected at least one Tensor to vmap over");
  level_ = ++vmaps_entered;
  former_ =
      std::exchange(ops::draws_refused,
                    "vmap: called random operation while in randomness error mode. Draw the numbers outside of vmap, and give them to "
                    "the function");
}

VmapScope::~VmapScope() {
  --vmaps_entered;
  ops::draws_refused = former_;
}

Tensor VmapScope::entry(size_t i) const {
  const Tensor& t = *arguments_[i];
  if (options_.in_dims.empty()) return make_batched(t, level_);
  if (!options_.in_dims[i]) return t;
  const int64_t d = *options_.in_dims[i];
  return make_batched(d == 0 ? t : t.movedim(d, 0), level_);
}

Tensor VmapScope::whole(const Tensor& result) const {
  if (!result.defined()) return result;
  Tensor value;
  if (is_batched(result) && batch_parts(result).level == level_) {
    value = batch_parts(result).value;
  } else {
    Dims all = result.sizes();
    all.insert(0, size_);
    value = result.unsqueeze(0).expand(all);
  }
  return options_.out_dim == 0 ? value : value.movedim(0, options_.out_dim);
}

}  // namespace naru::detail
