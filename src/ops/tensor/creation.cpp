// Creation of tensors: empty, zeros, full, arange, linspace ...
#include <cmath>

#include "core/sizes.h"
#include "naru/ops.h"
#include "naru/ops/complex.h"
#include "ops/call/wrapped.h"
#include "ops/shape/strides.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"
#include "ops/tensor/from_external_memory.h"
#include "ops/tensor/numbers.h"
#include "ops/tensor/type_names.h"
#include "runtime/memory/memory.h"
#include "runtime/queue/fallback.h"

namespace naru {
namespace {

// `model`: the strides that MemoryFormat::Preserve keeps; null for none.
Tensor fresh(const Dims& sizes, const Options& o, const char* op, DType fallback, const Dims* model = nullptr) {
  const Device device = o.device.value_or(default_device());
  const DType type = o.dtype.value_or(fallback);
  Tensor t = ops::make_result(sizes, type, device, op, true);  // checks the sizes; allocates nothing yet
  if (model || o.memory_format) {
    const MemoryFormat format = o.memory_format.value_or(model ? MemoryFormat::Preserve : MemoryFormat::Contiguous);
    t.impl()->set_geometry(sizes, model ? ops::strides_like(sizes, *model, format) : ops::format_strides(sizes, format), 0);
  }
  if (o.pin_memory && device.is_cpu()) t.impl()->storage = runtime::make_pinned_storage(t.impl()->storage->bytes);
  t.impl()->origin.where = current_line();
  t.impl()->storage->origin = t.impl()->origin;
  return t;
}

Tensor finish(Tensor t, const Options& o) {
  if (o.requires_grad) t.requires_grad_();
  return t;
}

Options like(const Tensor& t, const Options& o) {
  Options out = o;
  if (!out.dtype) out.dtype = t.dtype();
  if (!out.device) out.device = t.device();
  return out;
}

void run_over(const Tensor& t, ir::OpId row, std::initializer_list<ops::OpOperand> operands) {
  ops::apply_into(row, {operands.begin(), operands.size()}, t);
}

}  // namespace

namespace {

Tensor empty_as(const Dims& sizes, const Options& o, const Dims* model) {
  Tensor t = fresh(sizes, o, "empty", default_dtype(), model);
  if (!t.impl()->storage->data && t.impl()->storage->bytes) runtime::allocate_storage(*t.impl()->storage);
  ops::fill_unwritten(t);
  return finish(t, o);
}

Tensor filled(const Dims& sizes, Scalar value, const Options& o, const char* op, DType fallback, const Dims* model = nullptr) {
  Tensor t = fresh(sizes, o, op, fallback, model);
  run_over(t, ir::op::copy, {{nullptr, ops::converted(value, t.dtype()), t.dtype()}});
  return finish(t, o);
}

}  // namespace

Tensor empty(const Dims& sizes, const Options& o) { return empty_as(sizes, o, nullptr); }
Tensor full(const Dims& sizes, Scalar value, const Options& o) { return filled(sizes, value, o, "full", value.dtype()); }
Tensor zeros(const Dims& sizes, const Options& o) { return filled(sizes, 0, o, "zeros", default_dtype()); }
Tensor ones(const Dims& sizes, const Options& o) { return filled(sizes, 1, o, "ones", default_dtype()); }

Tensor empty_strided(const Dims& sizes, const Dims& strides, const Options& o) {
  if (sizes.size() != strides.size())
    throw RuntimeError("dimensionality of sizes ({}) must match dimensionality of strides ({}) (empty_strided: got {} and {})",
                       sizes.size(), strides.size(), sizes.str(), strides.str());
  int64_t count = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || strides[i] < 0)
      throw RuntimeError("empty_strided: wanted sizes and strides >= 0, got {} and {}", sizes.str(), strides.str());
    count = sizes[i] == 0 ? 0 : count ? plus(count, times(sizes[i] - 1, strides[i])) : 0;
  }
  Options plain = o;
  plain.requires_grad = false;
  const Tensor out = empty({count}, plain).as_strided(sizes, strides, 0).detach();  // a tensor that is not a view
  return o.requires_grad ? out.requires_grad_() : out;
}

namespace {
// An empty sparse tensor like t: zeros_like of a sparse tensor is sparse.
Tensor sparse_zeros_like(const Tensor& t, const Options& o) {
  const Tensor none = ops::empty_sparse_like(t);
  return finish(ops::sparse_to(none, o.device.value_or(t.device()), o.dtype.value_or(t.dtype()), false), o);
}
// A compressed tensor like t whose stored elements all have this value. COO tensors are not supported.
Tensor sparse_full_like(const Tensor& t, Scalar value, const Options& o) {
  const Tensor out = ops::sparse_to(t.detach(), o.device.value_or(t.device()), o.dtype.value_or(t.dtype()), true);
  ops::sparse_fill_(out, value);
  return finish(out, o);
}
}  // namespace

