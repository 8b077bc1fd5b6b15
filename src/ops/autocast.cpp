// Autocast: PyTorch's lists of functions, and casting by them.
#include "ops/autocast.h"

#include <unordered_map>
#include <unordered_set>

#include "naru/amp.h"
#include "naru/autograd.h"
#include "naru/error.h"

namespace naru {
namespace autocast {
namespace {

using Names = std::unordered_set<std::string_view>;

const Names kLowerOnAll = {"matmul", "mm",     "bmm",    "addmm",  "baddbmm",          "addbmm",           "linear",
                           "conv1d", "conv2d", "conv3d", "vecdot", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
                           "prelu"};
const Names kLowerOnOthers = {"mv", "addmv", "addr", "chain_matmul", "multi_dot"};
const Names kFloat32OnAll = {"prod",
                             "cdist",
                             "mse_loss",
                             "l1_loss",
                             "smooth_l1_loss",
                             "huber_loss",
                             "nll_loss",
                             "cross_entropy",
                             "kl_div",
                             "poisson_nll_loss",
                             "hinge_embedding_loss",
                             "cosine_embedding_loss",
                             "margin_ranking_loss",
                             "soft_margin_loss",
                             "triplet_margin_loss",
                             "multi_margin_loss",
                             "multilabel_margin_loss",
                             "binary_cross_entropy_with_logits"};
const Names kFloat32OnCpu = {"binary_cross_entropy",
                             "quantile",
                             "nanquantile",
                             "trace",
                             "inverse",
                             "pinverse",
                             "cholesky",
                             "qr",
                             "svd",
                             "polar",
                             "stft",
                             "ctc_loss"};
const Names kFloat32OnOthers = {"acos",        "asin",
                                "arccos",      "arcsin",
                                "cosh",        "erfinv",
                                "exp",         "expm1",
                                "log",         "log10",
                                "log2",        "log1p",
                                "reciprocal",  "rsqrt",
                                "sinh",        "tan",
                                "pow",         "softplus",
                                "layer_norm",  "group_norm",
                                "norm",        "cosine_similarity",
                                "dist",        "pdist",
                                "renorm",      "logsumexp",
                                "softmax",     "log_softmax",
                                "softmin",     "cumprod",
                                "cumsum",      "sum",
                                "vector_norm", "matrix_norm"};
const Names kWidestOnCpu = {"cat", "concat", "concatenate", "stack", "index_copy"};
const Names kWidestOnOthers = {"cat",      "concat", "concatenate", "stack", "addcdiv",     "addcmul",   "atan2",       "arctan2",
                               "bilinear", "cross",  "dot",         "vdot",  "grid_sample", "index_put", "scatter_add", "tensordot"};

struct Cached {
  Tensor original, cast;  // the original is held, so that no other tensor gets its address
  uint32_t version;
};
thread_local std::unordered_map<const void*, Cached> casts;

}  // namespace

Rules rules_of(std::string_view f) {
  const auto in = [&](const Names& names) { return names.contains(f); };
  Rules r;
  if (in(kLowerOnAll)) r = {Rule::Lower, Rule::Lower};
  if (in(kFloat32OnAll)) r = {Rule::Float32, Rule::Float32};
  if (in(kLowerOnOthers)) r.others = Rule::Lower;
  if (in(kFloat32OnOthers)) r.others = Rule::Float32;
  if (in(kWidestOnOthers)) r.others = Rule::Widest;
  if (in(kFloat32OnCpu)) r.cpu = Rule::Float32;
  if (in(kWidestOnCpu)) r.cpu = Rule::Widest;
  if (f == "binary_cross_entropy") r.others = Rule::Refused;
  return r;
}

bool eligible(const Tensor& t) {
  return t.defined() && is_floating(t.dtype()) && t.dtype() != DType::F64 && state().on[static_cast<size_t>(t.device().type)];
}

Tensor cast(const Tensor& t, DType to) {
  if (!eligible(t) || t.dtype() == to) return t;
  const State& s = state();
  // Weights are cast once in a block. One cast without a graph must not stand for the weight where a graph is wanted.
  const bool kept = s.cache && s.nesting > 0 && t.dtype() == DType::F32 && t.requires_grad() && t.is_leaf();
  if (!kept) return t.to(to);
  const auto found = casts.find(t.impl());
  if (found != casts.end()) {
    const Cached& c = found->second;
    if (c.cast.dtype() == to && c.version == t.version() && c.cast.requires_grad() == grad_enabled()) return c.cast;
  }
  Tensor made = t.to(to);
  casts.insert_or_assign(t.impl(), Cached{t, made, t.version()});
  return made;
}

void clear_cache() noexcept { casts.clear(); }

std::optional<Decision> decide(Rules rules, std::string_view function, std::span<const Tensor* const> tensors, bool keeps_dtype) {
  // The first tensor on a kind whose block is open decides, another kind than cpu before it.
  int kind = -1;
  DType widest = DType::F16;
  bool mixed = false;
  for (const Tensor* t : tensors) {
    if (!eligible(*t)) continue;
    mixed |= kind >= 0 && t->dtype() != widest;
    widest = kind < 0 ? t->dtype() : promote(widest, t->dtype());
    kind = std::max(kind, static_cast<int>(t->device().type));
  }
  if (kind < 0) return {};
  Decision d{static_cast<DeviceType>(kind), {}};
  switch (kind == 0 ? rules.cpu : rules.others) {
    case Rule::None:
      return {};
    case Rule::Refused:
      throw RuntimeError(
          "torch.nn.functional.{0} and torch.nn.BCELoss are unsafe to autocast: 16-bit probabilities round to 0 and 1. Take "
          "binary_cross_entropy_with_logits (BCEWithLogitsLoss) and leave the sigmoid out, or disable autocast for this call",
          function);
    case Rule::Widest:
      if (mixed) d.to = widest;
      break;
    case Rule::Float32:
      if (!keeps_dtype) d.to = DType::F32;
      break;
    case Rule::Lower:
      d.to = state().dtype[static_cast<size_t>(kind)];
  }
  return d;
}

void Casts::look(std::string_view function, std::span<const Tensor* const> tensors, bool keeps_dtype) {
  const auto decision = decide(rules_of(function), function, tensors, keeps_dtype);
  if (!decision) return;
  for (const Tensor* t : tensors) tensors_.push_back(decision->to ? cast(*t, *decision->to) : *t);
  off_.emplace();
}

void Casts::look(std::string_view function, const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& t : tensors) pointers.push_back(&t);
  look(function, pointers, false);
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
