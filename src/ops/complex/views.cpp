// Views of the real and the imaginary part of complex tensors, and complex tensors from two real ones.
#include "core/sizes.h"
#include "naru/ops/complex.h"

#include "autograd/history/constant.h"
#include "autograd/history/history.h"
#include "ops/call/wrapped.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/elementwise.h"
#include "ops/shape/strides.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

using autograd::record;
using Grads = std::vector<Tensor>&;

struct Geometry {
  Dims sizes, strides;
  int64_t offset;
};
Geometry geometry_of_parts(const Tensor& t) {
  Geometry g{t.sizes(), t.strides(), times(t.storage_offset(), 2)};
  for (int64_t& s : g.strides) s = times(s, 2);
  g.sizes.push_back(2), g.strides.push_back(1);
  return g;
}
Geometry geometry_of_pairs(const Tensor& t) {
  Geometry g{t.sizes(), t.strides(), t.storage_offset() / 2};
  g.sizes.resize(g.sizes.size() - 1), g.strides.resize(g.sizes.size());
  for (int64_t& s : g.strides) s /= 2;
  return g;
}

Tensor raw(const Tensor& t, DType type, Geometry g) {
  ops::refuse_parts(t, "view_as_real");
  Tensor v(new TensorImpl(t.impl()->storage, type));
  v.impl()->set_geometry(std::move(g.sizes), std::move(g.strides), g.offset);
  v.impl()->origin = t.impl()->origin;
  return v;
}
Tensor tracked(const Tensor& t, DType type, Geometry g, const char* op) {
  Tensor v = ops::make_view(t, std::move(g.sizes), std::move(g.strides), g.offset, op);
  v.impl()->set_dtype(type);
  return v;
}

void require_pairs(const Tensor& t) {
  if (!is_floating(t.dtype()) || t.dtype() == DType::BF16)
    throw RuntimeError("view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: {}",
                       ops::torch_name(t.dtype()));
  if (t.dim() == 0) throw RuntimeError("Input tensor must have one or more dimensions");
  if (t.size(-1) != 2) throw RuntimeError("Tensor must have a last dimension of size 2 (view_as_complex: got shape {})", t.sizes().str());
  if (t.strides().back() != 1) throw RuntimeError("Tensor must have a last dimension with stride 1 (got strides {})", t.strides().str());
  for (size_t d = 0; d + 1 < t.strides().size(); ++d)
    if (t.strides()[d] % 2 != 0)
      throw RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension (got strides {})", t.strides().str());
  if (t.storage_offset() % 2 != 0) throw RuntimeError("Tensor must have a storage_offset divisible by 2 (got {})", t.storage_offset());
}

Tensor pair_gradient(const Tensor& g) { return view_as_complex(g.contiguous()); }

}  // namespace

namespace ops {

Tensor as_real(const Tensor& t) { return raw(t, real_of(t.dtype()), geometry_of_parts(t)); }
Tensor as_complex(const Tensor& t) { return raw(t, complex_of(t.dtype()), geometry_of_pairs(t)); }

namespace {
Tensor part(const Tensor& t, int64_t number) {
  Geometry g{t.sizes(), t.strides(), t.storage_offset() * 2 + number};
  for (int64_t& s : g.strides) s *= 2;
  return raw(t, real_of(t.dtype()), std::move(g));
}
}  // namespace
Tensor real_part(const Tensor& t) { return part(t, 0); }
Tensor imaginary_part(const Tensor& t) { return part(t, 1); }

Tensor conjugate(const Tensor& t) { return t.defined() && is_complex(t.dtype()) ? conj(t) : t; }

Tensor gradient_as(const Tensor& g, DType type) {
  if (g.dtype() == type) return g;
  return (is_complex(g.dtype()) && !is_complex(type) ? real(g) : g).to(type);
}

}  // namespace ops

Tensor view_as_real(const Tensor& t) {
  ops::require_defined(t, "view_as_real", "input");
  if (!is_complex(t.dtype()))
    throw RuntimeError("view_as_real is only supported for complex tensors (got {}; view_as_complex goes the other way)",
                       name_of(t.dtype()));
  const auto sparse = [&]() -> std::optional<Tensor> {
    if (!is_sparse(t)) return {};
    Dims sizes = t.sizes();
    sizes.push_back(2);
    return ops::with_values(ops::parts_of(t).indices, view_as_real(ops::values_of(t)), sizes, is_coalesced(t));
  };
  if (auto y = ops::wrapped(ops::kNoCasts, view_as_real, ops::Entries{t}, ops::SparseRule{sparse})) return *std::move(y);
  return record(tracked(t, real_of(t.dtype()), geometry_of_parts(t), "view_as_real"), "ViewAsRealBackward0", {&t}, {},
                autograd::WithJvp([](Grads g, Grads) { return std::vector{g[0].defined() ? pair_gradient(g[0]) : Tensor()}; },
                                  [](Grads t, Grads) { return view_as_real(t[0]); }));
}