Tensor empty_like(const Tensor& t, const Options& o) {
  if (auto y = ops::wrapped(ops::kNoCasts, naru::empty_like, ops::Entries{t}, o, ops::SparseRule{[&] { return sparse_zeros_like(t, o); }}))
    return *std::move(y);
  return empty_as(t.sizes(), like(t, o), &t.strides());
}
Tensor zeros_like(const Tensor& t, const Options& o) {
  if (auto y = ops::wrapped(ops::kNoCasts, naru::zeros_like, ops::Entries{t}, o, ops::SparseRule{[&] { return sparse_zeros_like(t, o); }}))
    return *std::move(y);
  return filled(t.sizes(), 0, like(t, o), "zeros", t.dtype(), &t.strides());
}
Tensor ones_like(const Tensor& t, const Options& o) {
  if (auto y = ops::wrapped(ops::kNoCasts, naru::ones_like, ops::Entries{t}, o, ops::SparseRule{[&] { return sparse_full_like(t, 1, o); }}))
    return *std::move(y);
  return filled(t.sizes(), 1, like(t, o), "ones", t.dtype(), &t.strides());
}
Tensor full_like(const Tensor& t, Scalar value, const Options& o) {
  if (auto y = ops::wrapped(ops::kNoCasts, naru::full_like, ops::Entries{t}, value, o,
                            ops::SparseRule{[&] { return sparse_full_like(t, value, o); }}))
    return *std::move(y);
  return filled(t.sizes(), value, like(t, o), "full", t.dtype(), &t.strides());
}

namespace {
int64_t arange_length(Scalar start, Scalar end, Scalar step, bool floating) {
  if (floating) {
    const double n = std::ceil((end.to_double() - start.to_double()) / step.to_double());
    if (!(n < 0x1p63))
      throw RuntimeError("invalid size, possible overflow? (arange from {} to {} by {})", start.to_double(), end.to_double(),
                         step.to_double());
    return static_cast<int64_t>(n);
  }
  const __int128 way = static_cast<__int128>(end.to_int()) - start.to_int(), by = step.to_int();
  const __int128 n = (way + by - (by > 0 ? 1 : -1)) / by;
  if (n > INT64_MAX)
    throw RuntimeError("invalid size, possible overflow? (arange from {} to {} by {})", start.to_int(), end.to_int(), step.to_int());
  return static_cast<int64_t>(n);
}
}  // namespace

Tensor arange(Scalar start, Scalar end, Scalar step, const Options& o) {
  const bool floating = start.is_float() || end.is_float() || step.is_float();
  const DType type = o.dtype.value_or(floating ? default_dtype() : DType::I64);
  ops::refuse_bool(type, "arange_cpu");
  const double a = start.to_double(), b = end.to_double(), s = step.to_double();
  if (s == 0) throw RuntimeError("step must be nonzero (arange from {} to {})", a, b);
  if (!std::isfinite(a) || !std::isfinite(b)) throw RuntimeError("unsupported range: {} -> {}", a, b);
  if ((s > 0 && a > b) || (s < 0 && a < b))
    throw RuntimeError("upper bound and lower bound inconsistent with step sign (arange from {} to {} by {})", a, b, s);
  const int64_t n = arange_length(start, end, step, floating);
  Options all = o;
  all.dtype = type;
  Tensor t = fresh({n}, all, "arange", type);
  // Compute in float64 (PyTorch's accumulate type) or int64, then round once.
  const DType as = is_floating(type) ? DType::F64 : DType::I64;
  run_over(t, ir::op::arange, {{nullptr, start, as}, {nullptr, step, as}});
  return finish(t, o);
}

Tensor range(Scalar start, Scalar end, Scalar step, const Options& options) {
  Options o = options;
  if (!o.dtype) o.dtype = default_dtype();
  const double first = start.to_double(), last = end.to_double(), by = step.to_double();
  if (by == 0) throw RuntimeError("step must be nonzero");
  if (!std::isfinite(first) || !std::isfinite(last)) throw RuntimeError("unsupported range: {} -> {}", first, last);
  const double count = (last - first) / by;
  if (!(std::abs(count) < 0x1p63)) throw RuntimeError("invalid size, possible overflow? (range from {} to {} by {})", first, last, by);
  if (count < 0) throw RuntimeError("upper bound and lower bound inconsistent with step sign");
  return arange(first, first + (static_cast<double>(static_cast<int64_t>(count)) + 0.5) * by, by, o);
}

namespace {
bool has_complex(const Scalar& start, const Scalar& end, const Options& o) {
  return start.is_complex() || end.is_complex() || (o.dtype && is_complex(*o.dtype));
}
// The complex dtype for a range from start to end. RuntimeError if a real dtype was requested.
DType complex_range_type(const char* name, const Options& o) {
  const DType type = complex_of(default_dtype());
  if (o.dtype && !is_complex(*o.dtype))
    throw RuntimeError("torch.{}(): inferred dtype c10::complex<{}> can't be safely cast to passed dtype {}", name,
                       type == kComplex128 ? "double" : "float", ops::torch_name(*o.dtype));
  return o.dtype.value_or(type);
}
// Both parts are computed separately.
Tensor complex_linspace(const Scalar& start, const Scalar& end, int64_t steps, const Options& o) {
  const DType type = complex_range_type("linspace", o);
  Options part = o;
  part.dtype = type == kComplex128 ? DType::F64 : DType::F32;
  part.requires_grad = false;
  const Tensor re = linspace(start.real(), end.real(), steps, part);
  return finish(complex(re, linspace(start.imag(), end.imag(), steps, part)).to(type), o);
}
}  // namespace

