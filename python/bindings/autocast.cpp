// Which function is cast to what follows PyTorch's lists for "cuda" (here: every kind but cpu) and for "cpu".
#include "autocast.h"

#include <array>
#include <unordered_map>
#include <unordered_set>

#include "function.h"
#include "naru/autograd.h"

namespace naru::py {

std::atomic<int> autocast_blocks{0};

namespace {

using Names = std::unordered_set<std::string_view>;

const Names kLowerOnAll = {"matmul", "mm",     "bmm",    "addmm",  "baddbmm", "addbmm",
                           "linear", "conv1d", "conv2d", "conv3d", "vecdot",  "conv_transpose1d",
                           "conv_transpose2d", "conv_transpose3d", "prelu"};
const Names kLowerOnOthers = {"mv", "addmv", "addr", "chain_matmul", "multi_dot"};
const Names kFloat32OnAll = {"prod", "cdist", "mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "nll_loss",
                             "cross_entropy", "kl_div", "poisson_nll_loss", "hinge_embedding_loss",
                             "cosine_embedding_loss", "margin_ranking_loss", "soft_margin_loss",
                             "triplet_margin_loss", "multi_margin_loss", "multilabel_margin_loss",
                             "binary_cross_entropy_with_logits"};
const Names kFloat32OnCpu = {"binary_cross_entropy", "quantile", "nanquantile", "trace", "inverse", "pinverse",
                             "cholesky", "qr", "svd", "polar", "stft", "ctc_loss"};
const Names kFloat32OnOthers = {
    "acos", "asin", "arccos", "arcsin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal",
    "rsqrt", "sinh", "tan", "pow", "softplus", "layer_norm", "group_norm", "norm", "cosine_similarity", "dist",
    "pdist", "renorm", "logsumexp", "softmax", "log_softmax", "softmin", "cumprod", "cumsum", "sum", "vector_norm",
    "matrix_norm"};
const Names kWidestOnCpu = {"cat", "concat", "concatenate", "stack", "index_copy"};
const Names kWidestOnOthers = {"cat",     "concat",  "concatenate", "stack", "addcdiv",   "addcmul",    "atan2",
                               "arctan2", "bilinear", "cross",      "dot",   "vdot",      "grid_sample", "index_put",
                               "scatter_add", "tensordot"};

struct Cached {
  Tensor original, cast;  // the original is held, so that no other tensor gets its address
  uint32_t version;
};

struct State {
  std::array<bool, kDeviceTypes> on{};
  std::array<DType, kDeviceTypes> dtype;
  bool cache = true;
  int nesting = 0;
  std::unordered_map<const void*, Cached> casts;
  State() {
    dtype.fill(DType::F16);
    dtype[0] = DType::BF16;
  }
};
thread_local State state;

bool eligible(const Tensor& t) {
  return t.defined() && is_floating(t.dtype()) && t.dtype() != DType::F64 && state.on[static_cast<size_t>(t.device().type)];
}

Tensor cast(const Tensor& t, DType to) {
  if (!eligible(t) || t.dtype() == to) return t;
  // Weights are cast once in a block. One cast without a graph must not stand for the weight where a graph is wanted.
  const bool kept = state.cache && state.nesting > 0 && t.dtype() == DType::F32 && t.requires_grad() && t.is_leaf();
  if (!kept) return t.to(to);
  const auto found = state.casts.find(t.impl());
  if (found != state.casts.end()) {
    const Cached& c = found->second;
    if (c.cast.dtype() == to && c.version == t.version() && c.cast.requires_grad() == grad_enabled()) return c.cast;
  }
  Tensor made = t.to(to);
  state.casts.insert_or_assign(t.impl(), Cached{t, made, t.version()});
  return made;
}

// The tensors of an argument: itself, or the items of a list or tuple.
template <class F>
void each_tensor(PyObject* o, F f) {
  if (!o) return;
  if (is_tensor(o)) return f(tensor_of(o));
  if (PyList_Check(o) || PyTuple_Check(o))
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      if (PyObject* item = PySequence_Fast_GET_ITEM(o, i); is_tensor(item)) f(tensor_of(item));
}

nb::object cast_argument(PyObject* o, DType to) {
  if (is_tensor(o)) {
    const Tensor t = cast(tensor_of(o), to);
    return t.impl() == tensor_of(o).impl() ? nb::borrow(o) : wrapped(t);
  }
  nb::list items;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(o, i);
    items.append(is_tensor(item) ? cast_argument(item, to) : nb::borrow(item));
  }
  return items;
}

size_t kind_of(std::string_view name) { return static_cast<size_t>(parse_device_type(name)); }

DType half_type(DType t) {
  if (!is_floating(t)) throw TypeError("autocast: wanted a floating-point dtype, got {}", name_of(t));
  return t;
}

}  // namespace

CastRules cast_rules(std::string_view f) {
  const auto in = [&](const Names& names) { return names.contains(f); };
  CastRules r;
  if (in(kLowerOnAll)) r = {CastRule::Lower, CastRule::Lower};
  if (in(kFloat32OnAll)) r = {CastRule::Float32, CastRule::Float32};
  if (in(kLowerOnOthers)) r.others = CastRule::Lower;
  if (in(kFloat32OnOthers)) r.others = CastRule::Float32;
  if (in(kWidestOnOthers)) r.others = CastRule::Widest;
  if (in(kFloat32OnCpu)) r.cpu = CastRule::Float32;
  if (in(kWidestOnCpu)) r.cpu = CastRule::Widest;
  if (f == "binary_cross_entropy") r.others = CastRule::Refused;
  return r;
}