Tensor view_as_complex(const Tensor& t) {
  if (auto y = ops::wrapped(ops::kNoCasts, view_as_complex, ops::Entries{t, 1})) return *std::move(y);
  ops::require_defined(t, "view_as_complex", "input");
  require_pairs(t);
  return record(tracked(t, complex_of(t.dtype()), geometry_of_pairs(t), "view_as_complex"), "ViewAsComplexBackward0", {&t}, {},
                autograd::WithJvp([](Grads g, Grads) { return std::vector{g[0].defined() ? view_as_real(g[0]) : Tensor()}; },
                                  [](Grads t, Grads) { return view_as_complex(t[0].contiguous()); }));
}

Tensor real(const Tensor& t) {
  ops::require_defined(t, "real", "input");
  if (ops::has_sparse_form(t) && is_complex(t.dtype())) return ops::like_with_values(t, real(ops::values_of(t)).clone());
  return is_complex(t.dtype()) ? view_as_real(t).select(-1, 0) : t;
}
Tensor imag(const Tensor& t) {
  ops::require_defined(t, "imag", "input");
  if (!is_complex(t.dtype())) throw RuntimeError("imag is not implemented for tensors with non-complex dtypes.");
  if (ops::has_sparse_form(t)) return ops::like_with_values(t, imag(ops::values_of(t)).clone());
  return view_as_real(t).select(-1, 1);
}

Tensor complex(const Tensor& re, const Tensor& im) {
  const Tensor* both[] = {&re, &im};
  const char* const roles[] = {"real", "imag"};
  for (int i = 0; i < 2; ++i) ops::require_defined(*both[i], "complex", roles[i]);
  const Device device = ops::common_device(both, roles, "complex");
  for (const Tensor* t : both)
    if (!is_floating(t->dtype()) || t->dtype() == DType::BF16)
      throw NotImplementedError("Expected both inputs to be Half, Float or Double tensors but got {} and {}", ops::torch_name(re.dtype()),
                                ops::torch_name(im.dtype()));
  if (re.dtype() != im.dtype())
    throw RuntimeError("Expected object of scalar type {} but got scalar type {} for second argument", ops::torch_name(re.dtype()),
                       ops::torch_name(im.dtype()));
  const Dims shape = broadcast_shapes(re.sizes(), im.sizes());
  const auto entries = [&] {
    const batching::Batch b{&re, &im};
    const auto rank = static_cast<int64_t>(shape.size());
    return b.entry(complex(b.aligned(re, rank), b.aligned(im, rank)));
  };
  if (auto y = ops::by_rules(re, im, ops::BatchRule{entries})) return *std::move(y);
  const Operand operands[] = {re, im};
  Tensor out = ops::make_result(shape, ops::elementwise_strides(shape, operands), complex_of(re.dtype()), device, "complex", true);
  for (int i = 0; i < 2; ++i) {
    const ops::OpOperand from{both[i], {}, re.dtype()};
    ops::apply_into(ir::op::copy, {&from, 1}, i == 0 ? ops::real_part(out) : ops::imaginary_part(out));
  }
  return record(
      std::move(out), "ComplexBackward0", {&re, &im}, {},
      autograd::WithJvp(
          [a = re.sizes(), b = im.sizes()](Grads g, Grads, autograd::Needed needed) {
            return std::vector{needed[0] ? ops::sum_to(real(g[0]), a) : Tensor(), needed[1] ? ops::sum_to(imag(g[0]), b) : Tensor()};
          },
          [](Grads t, Grads) {
            for (int i = 0; i < 2; ++i)
              if (!t[i].defined()) t[i] = zeros_like(t[1 - i]);
            return complex(t[0], t[1]);
          }));
}