Tensor linspace(Scalar start, Scalar end, int64_t steps, const Options& o) {
  if (has_complex(start, end, o)) return complex_linspace(start, end, steps, o);
  return linspace(start.to_double(), end.to_double(), steps, o);
}

Tensor linspace(double start, double end, int64_t steps, const Options& o) {
  if (steps < 0) throw RuntimeError("number of steps must be non-negative (got {})", steps);
  const DType type = o.dtype.value_or(default_dtype());
  ops::refuse_bool(type, "linspace_cpu");
  if (is_complex(type)) return complex_linspace(start, end, steps, o);
  if (is_integral(type)) start = std::trunc(start), end = std::trunc(end);
  start = ops::as_half(start, type).to_double(), end = ops::as_half(end, type).to_double();
  Tensor t = fresh({steps}, o, "linspace", default_dtype());
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  if (steps == 1)
    run_over(t, ir::op::copy, {{nullptr, start, t.dtype()}});
  else if (steps > 1)
    run_over(t, ir::op::linspace,
             {{nullptr, start, DType::F64}, {nullptr, end, DType::F64}, {nullptr, step, DType::F64}, {nullptr, steps, DType::F64}});
  return finish(t, o);
}

Tensor logspace(Scalar start, Scalar end, int64_t steps, double base, const Options& o) {
  Options wide = o;
  const bool any_complex = has_complex(start, end, o);
  const DType type = any_complex ? complex_range_type("logspace", o) : o.dtype.value_or(default_dtype());
  wide.dtype = any_complex ? kComplex128 : DType::F64;
  wide.requires_grad = false;
  if (is_integral(type)) start = std::trunc(start.to_double()), end = std::trunc(end.to_double());
  const Device device = o.device.value_or(default_device());
  if (!device.is_cpu() && !runtime::queue_of(device).capabilities().supports(DType::F64)) wide.device = Device(DeviceType::Cpu);
  const Tensor t = pow(Operand(base), linspace(start, end, steps, wide));
  return finish(t.to(device, type, false, false), o);
}

Tensor eye(int64_t n, int64_t m, const Options& o) {
  if (n < 0) throw RuntimeError("n must be greater or equal to 0, got {}", n);
  Options plain = o;
  plain.requires_grad = false;
  Tensor t = zeros({n, m < 0 ? n : m}, plain);
  if (t.numel()) t.diagonal().fill_(1);
  t.impl()->storage->version = 0;
  return finish(t, o);
}

Tensor scalar_tensor(Scalar value, const Options& o) {
  Options all = o;
  if (!all.dtype) all.dtype = value.dtype();
  return full({}, ops::rounded(value, *all.dtype), all);
}

Tensor from_data(const void* data, const Dims& sizes, DType dtype, const Options& o) {
  Tensor host(new TensorImpl(
      runtime::make_storage(Device(DeviceType::Cpu, 0), static_cast<size_t>(checked_product(sizes)) * size_of(dtype)), dtype));
  host.impl()->set_geometry(sizes, contiguous_strides(sizes), 0);
  host.impl()->origin.op = "tensor";
  host.impl()->origin.where = current_line();
  if (host.numel()) std::memcpy(host.impl()->storage->data, data, host.impl()->storage->bytes);
  host.impl()->storage->host_wrote = true;
  Tensor t = host.to(o.device.value_or(default_device()), o.dtype.value_or(dtype), false, false);
  if (o.pin_memory) t = t.pin_memory();
  return finish(t, o);
}

Tensor from_blob(void* data, const Dims& sizes, const Dims& strides, DType dtype, std::function<void()> release) {
  return ops::from_external_memory(Device(DeviceType::Cpu, 0), data, sizes, strides, dtype, std::move(release));
}

Tensor ops::from_external_memory(Device device, void* data, const Dims& sizes, const Dims& strides, DType dtype,
                                 std::function<void()> release) {
  int64_t span = checked_product(sizes) == 0 ? 0 : 1;
  for (size_t i = 0; i < sizes.size() && span; ++i) {
    if (strides[i] < 0) throw ValueError("from_blob: negative strides are not supported (strides {}); copy the array first", strides.str());
    span = plus(span, times(sizes[i] - 1, strides[i]));
  }
  auto* owner = new std::function<void()>(std::move(release));
  auto storage = runtime::make_external_storage(
      device, data, static_cast<size_t>(span) * size_of(dtype),
      [](void* o) {
        auto* f = static_cast<std::function<void()>*>(o);
        if (*f) (*f)();
        delete f;
      },
      owner);
  Tensor t(new TensorImpl(std::move(storage), dtype));
  t.impl()->set_geometry(sizes, strides, 0);
  t.impl()->origin.op = device.is_cpu() ? "from_numpy" : "from_dlpack";
  t.impl()->origin.where = current_line();
  return t;
}

}  // namespace naru
