// matmul, mm, bmm, mv, dot, outer, addmm.
#include "ops/linalg/matmul.h"
#include "autograd/history/history.h"
#include "naru/ops.h"
#include "ops/call/wrapped.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/float8.h"
#include "ops/linalg/lapack.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"
#include "ops/tensor/flops.h"
#include "ops/tensor/numbers.h"
#include "ops/tensor/type_names.h"
#include "runtime/queue/host_work.h"

namespace naru {

using autograd::Needed;
using autograd::record;
using autograd::requires_grad;
using ops::check_factors;
using ops::product_of;
using Tensors = std::vector<Tensor>;

namespace ops {

void check_factors(const Tensor& a, const Tensor& b, const char* op) {
  require_defined(a, op, "the first factor");
  require_defined(b, op, "the second factor");
  if (a.impl()->storage->device != b.impl()->storage->device) {
    const Tensor* tensors[] = {&a, &b};
    const char* roles[] = {"the first factor", "the second factor"};
    common_device(tensors, roles, op);
  }
  if (a.dtype() != b.dtype())
    throw RuntimeError("expected m1 and m2 to have the same dtype, but got: {} != {} ({}: convert one with .to())", c_name(a.dtype()),
                       c_name(b.dtype()), op);
  if (a.dtype() != DType::Bool) return;
  const std::string_view word = op;
  throw NotImplementedError("\"{}\" not implemented for 'Bool' ({}: convert to numbers first)",
                            word == "dot" || word == "bmm" ? word
                            : word == "mv"                 ? "addmv_impl_cpu"
                                                           : "addmm_impl_cpu_",
                            op);
}

void throw_not_multiplicable(const Dims& a, const Dims& b, const char* op, bool adds) {
  throw RuntimeError(
      "{}: mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{}): {} wants as many columns of the first as rows of the second",
      adds ? "addmm" : "mm", a[0], a[1], b[0], b[1], op);
}

namespace {

ir::MatMul::Matrix matrix_of(const Tensor& t, bool transposed) {
  const ir::View v = view_of(t, t.sizes());
  const size_t n = v.strides.size();
  ir::MatMul::Matrix m{v.data, n == 3 ? v.strides[0] : 0, v.strides[n - 2], v.strides[n - 1]};
  if (transposed) std::swap(m.row_stride, m.col_stride);
  return m;
}

// Counts under the names of PyTorch's operators, whichever function was called.
void count_product(const Tensor& a, const Tensor& b, const Tensor& bias, bool b_transposed, const char* op) {
  const std::string_view name = op;
  const bool batched = a.dim() == 3, composed = name == "matmul" || name == "linear";
  count_flops(batched ? "bmm" : !composed ? op : bias.defined() ? "addmm" : "mm", 2 * a.numel() * b.size(b_transposed ? -2 : -1));
}

// Products of float8 matrices, in float32 and rounded once. As in PyTorch there are none of vectors or batches.
Tensor float8_product(const Tensor& a, const Tensor& b, const Tensor& bias, bool b_transposed, const char* op) {
  const std::string_view name = op;
  if (a.dim() != 2 || name == "mv" || name == "dot") refuse(op, a.dtype());
  const FlopsOfAll counted;
  return product_of(as_float32(a), as_float32(b), bias.defined() ? as_float32(bias) : bias, b_transposed, op).to(a.dtype());
}

}  // namespace

Tensor product_of(const Tensor& a, const Tensor& b, const Tensor& bias, bool b_transposed, const char* op) {
  if (flop_counters) [[unlikely]]
    count_product(a, b, bias, b_transposed, op);
  if (is_complex(a.dtype())) [[unlikely]] {
    const FlopsOfAll counted;
    const Tensor product = complex_matmul(a, b_transposed ? b.detach().transpose(-1, -2) : b, op);
    return bias.defined() ? product + bias.detach() : product;
  }
  if (is_float8(a.dtype())) [[unlikely]]
    return float8_product(a, b, bias, b_transposed, op);
  const Dims &sa = a.sizes(), &sb = b.sizes();
  const size_t rank = sa.size();
  const int64_t m = sa[rank - 2], k = sa[rank - 1], n = b_transposed ? sb[rank - 2] : sb[rank - 1];
  Dims sizes{m, n};
  if (rank == 3) sizes.insert(0, sa[0]);
  Tensor out = make_result(sizes, a.dtype(), a.impl()->storage->device, op);
  if (out.numel() == 0) return out;
  const Precision precision = precision_of(a.dtype());
  if (rank == 2 && !b_transposed && !bias.defined() && is_host_ready(*a.impl()) && is_host_ready(*b.impl()) && !precision.deterministic &&
      runtime::host_work().multiply(a.dtype(), m, n, k, a.impl()->address(), b.impl()->address(), out.impl()->address()))
    return out;
  ir::MatMul q;
  q.dtype = a.dtype();
  q.batch = rank == 3 ? sa[0] : 1;
  q.m = m, q.k = k, q.n = n;
  q.precision = precision;
  q.a = matrix_of(a, false);
  q.b = matrix_of(b, b_transposed);
  if (bias.defined()) {
    const ir::View v = view_of(bias, bias.sizes());
    q.bias = v.data;
    q.bias_stride = v.strides.back();
  }
  q.c = matrix_of(out, false);
  submit(std::move(q), {&a, &b, &bias}, {&out});
  return out;
}

std::array<const Tensor*, 2> factors_to_save(const Tensor& a, const Tensor& b) {
  return {requires_grad(b) ? &a : &no_tensor(), requires_grad(a) ? &b : &no_tensor()};
}

}  // namespace ops

using ops::adjoint_of, ops::factors_to_save;

namespace {

// The tangent of a product of two saved factors.
auto product_rule(Tensor (*multiply)(const Tensor&, const Tensor&)) {
  return [multiply](const Tensors& t, const Tensors& saved) {
    const Tensor left = t[0].defined() ? multiply(t[0], saved[1]) : Tensor();
    return t[1].defined() ? autograd::added(left, multiply(saved[0], t[1])) : left;
  };
}

// Whether matrices are stored by columns: transposed ones, as a layer's weight beside its input.
bool by_columns(const Tensor& t) {
  return t.stride(-2) == 1 && t.stride(-1) == t.size(-2) && t.stride(-1) > 1 && t.size(-1) > 1 && !is_complex(t.dtype());
}
// The gradient of the second factor, in the layout of that.
Tensor second_gradient(Tensor (*multiply)(const Tensor&, const Tensor&), const Tensor& a, const Tensor& g, bool turned) {
  return turned ? multiply(g.transpose(-2, -1), a).transpose(-2, -1) : multiply(adjoint_of(a), g);
}

void require_matrix(const Tensor& t, const char* role, const char* op) {
  ops::require_defined(t, op, role);
  if (t.dim() != 2) throw RuntimeError("{} must be a matrix, got {}-D tensor ({}: shape {})", role, t.dim(), op, t.sizes().str());
}

Tensor mm_as(const Tensor& a, const Tensor& b, const char* op) {
  require_matrix(a, "mat1", op);
  require_matrix(b, "mat2", op);
  const auto entries = [&] { return ops::batched_product(a, b); };
  const auto sparse = [&] { return sparse::mm(a, b); };
  if (auto y = ops::by_rules(a, b, ops::BatchRule{entries}, ops::SparseRule{sparse})) return *std::move(y);
  check_factors(a, b, op);
  if (a.sizes()[1] != b.sizes()[0]) ops::throw_not_multiplicable(a.sizes(), b.sizes(), op);
  const auto [kept_a, kept_b] = factors_to_save(a, b);
  return record(product_of(a, b, {}, false, op), "MmBackward0", {&a, &b}, {kept_a, kept_b},
                autograd::WithJvp(
                    [turned = by_columns(b)](const Tensors& g, const Tensors& saved, Needed needed) -> Tensors {
                      return {needed[0] ? mm(g[0], adjoint_of(saved[1])) : Tensor(),
                              needed[1] ? second_gradient(mm, saved[0], g[0], turned) : Tensor()};
                    },
                    product_rule(mm)));
}

}  // namespace

// a (m, k), b (k, n) -> (m, n)
Tensor mm(const Tensor& a, const Tensor& b) {
  if (auto y = ops::wrapped("mm", mm, a, b)) return *std::move(y);
  return mm_as(a, b, "mm");
}

Tensor ops::int_mm(const Tensor& a, const Tensor& b) {
  for (const Tensor* t : {&a, &b}) {
    const char* name = t == &a ? "self" : "mat2";
    ops::require_defined(*t, "_int_mm", name);
    if (t->dim() != 2) throw RuntimeError("_int_mm: {} must be a matrix, got {}-D tensor", name, t->dim());
    if (t->dtype() != DType::I8 && t->dtype() != DType::U8)
      throw RuntimeError("_int_mm: Expected {} dtype to be int8 or uint8 but got {}", name, ops::c_name(t->dtype()));
  }
  if (a.size(1) != b.size(0)) throw_not_multiplicable(a.sizes(), b.sizes(), "_int_mm");
  return mm_as(a.to(DType::I32), b.to(DType::I32), "_int_mm");
}

Tensor ops::scaled_mm(const Tensor& a, const Tensor& b, const Tensor& scale_a, const Tensor& scale_b, const Tensor& bias,
                      const Tensor& scale_result, std::optional<DType> out) {
  const char* const op = "_scaled_mm";
  require_matrix(a, "mat1", op);
  require_matrix(b, "mat2", op);
  ops::require_defined(scale_a, op, "scale_a");
  ops::require_defined(scale_b, op, "scale_b");
  if (a.size(1) != b.size(0)) throw_not_multiplicable(a.sizes(), b.sizes(), op);
  const bool one = scale_a.numel() == 1 && scale_b.numel() == 1;
  const bool rows = scale_a.sizes() == Dims{a.size(0), 1} && scale_b.sizes() == Dims{1, b.size(1)};
  if (!is_float8(a.dtype()) || !is_float8(b.dtype()) || scale_a.dtype() != DType::F32 || scale_b.dtype() != DType::F32 || !(one || rows))
    throw ValueError(
        "Invalid scaling configuration. {}: wanted float8 matrices and float32 scales, of one element each or of shapes ({}, 1) and (1, "
        "{}); "
        "got matrices of {} and {}, scales of {} {} and {} {}",
        op, a.size(0), b.size(1), name_of(a.dtype()), name_of(b.dtype()), name_of(scale_a.dtype()), scale_a.sizes().str(),
        name_of(scale_b.dtype()), scale_b.sizes().str());
  Tensor result;
  {
    const NoGrad off;
    const auto scaled = [&](const Tensor& t, const Tensor& scale) { return as_float32(t) * (one ? scale.reshape({}) : scale); };
    Tensor product = mm_as(scaled(a, scale_a), scaled(b, scale_b), op);
    if (bias.defined()) product.add_(bias);
    const DType type = out.value_or(a.dtype());
    if (is_float8(type) && scale_result.defined()) product = product / scale_result;
    result = product.to(type);
  }
  return record(result, "NotImplemented", {&a, &b, &scale_a, &scale_b, &bias}, {}, [](const Tensors&, const Tensors&) -> Tensors {
    throw NotImplementedError("derivative for aten::_scaled_mm is not implemented (use detach(), or products of float32 matrices)");
  });
}

// a (batch, m, k), b (batch, k, n) -> (batch, m, n)
Tensor bmm(const Tensor& a, const Tensor& b) {
  ops::require_defined(a, "bmm", "batch1");
  ops::require_defined(b, "bmm", "batch2");
  for (const Tensor* t : {&a, &b})
    if (t->dim() != 3) throw RuntimeError("{} must be a 3D tensor (bmm: got shape {})", t == &a ? "batch1" : "batch2", t->sizes().str());
  const Dims &sa = a.sizes(), &sb = b.sizes();
  if (sa[0] != sb[0] || sa[2] != sb[1])
    throw RuntimeError("Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].", sa[0], sa[2], sb[0],
                       sb[1]);
  const auto entries = [&] { return ops::batched_product(a, b); };
  const auto sparse = [&] { return sparse::bmm(a, b); };
  if (auto y = ops::wrapped("bmm", naru::bmm, a, b, ops::BatchRule{entries}, ops::SparseRule{sparse})) return *std::move(y);
  check_factors(a, b, "bmm");
  const auto [kept_a, kept_b] = factors_to_save(a, b);
  return record(product_of(a, b, {}, false, "bmm"), "BmmBackward0", {&a, &b}, {kept_a, kept_b},
                autograd::WithJvp(
                    [turned = by_columns(b)](const Tensors& g, const Tensors& saved, Needed needed) -> Tensors {
                      return {needed[0] ? bmm(g[0], adjoint_of(saved[1])) : Tensor(),
                              needed[1] ? second_gradient(bmm, saved[0], g[0], turned) : Tensor()};
                    },
                    product_rule(bmm)));
}

namespace {

// Reshapes t in place, for a fresh result of a product; no view is needed.
Tensor seen_as(const Tensor& t, Dims sizes) {
  const Dims strides = contiguous_strides(sizes);
  t.impl()->set_geometry(std::move(sizes), strides, t.storage_offset());
  return t;
}
// A vector as a matrix with one column (row).
Tensor column_of(const Tensor& v) { return ops::make_view(v, {v.numel(), 1}, {v.strides()[0], 1}, v.storage_offset(), "matmul"); }
Tensor row_of(const Tensor& v) { return ops::make_view(v, {1, v.numel()}, {v.numel(), v.strides()[0]}, v.storage_offset(), "matmul"); }

}  // namespace

// a (m, k), v (k) -> (m)
Tensor mv(const Tensor& a, const Tensor& v) {
  ops::require_defined(a, "mv", "input");
  ops::require_defined(v, "mv", "vec");
  if (a.dim() != 2 || v.dim() != 1)
    throw RuntimeError("vector + matrix @ vector expected, got 1, {}, {} (mv wants a matrix and a vector, got shapes {} and {})", a.dim(),
                       v.dim(), a.sizes().str(), v.sizes().str());
  const bool fits = a.sizes()[1] == v.sizes()[0];
  const auto entries = [&] { return fits ? std::optional(ops::batched_product(a, v)) : std::nullopt; };
  if (auto y =
          ops::wrapped("mv", mv, a, v, ops::BatchRule{entries}, ops::SparseRule{[&] { return sparse::mm(a, v.unsqueeze(1)).squeeze(1); }}))
    return *std::move(y);
  if (!fits)
    throw RuntimeError("size mismatch, got input ({}), mat ({}x{}), vec ({})", a.sizes()[0], a.sizes()[0], a.sizes()[1], v.sizes()[0]);
  check_factors(a, v, "mv");
  Tensor y = product_of(a, column_of(v), {}, false, "mv");
  const auto [kept_a, kept_v] = factors_to_save(a, v);
  return record(
      seen_as(y, {a.sizes()[0]}), "MvBackward0", {&a, &v}, {kept_a, kept_v},
      autograd::WithJvp(
          [](const Tensors& g, const Tensors& saved, Needed needed) -> Tensors {
            return {needed[0] ? outer(g[0], ops::conjugate(saved[1])) : Tensor(), needed[1] ? mv(adjoint_of(saved[0]), g[0]) : Tensor()};
          },
          product_rule(mv)));
}

// The dot product of two vectors.
Tensor dot(const Tensor& a, const Tensor& b) {
  const auto entries = [&] {
    return a.dim() == 1 && b.sizes() == a.sizes() && a.dtype() == b.dtype() ? std::optional(sum(a * b)) : std::nullopt;
  };
  if (auto y = ops::wrapped("dot", dot, a, b, ops::BatchRule{entries})) return *std::move(y);
  ops::require_defined(a, "dot", "input");
  ops::require_defined(b, "dot", "tensor");
  if (a.dim() != 1 || b.dim() != 1) throw RuntimeError("1D tensors expected, but got {}D and {}D tensors", a.dim(), b.dim());
  if (a.dtype() != b.dtype())
    throw RuntimeError("dot : expected both vectors to have same dtype, but found {} and {}", ops::torch_name(a.dtype()),
                       ops::torch_name(b.dtype()));
  if (a.numel() != b.numel())
    throw RuntimeError(
        "inconsistent tensor size, expected tensor [{0}] and src [{1}] to have the same number of elements, but got {0} and {1} "
        "elements respectively",
        a.numel(), b.numel());
  check_factors(a, b, "dot");
  Tensor y = product_of(row_of(a), column_of(b), {}, false, "dot");
  const auto [kept_a, kept_b] = factors_to_save(a, b);
  return record(
      seen_as(y, {}), "DotBackward0", {&a, &b}, {kept_a, kept_b},
      autograd::WithJvp(
          [](const Tensors& g, const Tensors& saved, Needed needed) -> Tensors {
            return {needed[0] ? g[0] * ops::conjugate(saved[1]) : Tensor(), needed[1] ? g[0] * ops::conjugate(saved[0]) : Tensor()};
          },
          product_rule(dot)));
}

// a (m), b (n) -> (m, n)
Tensor outer(const Tensor& a, const Tensor& b) {
  ops::require_defined(a, "outer", "self");
  ops::require_defined(b, "outer", "vec2");
  for (const Tensor* t : {&a, &b})
    if (t->dim() != 1) throw RuntimeError("outer: Expected 1-D argument {}, but got {}-D", t == &a ? "self" : "vec2", t->dim());
  return a.unsqueeze(1) * b;
}

namespace {
// Unlike scaled(), a scale of 0 keeps NaN.
Tensor scaled_unless_one(const Tensor& t, Scalar s) { return s.to_double() == 1 ? t : t * s; }
Tensor scaled(const Tensor& t, Scalar s) { return s.equals(0) ? zeros_like(t) : s.equals(1) ? t : t * s; }
}  // namespace

// beta * c + alpha * a b, with c broadcast to the product's shape. beta = 0 ignores c, even NaN.
Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  ops::require_defined(c, "addmm", "input");
  require_matrix(a, "mat1", "addmm");
  require_matrix(b, "mat2", "addmm");
  const auto entries = [&] { return ops::scaled_sum(c, mm(a, b), beta, alpha); };
  const auto sparse = [&] { return sparse::addmm(c, a, b, beta, alpha); };
  if (auto y = ops::wrapped("addmm", naru::addmm, c, a, b, beta, alpha, ops::BatchRule{entries}, ops::SparseRule{sparse}))
    return *std::move(y);
  if (a.sizes()[1] != b.sizes()[0]) ops::throw_not_multiplicable(a.sizes(), b.sizes(), "addmm", true);
  if (c.dtype() != b.dtype())
    throw RuntimeError("self and mat2 must have the same dtype, but got {} and {}", ops::torch_name(c.dtype()), ops::torch_name(b.dtype()));
  check_factors(a, b, "addmm");
  check_factors(a, c, "addmm");
  if (is_float8(a.dtype())) [[unlikely]]
    return addmm(c.to(DType::F32), a.to(DType::F32), b.to(DType::F32), beta, alpha).to(a.dtype());
  const Dims sizes{a.sizes()[0], b.sizes()[1]};
  const DType type = a.dtype();
  if (!is_inexact(type)) beta = ops::converted(beta, type), alpha = ops::converted(alpha, type);
  {
    NoGrad guard;
    c.detach().expand(sizes);  // throws if it does not fit
  }
  if (is_complex(type)) return scaled(mm(a, b), alpha) + scaled(c, beta).expand(sizes);
  const bool plain = beta.to_double() == 1 && alpha.to_double() == 1;
  Tensor y;
  if (plain && c.dim() == 1 && c.numel() == sizes[1]) {
    y = product_of(a, b, c, false, "addmm");
  } else {
    y = product_of(a, b, {}, false, "addmm");
    if (alpha.to_double() != 1) {
      const ops::OpOperand scale[] = {{&y, {}, type}, {nullptr, alpha, type}};
      ops::apply_into(ir::op::mul, scale, y);
    }
    if (beta.to_double() != 0) {
      const ops::OpOperand add[] = {{&y, {}, type}, {&c, {}, type}, {nullptr, beta, type}};
      ops::apply_into(ir::op::add_scaled, add, y);
    }
  }
  const auto [kept_a, kept_b] = factors_to_save(a, b);
  return record(std::move(y), "AddmmBackward0", {&c, &a, &b}, {kept_a, kept_b},
                autograd::WithJvp(
                    [=, shape = c.sizes(), turned = by_columns(b)](const Tensors& g, const Tensors& saved, Needed needed) -> Tensors {
                      return {needed[0] ? scaled_unless_one(ops::sum_to(g[0], shape), beta) : Tensor(),
                              needed[1] ? scaled_unless_one(mm(g[0], saved[1].t()), alpha) : Tensor(),
                              needed[2] ? scaled_unless_one(second_gradient(mm, saved[0], g[0], turned), alpha) : Tensor()};
                    },
                    [=](const Tensors& t, const Tensors& saved) {
                      Tensor sum = t[0].defined() ? scaled_unless_one(t[0], beta).expand(sizes) : Tensor();
                      if (t[1].defined()) sum = autograd::added(sum, scaled_unless_one(mm(t[1], saved[1]), alpha));
                      return t[2].defined() ? autograd::added(sum, scaled_unless_one(mm(saved[0], t[2]), alpha)) : sum;
                    }));
}