Tensor polar(const Tensor& abs, const Tensor& angle) {
  if (auto y = ops::wrapped("polar", polar, abs, angle)) return *std::move(y);
  for (const Tensor* t : {&abs, &angle})
    if (!is_floating(t->dtype()) || t->dtype() == DType::BF16)
      throw NotImplementedError("Expected both inputs to be Half, Float or Double tensors but got {} and {}", ops::torch_name(abs.dtype()),
                                ops::torch_name(angle.dtype()));
  if (abs.dtype() != angle.dtype())
    throw RuntimeError("Expected object of scalar type {} but got scalar type {} for second argument", ops::torch_name(abs.dtype()),
                       ops::torch_name(angle.dtype()));
  return autograd::reading_inputs(complex(abs * cos(angle), abs * sin(angle)));
}

Tensor conj(const Tensor& t) {
  ops::require_defined(t, "conj", "input");
  if (!is_complex(t.dtype())) return t;
  const auto sparse = [&] { return ops::like_with_values(t, conj(ops::values_of(t))); };
  if (auto y = ops::wrapped(ops::kNoCasts, naru::conj, ops::Entries{t}, ops::SparseRule{sparse})) return *std::move(y);
  Tensor out = t.detach().clone();
  const Tensor im = ops::imaginary_part(out);
  const ops::OpOperand from{&im, {}, im.dtype()};
  ops::apply_into(ir::op::neg, {&from, 1}, im);
  return record(std::move(out), "ConjBackward0", {&t}, {},
                autograd::WithJvp([](Grads g, Grads) { return std::vector{g[0].defined() ? conj(g[0]) : Tensor()}; },
                                  [](Grads t, Grads) { return conj(t[0]); }));
}
void conj_physical_(const Tensor& t) {
  if (is_complex(t.dtype())) imag(t).neg_();
}

namespace {
// If both parts are 0 there is no direction: the gradient is 0.
Tensor where_not_zero(const Tensor& magnitude, const Tensor& value) { return masked_fill(value, magnitude == 0.0, 0.0); }
}  // namespace

Tensor angle(const Tensor& t) {
  if (auto y = ops::wrapped(ops::kNoCasts, angle, ops::Entries{t}, ops::SparseRule{[&] { return ops::map_stored(t, angle); }}))
    return *std::move(y);
  ops::require_defined(t, "angle", "input");
  if (!is_complex(t.dtype())) {
    const Tensor x = is_floating(t.dtype()) ? t : t.to(default_dtype());
    return where(isnan(x), x, where(x < 0.0, full_like(x, 3.141592653589793), zeros_like(x)));
  }
  ops::refuse_complex(t.dtype() == kComplex32 ? t.dtype() : DType::F32, "angle_cpu");
  const Tensor d = t.detach();
  const Tensor out = atan2(ops::imaginary_part(d), ops::real_part(d));
  // The angle grows in the tangential direction: i z / |z|^2.
  return record(out, "AngleBackward0", {&t}, {&t}, [](Grads g, Grads saved) {
    const Tensor& z = saved[0];
    const Tensor m = abs(z), square = m * m;
    return std::vector{where_not_zero(m, complex(-imag(z) / square * g[0], real(z) / square * g[0]))};
  });
}

Tensor sgn(const Tensor& t) {
  if (auto y = ops::wrapped(ops::kNoCasts, sgn, ops::Entries{t}, ops::SparseRule{[&] { return ops::map_stored(t, sgn); }}))
    return *std::move(y);
  ops::require_defined(t, "sgn", "input");
  if (!is_complex(t.dtype())) return sign(t);
  Tensor out;
  {
    const NoGrad off;
    const Tensor d = t.detach(), m = abs(d);
    out = complex(ops::real_part(d) / m, ops::imaginary_part(d) / m);
    out = where_not_zero(m, out);
  }
  // The component of g perpendicular to z, divided by |z|.
  return record(std::move(out), "SgnBackward0", {&t}, {&t}, [](Grads g, Grads saved) {
    const Tensor& z = saved[0];
    const Tensor m = abs(z), y = sgn(z);
    return std::vector{where_not_zero(m, (g[0] - y * real(conj(y) * g[0])) / m)};
  });
}

Tensor isreal(const Tensor& t) {
  if (auto y = ops::wrapped(ops::kNoCasts, isreal, ops::Entries{t})) return *std::move(y);
  ops::require_defined(t, "isreal", "input");
  return is_complex(t.dtype()) ? ops::imaginary_part(t.detach()) == 0.0 : ones_like(t.detach(), Options(DType::Bool, t.device()));
}

Tensor vdot(const Tensor& a, const Tensor& b) { return dot(conj(a), b); }

}  // namespace naru
