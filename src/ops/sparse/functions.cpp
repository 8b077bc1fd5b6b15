// Operators on sparse tensors, as compositions of dense operators on coordinates and values; so autograd differentiates them.
#include <algorithm>
#include <cctype>
#include <limits>

#include "autograd/history/history.h"
#include "naru/autograd.h"
#include "naru/ops/functions.h"
#include "ops/elementwise/elementwise.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

namespace o = ir::op;
using ops::has_sparse_form;

Tensor from_run(ir::OpId id, std::initializer_list<Operand> operands) { return ops::run_op(id, {operands.begin(), operands.size()}); }

Tensor unary(ir::OpId id, const Tensor& t) {
  const auto f = [id](const Tensor& values) { return from_run(id, {values}); };
  return ops::record_of(id).zero == operators::Zero::Linear ? ops::like_with_values(t, f(ops::values_of(t))) : ops::map_stored(t, f);
}

void require_same_sizes(const Tensor& a, const Tensor& b, const char* op) {
  if (!(a.sizes() == b.sizes()))
    throw RuntimeError("{}: expected sizes of 'self' and 'other' to match, but {} != {} (sparse tensors are not broadcast)", op,
                       a.sizes().str(), b.sizes().str());
}

// a + factor * b of two sparse tensors.
Tensor sum_of(const Tensor& a, const Tensor& b, Scalar factor, const char* op) {
  require_same_sizes(a, b, op);
  if (layout(a) != layout(b)) return sum_of(to_sparse(a), to_sparse(b), factor, op);
  const Tensor scaled = factor.equals(1) ? ops::values_of(b) : ops::values_of(b) * factor;
  const ops::SparseParts &pa = ops::parts_of(a), &pb = ops::parts_of(b);
  if (pa.indices.is(pb.indices) || (pa.coalesced && pb.coalesced && pa.indices.sizes() == pb.indices.sizes() &&
                                    equal(pa.indices, pb.indices) && (!pa.crow.defined() || equal(pa.crow, pb.crow))))
    return ops::like_with_values(a, ops::values_of(a) + scaled);
  if (is_compressed(a)) return ops::in_layout_of(sum_of(to_sparse(a), to_sparse(b), factor, op), a);
  if (sparse_dim(a) != sparse_dim(b)) throw RuntimeError("{}: operands with {} and {} sparse dimensions", op, sparse_dim(a), sparse_dim(b));
  const DType type = promote(a.dtype(), b.dtype());
  const Tensor both =
      ops::with_values(cat({pa.indices, pb.indices}, 1), cat({ops::values_of(a).to(type), scaled.to(type)}), a.sizes(), false);
  return pa.coalesced && pb.coalesced ? coalesce(both) : both;
}

const Tensor& sparse_one(std::span<const Operand> operands) {
  return std::find_if(operands.begin(), operands.end(), [](const Operand& x) { return x.is_tensor() && has_sparse_form(x.tensor()); })
      ->tensor();
}

// Returns dense + factor * t. If the sizes are equal, only stored elements are touched. in_place: writes to `dense`, which must be contiguous then.
Tensor scattered(const Tensor& dense, const Tensor& t, Scalar factor, bool in_place) {
  if (!(dense.sizes() == t.sizes())) {
    const Tensor whole = to_dense(t);
    return factor.equals(1) ? dense + whole : dense + whole * factor;
  }
  const Tensor indices = ops::coordinates_of(t);
  Tensor values = ops::elements_of(t);
  const DType type = promote(dense.dtype(), t.dtype());
  if (!factor.equals(1)) values = values * factor;
  Dims flat = values.sizes();
  flat[0] = product(Dims(std::span<const int64_t>(t.sizes()).first(static_cast<size_t>(indices.size(0)))));
  const Tensor keys = ops::keys_of(indices, t.sizes());
  if (in_place) {
    index_add_(dense.view(flat), 0, keys, values.to(dense.dtype()));
    return dense;
  }
  return index_add(dense.to(type).reshape(flat), 0, keys, values.to(type)).view(t.sizes());
}