namespace {

// Both have at least one dimension, and one has more than two: broadcast the leading dimensions, multiply the last two.
Tensor batched(const Tensor& a, const Tensor& b) {
  const Dims &sa = a.sizes(), &sb = b.sizes();
  const size_t na = sa.size(), nb = sb.size();
  // A single matrix on the right: stack the rows of all left matrices into one tall matrix.
  if (nb <= 2) {
    Dims out(std::span<const int64_t>(sa).first(na - 1));
    const Tensor tall = a.reshape({product(out), sa[na - 1]});
    if (nb == 2) out.push_back(sb[1]);
    return (nb == 1 ? mv(tall, b) : mm_as(tall, b, "matmul")).view(out);
  }
  if (na == 1) return batched(a.unsqueeze(0), b).squeeze(-2);
  const Dims batch = broadcast_shapes(std::span<const int64_t>(sa).first(na - 2), std::span<const int64_t>(sb).first(nb - 2));
  const int64_t count = product(batch);
  const auto flat = [&](const Tensor& t) {
    const int64_t rows = t.size(-2), cols = t.size(-1);
    Dims all = batch;
    all.push_back(rows), all.push_back(cols);
    return t.expand(all).reshape({count, rows, cols});
  };
  Dims out = batch;
  out.push_back(sa[na - 2]), out.push_back(sb[nb - 1]);
  // Evaluate in a fixed order, not the compiler's: if a and b are one tensor, its gradients are summed in this order.
  const Tensor right = flat(b), left = flat(a);
  return bmm(left, right).view(out);
}

bool has_stack(const Tensor& a, const Tensor& b) { return a.dim() && b.dim() && std::max(a.dim(), b.dim()) > 2; }

}  // namespace