int autocast_arguments(CastRules rules, const char* function, PyObject** slots, size_t count, bool keeps_dtype,
                       std::vector<nb::object>& owned) {
  // The first tensor on a kind whose block is open decides, another kind than cpu before it.
  int kind = -1;
  DType widest = DType::F16;
  bool mixed = false, first = true;
  for (size_t i = 0; i < count; ++i)
    each_tensor(slots[i], [&](const Tensor& t) {
      if (!eligible(t)) return;
      kind = std::max(kind, static_cast<int>(t.device().type));
      mixed |= !first && t.dtype() != widest;
      widest = first ? t.dtype() : promote(widest, t.dtype());
      first = false;
    });
  if (kind < 0) return -1;
  const CastRule rule = kind == 0 ? rules.cpu : rules.others;
  DType to;
  switch (rule) {
    case CastRule::None:
      return -1;
    case CastRule::Refused:
      throw RuntimeError(
          "torch.nn.functional.{0} and torch.nn.BCELoss are unsafe to autocast: 16-bit probabilities round to 0 and 1. Take "
          "binary_cross_entropy_with_logits (BCEWithLogitsLoss) and leave the sigmoid out, or disable autocast for this call",
          function);
    case CastRule::Widest:
      if (!mixed) return -1;
      to = widest;
      break;
    case CastRule::Float32:
      if (keeps_dtype) return -1;
      to = DType::F32;
      break;
    default:
      to = state.dtype[static_cast<size_t>(kind)];
  }
  for (size_t i = 0; i < count; ++i) {
    bool any = false;
    each_tensor(slots[i], [&](const Tensor& t) { any |= eligible(t) && t.dtype() != to; });
    if (!any) continue;
    owned.push_back(cast_argument(slots[i], to));
    slots[i] = owned.back().ptr();
  }
  return kind;
}

Tensor autocast_operand(CastRules rules, const Tensor& t) {
  if (!eligible(t)) return t;
  const CastRule rule = t.device().is_cpu() ? rules.cpu : rules.others;
  if (rule == CastRule::Lower) return cast(t, state.dtype[static_cast<size_t>(t.device().type)]);
  return rule == CastRule::Float32 ? cast(t, DType::F32) : t;
}

void define_autocast() {
  def(kFunction, "is_autocast_enabled", "device_type='cuda'", "Whether this thread is in a block of autocast for a kind of device.",
      [](std::string_view kind) { return state.on[kind_of(kind)]; });
  def(kFunction, "set_autocast_enabled", "device_type, enabled", "Opens or closes autocast for a kind of device, on this thread.",
      [](std::string_view kind, bool on) {
        bool& slot = state.on[kind_of(kind)];
        autocast_blocks += int{on} - int{slot};
        slot = on;
      });
  def(kFunction, "get_autocast_dtype", "device_type", "The type that autocast casts to on a kind of device.",
      [](std::string_view kind) { return state.dtype[kind_of(kind)]; });
  def(kFunction, "set_autocast_dtype", "device_type, dtype", "Sets the type that autocast casts to on a kind of device.",
      [](std::string_view kind, DType t) { state.dtype[kind_of(kind)] = half_type(t); });
  def(kFunction, "_autocast_anywhere", "", "Whether any thread is in a block.", [] { return autocast_anywhere(); });
  def(kFunction, "_autocast_arguments", "function, arguments", "The kind that decides, or '', and the arguments, cast.",
      [](std::string_view function, PyObject* arguments) -> PyObject* {
        std::vector<PyObject*> slots(static_cast<size_t>(PyTuple_GET_SIZE(arguments)));
        for (size_t i = 0; i < slots.size(); ++i) slots[i] = PyTuple_GET_ITEM(arguments, static_cast<Py_ssize_t>(i));
        std::vector<nb::object> owned;
        const int kind = autocast_arguments(cast_rules(function), std::string(function).c_str(), slots.data(), slots.size(), false, owned);
        nb::list cast;
        for (PyObject* o : slots) cast.append(nb::handle(o));
        const std::string name(kind < 0 ? std::string_view() : name_of(static_cast<DeviceType>(kind)));
        return nb::make_tuple(nb::str(name.c_str()), nb::tuple(cast)).release().ptr();
      });
  def(kFunction, "is_autocast_cpu_enabled", "", "Whether this thread is in a block of autocast for the cpu.",
      [] { return state.on[0]; });
  def(kFunction, "is_autocast_cache_enabled", "", "Whether weights are cast once in a block.", [] { return state.cache; });
  def(kFunction, "set_autocast_cache_enabled", "enabled", "Sets whether weights are cast once in a block.",
      [](bool on) { state.cache = on; });
  def(kFunction, "clear_autocast_cache", "", "Forgets the cast weights.", [] { state.casts.clear(); });
  def(kFunction, "autocast_increment_nesting", "", "One block deeper.", [] { return int64_t{++state.nesting}; });
  def(kFunction, "autocast_decrement_nesting", "", "One block up.", [] { return int64_t{--state.nesting}; });
}

}  // namespace naru::py