Tensor added(const Operand& a, const Operand& b, Scalar factor, const char* op) {
  const bool left = a.is_tensor() && has_sparse_form(a.tensor()), right = b.is_tensor() && has_sparse_form(b.tensor());
  if (left && right) return sum_of(a.tensor(), b.tensor(), factor, op);
  if (left && b.is_tensor() && is_compressed(a.tensor()))
    return scattered(factor.equals(1) ? b.tensor() : b.tensor() * factor, a.tensor(), 1, false);
  if (left || !a.is_tensor()) throw RuntimeError("{0}(sparse, dense) is not supported. Use {0}(dense, sparse) instead.", op);
  return scattered(a.tensor(), b.tensor(), factor, false);
}

bool is_number(const Operand& x) { return !x.is_tensor() || (!has_sparse_form(x.tensor()) && x.tensor().dim() == 0); }

Tensor multiplied(const Operand& a, const Operand& b) {
  const bool left = a.is_tensor() && has_sparse_form(a.tensor());
  const Tensor& t = left ? a.tensor() : b.tensor();
  const Operand& other = left ? b : a;
  if (is_number(other)) return ops::like_with_values(t, from_run(o::mul, {ops::values_of(t), other}));
  const Tensor& by = other.tensor();
  if (const Dims whole = broadcast_shapes(t.sizes(), by.sizes()); whole != t.sizes() || (has_sparse_form(by) && whole != by.sizes())) {
    const Tensor left = ops::sparse_broadcast_to(t, whole), right = has_sparse_form(by) ? ops::sparse_broadcast_to(by, whole) : by;
    return multiplied(left, right);
  }
  // The product stores only coordinates that both store. A dense factor is read at the coordinates; elements_at broadcasts it.
  const Tensor own = is_compressed(t) ? t : coalesce(t);
  if (!has_sparse_form(by))
    return ops::like_with_elements(own, ops::elements_of(own) * ops::elements_at(by, ops::coordinates_of(own), t.dim()));
  const Tensor theirs = coalesce(ops::as_coo(by)), mine = coalesce(ops::as_coo(own));
  const Tensor keys = ops::keys_of(raw_indices(mine), t.sizes()), others = ops::keys_of(raw_indices(theirs), t.sizes());
  const Tensor both = nonzero(isin(keys, others)).view({-1});
  const Tensor at = searchsorted(others, index_select(keys, 0, both));
  const Tensor values = index_select(ops::values_of(mine), 0, both) * index_select(ops::values_of(theirs), 0, at);
  const Tensor out = ops::with_values(index_select(raw_indices(mine), 1, both), values, t.sizes(), true);
  return ops::in_layout_of(out, t);
}

Tensor quotient(ir::OpId id, const Operand& a, const Operand& b) {
  if (!a.is_tensor() || !has_sparse_form(a.tensor()) || !is_number(b))
    throw RuntimeError("Sparse division requires a scalar or zero-dim dense tensor divisor");
  const Tensor& t = a.tensor();
  const Tensor own = id == o::div || is_compressed(t) ? t : coalesce(t);  // only true division distributes over a sum of equal coordinates
  return ops::like_with_values(own, from_run(id, {ops::values_of(own), b}));
}

}  // namespace