Tensor ops::batched_product(const Tensor& a, const Tensor& b) {
  const int64_t na = a.dim(), nb = b.dim();
  if (na == 1 && nb == 1) return sum(a * b);
  const batching::Batch batch{&a, &b};
  // One factor of all entries: a single product of matrices.
  if (na == 1 && nb == 2 && !batch.has(b)) return batch.entry(matmul(batch.opened(a), b));
  if (na == 2 && nb == 1 && !batch.has(a)) return batch.entry(matmul(batch.opened(b), a.t()));
  const int64_t rank = std::max({na, nb, int64_t{2}});
  const auto factor = [&](const Tensor& t, int64_t at) { return batch.aligned(t.dim() == 1 ? t.unsqueeze(at) : t, rank); };
  const Tensor product = matmul(factor(a, 0), factor(b, 1));
  return batch.entry(na == 1 ? product.squeeze(-2) : nb == 1 ? product.squeeze(-1) : product);
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  ops::require_defined(a, "matmul", "input");
  ops::require_defined(b, "matmul", "other");
  // Products of matrices and vectors ask themselves.
  const auto entries = [&] { return has_stack(a, b) ? std::optional(ops::batched_product(a, b)) : std::nullopt; };
  const auto sparse = [&] { return a.dim() == 3 && b.dim() == 3 ? std::optional(bmm(a, b)) : std::nullopt; };
  if (auto y = ops::wrapped("matmul", matmul, a, b, ops::BatchRule{entries}, ops::SparseRule{sparse})) return *std::move(y);
  const int64_t na = a.dim(), nb = b.dim();
  if (na == 2 && nb == 2) return mm_as(a, b, "matmul");
  if (na == 0 || nb == 0)
    throw RuntimeError("both arguments to matmul need to be at least 1D, but they are {}D and {}D (multiply by a number with *)", na, nb);
  if (na == 1 && nb == 1) return dot(a, b);
  if (na == 2 && nb == 1) return mv(a, b);
  if (na == 1 && nb == 2) return mm_as(a.unsqueeze(0), b, "matmul").squeeze(0);
  return batched(a, b);
}

}  // namespace naru
