// gather and scatter along one dimension, and the functions built on them.
#include <algorithm>

#include "core/sizes.h"
#include "naru/ops.h"
#include "ops/call/wrapped.h"
#include "ops/index/addressing.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

using ops::Addressing;
using ops::Positions;

void require_same_device(const Tensor& t, const Tensor& index, const char* op) {
  ops::require_defined(t, op, "input");
  ops::require_defined(index, op, "index");
  if (index.device() == t.device()) return;
  const Tensor* both[] = {&t, &index};
  const char* const roles[] = {"input", "index"};
  ops::common_device(both, roles, op);
}

// Addressing of gather and scatter: `index` has t's rank and indexes t directly in all dimensions but `dim`.
Addressing along(const Tensor& t, int64_t dim, const Tensor& index, ir::IndexName op) {
  if (index.dim() != t.dim() && index.numel() > 0 && (index.dim() > 1 || t.dim() > 1))
    throw RuntimeError("Index tensor must have the same number of dimensions as input tensor ({}: index {}, input {})", op,
                       index.sizes().str(), t.sizes().str());
  Addressing at;
  at.sizes = t.sizes();
  at.shape = index.sizes();
  at.from = Dims(at.shape.size(), -1);
  for (int64_t d = 0; d < index.dim() && d < t.dim(); ++d)
    if (d != dim) at.from[d] = d;
  at.dims = {static_cast<int>(dim)};
  at.op = op;
  at.from_end = false;
  at.raises = op.raises();
  return at;
}

bool larger_apart_from(const Dims& index, const Dims& sizes, int64_t dim, size_t& where) {
  for (where = 0; where < index.size() && where < sizes.size(); ++where)
    if (static_cast<int64_t>(where) != dim && index[where] > sizes[where]) return true;
  return false;
}

// The type of an index of no elements is not asked, as in PyTorch.
Tensor positions_of(const Tensor& index, Device device, const char* op) {
  return index.numel() == 0 ? index.detach().to(device, DType::I64, false, false) : ops::as_positions(index, device, op);
}

void scatter_along(const Tensor& t, int64_t dim, const Tensor& index, const Operand& value, bool add, ir::IndexName op, const char* node) {
  require_same_device(t, index, op);
  dim = wrap_dim(dim, t.dim());
  const Tensor positions = positions_of(index, t.device(), op);
  const Addressing at = along(t, dim, index, op);
  if (index.numel() == 0) {  // nothing is written, but backward needs the dependency on `values`
    if (value.is_tensor() && autograd::recording({&value.tensor()}))
      ops::scatter_at(t, at, {positions}, value.tensor().reshape({-1}).narrow(0, 0, 0).view(index.sizes()), add, node);
    return;
  }
  size_t d;
  const bool bad = larger_apart_from(index.sizes(), t.sizes(), dim, d);
  if (!value.is_tensor() || value.tensor().dim() < index.dim()) {
    if (bad)
      throw RuntimeError("Expected index {} to be no larger than self {} apart from dimension {} ({})", index.sizes().str(),
                         t.sizes().str(), dim, op);
    if (value.is_tensor() && value.tensor().dim() > 0)
      throw RuntimeError("Index tensor must have the same number of dimensions as src tensor ({}: index {}, src {})", op,
                         index.sizes().str(), value.tensor().sizes().str());
    return ops::scatter_at(t, at, {positions}, value, add, node);
  }
  Tensor source = value.tensor();
  require_same_device(t, source, op);
  if (source.dim() != index.dim())
    throw RuntimeError("Index tensor must have the same number of dimensions as src tensor ({}: index {}, src {})", op, index.sizes().str(),
                       source.sizes().str());
  size_t e;
  if (bad || larger_apart_from(index.sizes(), source.sizes(), -1, e))
    throw RuntimeError(
        "Expected index {} to be no larger than self {} apart from dimension {} and to be no larger size than src {} "
        "({})",
        index.sizes().str(), t.sizes().str(), dim, source.sizes().str(), op);
  if (source.dtype() != t.dtype())
    throw RuntimeError("{}(): Expected self.dtype to be equal to src.dtype (got {} and {}; src.to(self.dtype) fixes it)", op,
                       name_of(t.dtype()), name_of(source.dtype()));
  for (int64_t k = 0; k < index.dim(); ++k)
    if (source.size(k) > index.size(k)) source = source.narrow(k, 0, index.size(k));
  ops::scatter_at(t, at, {positions}, source, add, node);
}

