#include "ops/call/wrapped.h"

namespace naru::ops::calls {
namespace {

using batching::Batch;

Results entries(const Batch& b, std::optional<Results> values) { return b.entry(*std::move(values)); }

// An entry without dimensions is a vector of one element, and so are its results.
Results along(const Call& c, const Tensor& t, const Dims& dims) {
  const Batch b{&t};
  const Dims behind = batching::behind_batch(dims, t.dim());
  const Tensor value = t.dim() > 0 ? b.opened(t) : b.opened(t).unsqueeze(1);
  Results made = *c.again({c.operands, &value, &behind});
  if (t.dim() == 0)
    for (Tensor& r : made)
      if (r.defined() && r.dim() > 1) r = r.squeeze(1);
  return b.entry(std::move(made));
}

Results over(const Call& c, const Tensor& t) {
  if (t.dim() == 0 && (c.all || !c.dims.empty())) return along(c, t, c.all ? Dims{0} : Dims{c.dims[0]});
  Dims dims;
  if (c.all)
    for (int64_t d = 0; d < t.dim(); ++d) dims.push_back(d + 1);
  else
    dims = batching::behind_batch(c.dims, t.dim());
  const Batch b{&t};
  return entries(b, c.again({c.operands, &b.opened(t), &dims}));
}

Results one_or_all(const Call& c, const Tensor& t) {
  if (!c.all) return along(c, t, c.dims);
  Results made = along(c, t.dim() > 1 ? t.reshape({-1}) : t, {0});
  if (c.keepdim)
    for (Tensor& r : made) r = r.reshape(Dims(static_cast<size_t>(t.dim()), 1));
  return made;
}

std::optional<Results> batched(const Call& c) {
  if (c.batched.run) return c.batched();
  if (c.family == Family::None) return {};
  const Tensor& t = *c.operands[0];
  switch (c.family) {
    case Family::Entries: {
      if (t.dim() < c.rank) return {};  // the operator refuses it
      const Batch b{&t};
      return entries(b, c.again({c.operands, &b.opened(t)}));
    }
    case Family::Along:
      return along(c, t, c.dims);
    case Family::Over:
      return over(c, t);
    case Family::OneOrAll:
      return one_or_all(c, t);
    case Family::None:
      break;
  }
  return {};
}

}  // namespace

const Tensor& Changes::of(const Tensor& t) const noexcept {
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] == &t) return to[i];
  return t;
}

std::optional<Results> special_call(const Call& c) {
  if (c.name && autocast::anywhere())
    if (const autocast::Casts casts(c.name, c.operands, c.keeps_dtype); casts) return c.again({c.operands, casts.all().data()});
  uint8_t bits = 0;
  for (const Tensor* t : c.operands) bits |= bits_of(*t);
  if (bits & kBatched)
    if (auto made = batched(c)) return made;
  if (bits & kSparse && c.sparse.run) return c.sparse();
  return {};
}

}  // namespace naru::ops::calls
