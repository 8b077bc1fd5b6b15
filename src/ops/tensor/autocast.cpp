// Autocast: what is cast to what.
#include "ops/tensor/autocast.h"

#include "core/per_thread.h"
#include "naru/autograd.h"
#include "naru/error.h"
#include "naru/optim/amp.h"

namespace naru {
namespace autocast {
namespace {

struct Cached {
  Tensor original, cast;  // `original` is kept alive, so that no other tensor gets its address, which is the key
  uint32_t version;
};
struct CastCache {
  std::unordered_map<const void*, Cached> of;
};

}  // namespace

bool eligible(const Tensor& t) {
  return t.defined() && is_floating(t.dtype()) && t.dtype() != DType::F64 && state().on[static_cast<size_t>(t.device().type)];
}

Tensor cast(const Tensor& t, DType to) {
  if (!eligible(t) || t.dtype() == to) return t;
  const State& s = state();
  // Cache casts of weights within a block. A cast made without a graph must not be reused where a graph is needed.
  const bool kept = s.cache && s.nesting > 0 && t.dtype() == DType::F32 && t.requires_grad() && t.is_leaf();
  if (!kept) return t.to(to);
  auto& casts = per_thread<CastCache>().of;
  const auto found = casts.find(t.impl());
  if (found != casts.end()) {
    const Cached& c = found->second;
    if (c.cast.dtype() == to && c.version == t.version() && c.cast.requires_grad() == grad_enabled()) return c.cast;
  }
  Tensor made = t.to(to);
  casts.insert_or_assign(t.impl(), Cached{t, made, t.version()});
  return made;
}

void clear_cache() noexcept {
  if (CastCache* const c = per_thread_if_any<CastCache>()) c->of.clear();
}

std::optional<Decision> decide(Rules rules, std::string_view function, std::span<const Tensor* const> tensors, bool keeps_dtype) {
  // Any tensor on an accelerator whose block is open decides, else one on the cpu.
  int kind = -1;
  std::optional<DType> first, widest;  // float8 types are never the widest, since they are not promoted
  bool mixed = false;
  for (const Tensor* t : tensors) {
    if (!eligible(*t)) continue;
    const DType type = t->dtype();
    if (!first) first = type;
    mixed |= type != *first;
    if (!is_float8(type)) widest = widest ? promote(*widest, type) : type;
    kind = std::max(kind, static_cast<int>(t->device().type));
  }
  if (kind < 0) return {};
  Decision d{static_cast<DeviceType>(kind), {}};
  switch (kind == 0 ? rules.cpu : rules.others) {
    case Cast::None:
      return {};
    case Cast::Refused:
      throw RuntimeError(
          "torch.nn.functional.{0} and torch.nn.BCELoss are unsafe to autocast: 16-bit probabilities round to 0 and 1. Take "
          "binary_cross_entropy_with_logits (BCEWithLogitsLoss) and leave the sigmoid out, or disable autocast for this call",
          function);
    case Cast::Widest:
      if (mixed) d.to = widest;  // of float8 types alone there is none
      break;
    case Cast::Float32:
      if (!keeps_dtype) d.to = DType::F32;
      break;
    case Cast::Lower:
      d.to = state().dtype[static_cast<size_t>(kind)];
  }
  return d;
}

Casts::Entered Casts::enter(std::string_view function, std::span<const Tensor* const> tensors, bool keeps_dtype) {
  const auto decision = decide(operators::record_of(function).autocast, function, tensors, keeps_dtype);
  if (!decision) return {};
  std::vector<Tensor> all;
  for (const Tensor* t : tensors) all.push_back(decision->to ? cast(*t, *decision->to) : *t);
  return Entered(new Inside{std::move(all), {}, {}});
}

Casts::Entered Casts::enter(std::string_view function, std::span<const Operand> operands) {
  std::vector<const Tensor*> pointers;
  for (const Operand& o : operands)
    if (o.is_tensor()) pointers.push_back(&o.tensor());
  Entered inside = enter(function, pointers, false);
  if (!inside) return {};
  size_t next = 0;
  for (const Operand& o : operands) inside->operands.push_back(o.is_tensor() ? Operand(inside->tensors[next++]) : o);
  return inside;
}

}  // namespace autocast

Autocast::Autocast(DeviceType kind, std::optional<DType> dtype, bool enabled, bool cache) : kind_(kind) {
  autocast::State& s = autocast::state();
  const size_t k = static_cast<size_t>(kind);
  const DType to = dtype.value_or(s.dtype[k]);
  if (to != DType::F16 && to != DType::BF16) throw TypeError("Autocast: wanted float16 or bfloat16, got {}", name_of(to));
  on_before_ = s.on[k], cache_before_ = s.cache, dtype_before_ = s.dtype[k];
  autocast::set_on(kind, enabled);
  s.dtype[k] = to;
  s.cache = cache;
  ++s.nesting;
}

Autocast::~Autocast() {
  autocast::State& s = autocast::state();
  if (--s.nesting == 0) autocast::clear_cache();
  autocast::set_on(kind_, on_before_);
  s.dtype[static_cast<size_t>(kind_)] = dtype_before_;
  s.cache = cache_before_;
}

}  // namespace naru