// Addressing of index_select and index_add_: a list of positions along `dim`, whole slices in the other dimensions.
Addressing slices_along(const Tensor& t, int64_t dim, const Tensor& index, ir::IndexName op, Positions& positions) {
  if (index.dim() > 1) throw IndexError("{}(): Index is supposed to be a vector (got shape {})", op, index.sizes().str());
  if (t.dim() == 0 && index.numel() != 1)
    throw RuntimeError("{}(): Index to scalar can have only 1 value, got {} value(s)", op, index.numel());
  Addressing at;
  at.sizes = at.shape = t.sizes();
  for (int64_t d = 0; d < t.dim(); ++d) at.from.push_back(d == dim ? -1 : d);
  if (t.dim() > 0) at.shape[dim] = index.numel();
  at.dims = {static_cast<int>(dim)};
  at.op = op;
  at.from_end = false;
  Dims aligned(t.dim() > 0 ? static_cast<size_t>(t.dim() - dim) : 0, 1);
  if (t.dim() > 0) aligned[0] = index.numel();
  positions = {ops::as_positions(index, t.device(), op).reshape(aligned)};
  return at;
}

}  // namespace

Tensor gather(const Tensor& t, int64_t dim, const Tensor& index) {
  require_same_device(t, index, "gather");
  dim = wrap_dim(dim, t.dim());
  const Tensor positions = positions_of(index, t.device(), "gather");
  const Addressing at = along(t, dim, index, "gather");
  if (size_t d; index.numel() > 0 && larger_apart_from(index.sizes(), t.sizes(), dim, d))
    throw RuntimeError("Size does not match at dimension {} expected index {} to be no larger than self {} apart from dimension {}", d,
                       index.sizes().str(), t.sizes().str(), dim);
  return ops::gather_at(t, at, {positions}, "GatherBackward0");
}

void scatter_(const Tensor& t, int64_t dim, const Tensor& index, const Operand& value) {
  scatter_along(t, dim, index, value, false, "scatter", value.is_tensor() ? "ScatterBackward0" : "ScatterBackward1");
}
void scatter_add_(const Tensor& t, int64_t dim, const Tensor& index, const Tensor& value) {
  scatter_along(t, dim, index, value, true, "scatter_add", "ScatterAddBackward0");
}
Tensor ops::scatter_for(ir::IndexName op, const Tensor& t, int64_t dim, const Tensor& index, const Operand& value, bool add) {
  Tensor out = t.clone(MemoryFormat::Contiguous);
  scatter_along(out, dim, index, value, add, op, add ? "ScatterAddBackward0" : value.is_tensor() ? "ScatterBackward0" : "ScatterBackward1");
  return out;
}
Tensor scatter(const Tensor& t, int64_t dim, const Tensor& index, const Operand& value) {
  Tensor out = t.clone(MemoryFormat::Contiguous);
  scatter_(out, dim, index, value);
  return out;
}
Tensor scatter_add(const Tensor& t, int64_t dim, const Tensor& index, const Tensor& value) {
  if (auto y = ops::wrapped("scatter_add", scatter_add, t, dim, index, value)) return *std::move(y);
  Tensor out = t.clone(MemoryFormat::Contiguous);
  scatter_add_(out, dim, index, value);
  return out;
}

Tensor index_select(const Tensor& t, int64_t dim, const Tensor& index) {
  require_same_device(t, index, "index_select");
  if (ops::has_sparse_form(t)) [[unlikely]]
    return ops::sparse_index_select(t, dim, index);
  dim = wrap_dim(dim, t.dim());
  if (index.dtype() != DType::I64 && index.dtype() != DType::I32)
    throw RuntimeError("index_select(): Expected dtype int32 or int64 for index (got {})", name_of(index.dtype()));
  Positions positions;
  Addressing at = slices_along(t, dim, index, "index_select", positions);
  if (dim == 1) at.raises = ir::BadIndex::RuntimeError;  // PyTorch has a kernel of its own for this dimension
  return ops::gather_at(t, at, positions, "IndexSelectBackward0");
}

