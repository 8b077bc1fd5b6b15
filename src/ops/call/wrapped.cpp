#include "ops/call/wrapped.h"

namespace naru::ops::calls {

const Tensor& Changes::of(const Tensor& t) const noexcept {
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] == &t) return to[i];
  return t;
}

Dims Changes::behind(const OptionalDims& dims, bool empty_is_none) const {
  Dims all;
  if (!dims || (dims->empty() && !empty_is_none))
    for (int64_t d = 0; d < std::max<int64_t>(*rank, 1); ++d) all.push_back(d + 1);
  else
    all = batching::behind_batch(*dims, *rank);
  return all;
}

std::vector<Tensor> given(const Changes& c, const std::vector<Tensor>& list) {
  std::vector<Tensor> all;
  for (const Tensor& t : list) all.push_back(c.of(t));
  return all;
}

Results listed(std::initializer_list<const Tensor*> tensors) {
  Results all;
  for (const Tensor* t : tensors) all.push_back(*t);
  return all;
}

void Call::add(const Tensor& t) { operands.push_back(&t); }
void Call::add(const std::vector<Tensor>& list) {
  for (const Tensor& t : list) add(t);
}
void Call::add(const Operand& o) {
  if (o.is_tensor()) add(o.tensor());
}

namespace {

// The operator is called with the value of its operand. An entry that is a number is seen as a vector of one element, and so are its results.
std::optional<Results> of_entries(const Call& c) {
  if (c.batched.run) return c.batched.run(c.batched.object, {});
  if (!c.marked || c.operands[0]->dim() < c.rank) return {};  // of too small a rank: the operator refuses it
  const Tensor& t = *c.operands[0];
  const Tensor entry = c.flat && t.dim() > 1 ? t.reshape({-1}) : t;
  const bool number = c.along && entry.dim() == 0;
  const batching::Batch b{&entry};
  const Tensor value = number ? b.opened(entry).unsqueeze(1) : b.opened(entry);
  auto made = c.again.run(c.again.object, {c.operands, &value, entry.dim()});
  for (Tensor& r : *made) {
    r = b.entry(number && r.defined() && r.dim() > 1 ? r.squeeze(1) : r);
    if (c.flat && c.keepdim) r = r.reshape(Dims(static_cast<size_t>(t.dim()), 1));
  }
  return made;
}

}  // namespace

std::optional<Results> special_call(const Call& c) {
  if (c.name)
    if (const autocast::Casts casts(c.name, c.operands, c.keeps_dtype); casts)
      return c.again.run(c.again.object, {c.operands, casts.all().data(), {}});
  uint8_t bits = 0;
  for (const Tensor* t : c.operands) bits |= bits_of(*t);
  if (bits & kBatched)
    if (auto made = of_entries(c)) return made;
  return bits & kSparse && c.sparse.run ? c.sparse.run(c.sparse.object, {}) : std::nullopt;
}

}  // namespace naru::ops::calls