namespace ops {

void throw_no_sparse(const char* op, const Tensor& t) {
  std::string kind(name_of(t.device().type));
  std::transform(kind.begin(), kind.end(), kind.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  throw NotImplementedError(
      "Could not run 'aten::{}' with arguments from the '{}{}' backend. (there is no sparse form of this operator; tensor.to_dense() gives "
      "it a dense one)",
      op, is_compressed(t) ? "SparseCsr" : "Sparse", kind);
}

void throw_parts(const char* op, const Tensor& t) {
  if (is_batched(t)) throw batching::NoBatchingRule(op);
  throw_no_sparse(op, t);
}

Tensor run_sparse(ir::OpId id, std::span<const Operand> operands) {
  if (operands.size() == 1 && ops::record_of(id).zero != operators::Zero::Changes) return unary(id, operands[0].tensor());
  if (id == o::add) return added(operands[0], operands[1], 1, "add");
  if (id == o::sub) return added(operands[0], operands[1], -1, "sub");
  if (id == o::add_scaled && !operands[2].is_tensor()) return added(operands[0], operands[1], operands[2].scalar(), "add");
  if (id == o::mul) return multiplied(operands[0], operands[1]);
  if (id == o::div || id == o::floor_divide || id == o::div_trunc) return quotient(id, operands[0], operands[1]);
  if (id == o::pow && !operands[1].is_tensor() && operands[1].scalar().real() > 0)
    return map_stored(operands[0].tensor(), [&](const Tensor& values) { return from_run(id, {values, operands[1]}); });
  throw_no_sparse(table()[id].name, sparse_one(operands));
}

void run_sparse_in_place(ir::OpId id, const Tensor& target, std::span<const Operand> others) {
  std::vector<Operand> operands{Operand(target)};
  operands.insert(operands.end(), others.begin(), others.end());
  if (!has_sparse_form(target)) {
    if (id == o::mul && others[0].is_tensor()) {
      const Tensor whole = to_dense(others[0].tensor());
      const Operand by(whole);
      return run_op_in_place(id, target, {&by, 1});
    }
    const bool adds = id == o::add || id == o::sub || (id == o::add_scaled && !others[1].is_tensor());
    if (!adds || !others[0].is_tensor()) throw_no_sparse(table()[id].name, sparse_one(operands));
    const Scalar factor = id == o::add ? Scalar(1) : id == o::sub ? Scalar(-1) : others[1].scalar();
    const Tensor& t = others[0].tensor();
    if (category_of(t.dtype()) > category_of(target.dtype()))
      throw RuntimeError("result type {} can't be cast to the desired output type {}", torch_name(t.dtype()), torch_name(target.dtype()));
    if (target.is_contiguous() && target.sizes() == t.sizes()) {
      scattered(target, t, factor, true);
      return;
    }
    const Tensor whole = factor.equals(1) ? to_dense(t) : to_dense(t) * factor;
    const Operand by(whole);
    return run_op_in_place(o::add, target, {&by, 1});
  }
  if (autograd::recording_write(target) || autograd::recording({&target}))
    throw RuntimeError(
        "a leaf Variable that requires grad is being used in an in-place operation. (sparse tensors with a history are not "
        "written in place: use the operator that returns a new one)");
  const NoGrad off;
  const Tensor made = run_sparse(id, operands);
  if (layout(made) != layout(target) || !(made.sizes() == target.sizes()))
    throw RuntimeError("{}_: the result is of layout torch.{} and size {}, and the tensor to write of layout torch.{} and size {}",
                       table()[id].name, name_of(layout(made)), made.sizes().str(), name_of(layout(target)), target.sizes().str());
  if (made.dtype() != target.dtype())
    throw RuntimeError("result type {} can't be cast to the desired output type {}", torch_name(made.dtype()), torch_name(target.dtype()));
  autograd::before_write(target);
  target.impl()->set_parts(made.impl()->parts, kSparse);
  bump_version(target);
}

Tensor sparse_clone(const Tensor& t) { return like_with_values(t, values_of(t).clone()); }

Tensor sparse_to(const Tensor& t, Device device, DType dtype, bool copy) {
  if (!copy && device == t.device() && dtype == t.dtype()) return t;
  const Tensor values = values_of(t).to(device, dtype, false, copy);
  if (device == t.device()) return like_with_values(t, values);
  const SparseParts& p = parts_of(t);
  if (is_compressed(t)) return compressed_to(t, device, values);
  return with_values(p.indices.to(device), values, t.sizes(), p.coalesced);
}

Tensor sparse_transpose(const Tensor& given, int64_t a, int64_t b) {
  a = wrap_dim(a, given.dim()), b = wrap_dim(b, given.dim());
  Dims order;
  for (int64_t d = 0; d < given.dim(); ++d) order.push_back(d == a ? b : d == b ? a : d);
  return sparse_permute(given, order);
}

Tensor add_gradients(const Tensor& a, const Tensor& b) { return has_sparse_form(a) && !has_sparse_form(b) ? b + a : a + b; }

}  // namespace ops

namespace sparse {
namespace {

Options like(const Tensor& t) { return Options(DType::I64, t.device()); }

// a @ b, a sparse and b dense: for each stored element (i, k) of a, adds its value times row k of b to row i.
Tensor sparse_by_dense(const Tensor& a, const Tensor& b) {
  const Tensor indices = ops::coordinates_of(a);
  const Tensor values = ops::elements_of(a);
  const Tensor rows = values.unsqueeze(1) * index_select(b, 0, indices.select(0, 1));
  return index_add(zeros({a.size(0), b.size(1)}, Options(b.dtype(), b.device())), 0, indices.select(0, 0), rows);
}

// a @ b, both sparse: multiplies each stored element (i, k) of a by all stored elements of row k of b.
Tensor sparse_by_sparse(const Tensor& a, const Tensor& b) {
  const Tensor left = coalesce(ops::as_coo(a)), right = to_sparse_csr(b);
  const ops::SparseParts &pl = ops::parts_of(left), &pr = ops::parts_of(right);
  const Tensor rows = pl.indices.select(0, 0), inner = pl.indices.select(0, 1);
  const Tensor lines = pr.crow.to(DType::I64), begins = index_select(lines, 0, inner), counts = index_select(lines, 0, inner + 1) - begins;
  const Tensor from = repeat_interleave(arange(0, rows.numel(), 1, like(a)), counts);
  const Tensor first = cumsum(counts, 0) - counts;
  const Tensor at = arange(0, from.numel(), 1, like(a)) - index_select(first, 0, from) + index_select(begins, 0, from);
  const Tensor values = index_select(ops::values_of(left), 0, from) * index_select(ops::values_of(right), 0, at);
  const Tensor indices = stack({index_select(rows, 0, from), index_select(pr.indices, 0, at)});
  const Tensor out = coalesce(ops::with_values(indices, values, {a.size(0), b.size(1)}, false));
  return is_compressed(a) && is_compressed(b) ? to_sparse_csr(out) : out;
}

void require_matrices(const Tensor& a, const Tensor& b, const char* op) {
  for (const Tensor* t : {&a, &b}) {
    ops::require_defined(*t, op, "an operand");
    if (t->dim() != 2)
      throw RuntimeError("{}: Expected a matrix, got a tensor with {} dimensions (shape {})", op, t->dim(), t->sizes().str());
    if (has_sparse_form(*t) && dense_dim(*t) != 0) throw RuntimeError("{}: Expected no dense dimensions, got {}", op, dense_dim(*t));
  }
  if (a.size(1) != b.size(0))
    throw RuntimeError(
        "mm: mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{}): {} wants as many columns of the first as rows of the second",
        a.size(0), a.size(1), b.size(0), b.size(1), op);
  if (a.dtype() != b.dtype())
    throw RuntimeError("expected m1 and m2 to have the same dtype, but got: {} != {} ({})", ops::c_name(a.dtype()), ops::c_name(b.dtype()),
                       op);
  const Tensor* tensors[] = {&a, &b};
  const char* roles[] = {"mat1", "mat2"};
  ops::common_device(tensors, roles, op);
}

Tensor normalised(const Tensor& given, int64_t dim, std::optional<DType> dtype, bool log, const char* op) {
  ops::require_defined(given, op, "input");
  if (!is_sparse(given)) throw NotImplementedError("{}: wanted a sparse COO tensor, got layout {}", op, name_of(layout(given)));
  const Tensor t = coalesce(dtype ? ops::sparse_to(given, given.device(), *dtype, false) : given);
  if (!is_floating(t.dtype())) throw NotImplementedError("\"softmax\" not implemented for '{}'", ops::torch_name(t.dtype()));
  const int64_t d = wrap_dim(dim, t.dim()), dims = sparse_dim(t);
  const Tensor values = ops::values_of(t);
  if (d >= dims) return ops::like_with_values(t, log ? naru::log_softmax(values, d - dims + 1) : naru::softmax(values, d - dims + 1));
  if (stored_count(t) == 0) return t;
  // Elements whose coordinates differ in dimension d alone form a group; each group is normalized.
  const Tensor indices = raw_indices(t);
  Dims sizes = t.sizes();
  sizes[static_cast<size_t>(d)] = 1;
  const Tensor others = indices.clone();
  others.select(0, d).zero_();
  const auto [keys, group, counts] = unique(ops::keys_of(others, sizes));
  Dims shape = values.sizes();
  shape[0] = keys.numel();
  const Options own(values.dtype(), values.device());
  Dims line(shape.size(), 1);
  line[0] = values.size(0);
  const Tensor at = group.view(line).expand(values.sizes());
  const Tensor lowest = full(shape, -std::numeric_limits<double>::infinity(), own);
  const Tensor greatest = scatter_reduce(lowest, 0, at.contiguous(), values.detach(), "amax", true);
  const Tensor shifted = values - index_select(greatest, 0, group);
  const Tensor e = exp(shifted);
  const Tensor sums = index_select(index_add(zeros(shape, own), 0, group, e), 0, group);
  return ops::like_with_values(t, log ? shifted - naru::log(sums) : e / sums);
}

}  // namespace

Tensor mm(const Tensor& a, const Tensor& b) {
  require_matrices(a, b, "mm");
  const bool left = has_sparse_form(a), right = has_sparse_form(b);
  if (left && right) return sparse_by_sparse(a, b);
  if (left) return sparse_by_dense(a, b);
  if (right) return sparse_by_dense(ops::sparse_transpose(b, 0, 1), a.t()).t();
  return naru::mm(a, b);
}

// Computes one product with the block-diagonal matrix of the batches.
Tensor bmm(const Tensor& a, const Tensor& b) {
  if (has_sparse_form(a) == has_sparse_form(b)) ops::throw_no_sparse("bmm", b);
  if (has_sparse_form(b)) return sparse::bmm(b.transpose(1, 2), a.transpose(1, 2)).transpose(1, 2);
  const Tensor at = ops::coordinates_of(a), values = ops::elements_of(a);
  if (at.size(0) != 3) throw RuntimeError("bmm: wanted three sparse dimensions, got {} (shape {})", at.size(0), a.sizes().str());
  const int64_t batches = a.size(0), n = a.size(1), k = a.size(2);
  const Tensor batch = at.select(0, 0), places = stack({batch * n + at.select(0, 1), batch * k + at.select(0, 2)});
  const Tensor whole = ops::with_values(places, values, {batches * n, batches * k}, false);
  return sparse_by_dense(whole, b.reshape({batches * k, b.size(2)})).view({batches, n, b.size(2)});
}

Tensor mm(const Tensor& a, const Tensor& b, std::string_view reduce) {
  require_matrices(a, b, "sparse_mm_reduce");
  if (!is_sparse_csr(a) || has_sparse_form(b))
    throw RuntimeError("sparse_mm_reduce: expect mat1 to be a CSR matrix and mat2 a dense one, got layouts torch.{} and torch.{}",
                       name_of(layout(a)), name_of(layout(b)));
  if (reduce != "sum" && reduce != "mean" && reduce != "amax" && reduce != "amin")
    throw RuntimeError("reduce argument must be either sum, mean, amax or amin, got {}", reduce);
  const DType type = size_of(b.dtype()) == 2 ? DType::F32 : b.dtype();  // accumulate in float32, so that the result is rounded once
  const Tensor at = ops::coordinates_of(a.detach());
  const Tensor products = sparse_values(a).to(type).unsqueeze(1) * index_select(b.to(type), 0, at.select(0, 1));
  const Tensor none = zeros({a.size(0), b.size(1)}, Options(type, b.device()));
  const Tensor rows = at.select(0, 0).unsqueeze(1).expand(products.sizes());
  return scatter_reduce(none, 0, rows, products, reduce, false).to(b.dtype());
}

Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  ops::require_defined(c, "addmm", "input");
  if (has_sparse_form(c)) throw RuntimeError("expand is unsupported for Sparse tensors (addmm: the first tensor must be dense)");
  const Tensor product = sparse::mm(a, b), scaled = alpha.equals(1) ? product : product * alpha;
  if (beta.equals(0)) return to_dense(scaled);
  return (beta.equals(1) ? c : c * beta) + scaled;
}

Tensor sampled_addmm(const Tensor& s, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  for (const Tensor* t : {&s, &a, &b}) ops::require_defined(*t, "sampled_addmm", "input");
  if (layout(s) != Layout::SparseCsr)
    throw RuntimeError("sampled_addmm: Expected self to have sparse csr layout, got torch.{}", name_of(layout(s)));
  for (const Tensor* t : {&a, &b})
    if (has_sparse_form(*t))
      throw RuntimeError("sampled_addmm: Expected mat{} to have strided layout, got torch.{}", t == &a ? 1 : 2, name_of(layout(*t)));
  const int64_t dims = s.dim(), batches = dims - 2;
  const auto fits = [&] {
    if (a.dim() != dims || b.dim() != dims || dense_dim(s) != 0) return false;
    for (int64_t d = 0; d < batches; ++d)
      if (a.size(d) != s.size(d) || b.size(d) != s.size(d)) return false;
    return a.size(-1) == b.size(-2) && a.size(-2) == s.size(-2) && b.size(-1) == s.size(-1);
  };
  if (!fits()) throw RuntimeError("sampled_addmm: shapes of {}, {} and {} do not fit", s.sizes().str(), a.sizes().str(), b.sizes().str());
  // For each stored element, the row of a and the column of b whose dot product it needs.
  const Tensor at = ops::coordinates_of(s), columns = b.transpose(-1, -2);
  const Tensor row_places = ops::keys_of(at.narrow(0, 0, batches + 1), s.sizes());
  const Tensor column_places = ops::keys_of(cat({at.narrow(0, 0, batches), at.narrow(0, batches + 1, 1)}, 0), columns.sizes());
  const auto rows_of = [&](const Tensor& t) {
    const Dims rows(std::span<const int64_t>(t.sizes()).first(static_cast<size_t>(batches) + 1));
    return t.reshape({product(rows), t.size(-1)});
  };
  const Tensor left = rows_of(a).index_select(0, row_places), right = rows_of(columns).index_select(0, column_places);
  return ops::like_with_elements(s, ops::elements_of(s) * beta + naru::sum(left * right, Dims{-1}) * alpha);
}

Tensor sum(const Tensor& given, const OptionalDims& dims, std::optional<DType> dtype) {
  ops::require_defined(given, "sum", "input");
  if (!has_sparse_form(given)) throw RuntimeError("coalesce expected sparse coordinate tensor layout but got Strided");
  const Tensor values = ops::values_of(given);
  if (!dims) return naru::sum(values, std::nullopt, false, dtype);  // its backward gives gradients to stored elements only
  const Tensor t = coalesce(ops::as_coo(given)), own = ops::values_of(t);
  std::vector<bool> gone(t.sizes().size());
  for (const int64_t given_dim : *dims) {
    const auto d = static_cast<size_t>(wrap_dim(given_dim, t.dim()));
    if (gone[d]) throw RuntimeError("dim {} appears multiple times in the list of dims", d);
    gone[d] = true;
  }
  const int64_t count = sparse_dim(t);
  Dims inner, sizes;
  std::vector<int64_t> left;
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (!gone[static_cast<size_t>(d)]) sizes.push_back(t.size(d));
    if (d < count && !gone[static_cast<size_t>(d)]) left.push_back(d);
    if (d >= count && gone[static_cast<size_t>(d)]) inner.push_back(d - count + 1);
  }
  // Integers keep their dtype if only sparse dimensions, and not all of them, are reduced; otherwise the sum is int64.
  const bool moved = inner.empty() && !left.empty();
  const DType type = dtype.value_or(moved || is_inexact(t.dtype()) ? t.dtype() : DType::I64);
  const Tensor sums = inner.empty() ? own.to(type) : naru::sum(own, inner, false, type);
  if (left.empty()) return naru::sum(sums, Dims{0});
  const Tensor indices = index_select(raw_indices(t), 0, tensor(left, like(t)));
  const Tensor out = ops::with_values(indices, sums, sizes, static_cast<int64_t>(left.size()) == count);
  return coalesce(out);
}

Tensor softmax(const Tensor& t, int64_t dim, std::optional<DType> dtype) { return normalised(t, dim, dtype, false, "_sparse_softmax"); }
Tensor log_softmax(const Tensor& t, int64_t dim, std::optional<DType> dtype) {
  return normalised(t, dim, dtype, true, "_sparse_log_softmax");
}

}  // namespace sparse
}  // namespace naru