void index_add_(const Tensor& t, int64_t dim, const Tensor& index, const Tensor& value, Scalar alpha) {
  require_same_device(t, index, "index_add_");
  require_same_device(t, value, "index_add_");
  if (index.dtype() != DType::I64 && index.dtype() != DType::I32)
    throw RuntimeError("index_add_(): Expected dtype int32/int64 for index but got: {}", ops::torch_name(index.dtype()));
  dim = wrap_dim(dim, t.dim());
  Positions positions;
  Addressing at = slices_along(t, dim, index, "index_add_", positions);
  // PyTorch's index_add_ is its scatter_add_ along the first and the last dimension of several.
  if (t.dim() > 1 && (dim == 0 || dim == t.dim() - 1)) at.raises = ir::BadIndex::RuntimeError;
  if (value.dim() > 0 && index.numel() != value.size(dim))
    throw RuntimeError("index_add_(): Number of indices ({}) should be equal to source.size(dim): ({}), for dim: {}", index.numel(),
                       value.size(dim), dim);
  if (!(value.sizes() == at.shape))
    throw RuntimeError(
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {} "
        "source.shape = {}",
        t.sizes().str(), value.sizes().str());
  const bool scaled = alpha.is_float() ? alpha.to_double() != 1 : alpha.to_int() != 1;
  ops::scatter_at(t, at, positions, scaled ? value * alpha : value, true, "IndexAddBackward0");
}

Tensor take(const Tensor& t, const Tensor& index) {
  require_same_device(t, index, "take");
  if (index.dtype() != DType::I64)
    throw RuntimeError("take(): Expected a long tensor for index, but got {}", ops::torch_name(index.dtype()));
  const Tensor flat = t.reshape({-1});
  Addressing at;
  at.sizes = flat.sizes();
  at.shape = index.sizes();
  at.from = Dims(at.shape.size(), -1);
  at.dims = {0};
  at.op = "take";
  return ops::gather_at(flat, at, {ops::as_positions(index, t.device(), "take")}, "TakeBackward0");
}

namespace {
// Minimum and maximum of an integer tensor, on the host.
std::pair<int64_t, int64_t> extremes_of(const Tensor& t) {
  if (!t.device().is_cpu() || ops::recording_host()) return {min(t).item().to_int(), max(t).item().to_int()};
  const Tensor numbers = t.contiguous();
  const int64_t* const first = numbers.data<int64_t>();
  const auto [least, greatest] = std::minmax_element(first, first + numbers.numel());
  return {*least, *greatest};
}
}  // namespace

Tensor one_hot(const Tensor& t, int64_t classes) {
  ops::require_defined(t, "one_hot", "input");
  if (t.dtype() != DType::I64)
    throw RuntimeError("one_hot is only applicable to index tensor of type LongTensor. (got {})", name_of(t.dtype()));
  if (t.numel() == 0) {
    if (classes <= 0) throw RuntimeError("Can not infer total number of classes from empty tensor.");
  } else {
    const bool unknown = t.device().is_meta() && classes > 0;
    const auto [least, greatest] = unknown ? std::pair<int64_t, int64_t>() : extremes_of(t);
    if (least < 0) throw RuntimeError("Class values must be non-negative.");
    if (classes == -1) classes = greatest + 1;
    if (classes < 1) throw RuntimeError("num_classes should be positive (got {})", classes);
    if (greatest >= classes)
      throw RuntimeError("Class values must be smaller than num_classes. (got {}, num_classes {})", greatest, classes);
  }
  Dims shape = t.sizes();
  shape.push_back(classes);
  Tensor out = zeros(shape, Options(DType::I64, t.device()));
  scatter_(out, -1, t.unsqueeze(-1), 1);
  return out;
}

std::vector<Tensor> unravel_index(const Tensor& given, const Dims& shape) {
  ops::require_defined(given, "unravel_index", "indices");
  if (!is_integral(given.dtype())) throw TypeError("expected 'indices' to be integer dtype, but got torch.{}", name_of(given.dtype()));
  const Tensor indices = given.to(DType::I64);
  int64_t step = 1;
  std::vector<Tensor> out(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] < 0) throw ValueError("'shape' cannot have negative values, but got {}", shape.str());
    out[d] = remainder(step == 1 ? indices : floor_divide(indices, step), shape[d]);
    step = times(step, shape[d]);
  }
  return out;
}

}  // namespace naru
