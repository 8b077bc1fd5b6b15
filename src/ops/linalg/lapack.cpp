#include "ops/linalg/lapack.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/sizes.h"
#include "ops/complex/complex.h"
#include "ops/tensor/type_names.h"

namespace naru::ops {

using ir::Lapack;

void require_matrices(const Tensor& t, std::string_view op, const char* name) {
  require_defined(t, "linalg", name);
  if (t.dim() < 2) throw RuntimeError("{}: The input tensor {} must have at least 2 dimensions.", op, name);
}

void require_square(const Tensor& t, std::string_view op, const char* name) {
  require_matrices(t, op, name);
  if (t.size(-1) != t.size(-2))
    throw RuntimeError("{}: {} must be batches of square matrices, but they are {} by {} matrices", op, name, t.size(-2), t.size(-1));
}

void require_floating(const Tensor& t, std::string_view op, bool low) {
  if (!is_inexact(t.dtype()))
    throw NotImplementedError("{}: Expected a floating point or complex tensor as input. Got {}", op, torch_name(t.dtype()));
  if (!low && (t.dtype() == DType::F16 || t.dtype() == DType::BF16 || t.dtype() == kComplex32))
    throw NotImplementedError("{}: Low precision dtypes not supported. Got {}", op, torch_name(t.dtype()));
}

bool is_lapack_type(DType type) { return type == DType::F32 || type == DType::F64 || type == kComplex64 || type == kComplex128; }

void require_lapack_type(const Tensor& t, const char* kernel) {
  if (!is_lapack_type(t.dtype())) throw_not_implemented(kernel, t.dtype());
}

bool is_vector_right_side(const Tensor& a, const Tensor& b) {
  return b.dim() == 1 || (b.dim() + 1 == a.dim() && b.sizes() == Dims(std::span<const int64_t>(a.sizes()).first(a.sizes().size() - 1)));
}

Device require_one_device(const Tensor& a, const Tensor& b, const char* op, const char* name_a, const char* name_b) {
  const Tensor* const tensors[] = {&a, &b};
  const char* const roles[] = {name_a, name_b};
  if (a.device() == b.device()) return a.device();
  const Device device = common_device(tensors, roles, op);
  // Elsewhere a 0-d tensor counts as a scalar and may be on another device; here it may not.
  throw RuntimeError(
      "Expected all tensors to be on the same device, but found at least two devices, {} and {}! ({}: {} and {}; results on {})",
      a.device().str(), b.device().str(), op, name_a, name_b, device.str());
}

namespace {

// The meaning of info > 0, by the first word that the function's name contains.
struct Meaning {
  std::string_view word;
  const char* text;
};
constexpr Meaning kMeanings[] = {
    {"lu_factor",
     "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the factorization, "
     "consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"},
    {"ldl", "D[{0},{0}] is zero: the factorization has been completed, and ldl_solve would divide by zero"},
    {"inv", "The diagonal element {0} is zero, the inversion could not be completed because the input matrix is singular."},
    {"solve", "The solver failed because the input matrix is singular."},
    {"cholesky",
     "The factorization could not be completed because the input is not positive-definite (the leading minor of order {0} is not "
     "positive-definite)."},
    {"svd",
     "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated singular values (error code: "
     "{0})."},
    {"eig",
     "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues (error code: "
     "{0})."},
    {"lstsq", "The least squares solution could not be computed because the input matrix does not have full rank (error code: {0})."},
};

std::string meaning(std::string_view api, int64_t info) {
  if (info < 0)
    return api.find("svd") != std::string_view::npos && info == -4
               ? "The algorithm failed to converge because the input matrix contained non-finite values."
               : fmt::format("Argument {} has illegal value. (infinite elements, or NaN)", -info);
  for (const Meaning& m : kMeanings)
    if (api.find(m.word) != std::string_view::npos) return fmt::format(fmt::runtime(m.text), info);
  return fmt::format("LAPACK failed with error code {}", info);
}

}  // namespace

void check_info(const Tensor& info, std::string_view api, bool batched) {
  if (is_batched(info)) return check_info(batch_parts(info).value, api, true);
  if (info.numel() == 0 || info.device().is_meta()) return;
  const std::vector<int64_t> numbers = info.to_ints();
  const auto bad = std::find_if(numbers.begin(), numbers.end(), [](int64_t i) { return i != 0; });
  if (bad == numbers.end()) return;
  throw LinAlgError(
      fmt::format("{}: {}{}", api, batched ? fmt::format("(Batch element {}): ", bad - numbers.begin()) : "", meaning(api, *bad)));
}

Dims batch_of(const Tensor& t) { return Dims(std::span<const int64_t>(t.sizes()).first(t.sizes().size() - 2)); }

Dims with_matrix(const Dims& batch, int64_t rows, int64_t cols) {
  Dims sizes = batch;
  sizes.push_back(rows), sizes.push_back(cols);
  return sizes;
}

Tensor adjoint_of(const Tensor& t) { return conjugate(flipped(t)); }

Tensor identity_like(const Tensor& t, int64_t n) {
  return eye(n, n, Options(t.dtype(), t.device())).expand(with_matrix(batch_of(t), n, n));
}

namespace {

Dims column_major(const Dims& batch, int64_t rows, int64_t cols) {
  Dims strides = contiguous_strides(with_matrix(batch, cols, rows));
  std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
  return strides;
}

// True if t has these sizes and strides; strides of dimensions of size 1 are ignored.
bool has_layout(const Tensor& t, const Dims& sizes, const Dims& strides) {
  if (!(t.sizes() == sizes)) return false;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] != 1 && t.strides()[d] != strides[d]) return false;
  return true;
}

Tensor copied(const Tensor& t, const Dims& sizes, const Dims& strides, const char* op) {
  const Tensor out = make_result(sizes, strides, t.dtype(), t.device(), op);
  const OpOperand from{&t, {}, t.dtype()};
  apply_into(ir::op::copy, {&from, 1}, out);
  return out;
}

}  // namespace

Tensor new_matrices(const Dims& batch, int64_t rows, int64_t cols, const Tensor& like, const char* op) {
  return make_result(with_matrix(batch, rows, cols), column_major(batch, rows, cols), like.dtype(), like.device(), op);
}

Tensor copied_matrices(const Tensor& t, const Dims& batch, const char* op) {
  return copied(t, with_matrix(batch, t.size(-2), t.size(-1)), column_major(batch, t.size(-2), t.size(-1)), op);
}

Tensor as_matrices(const Tensor& t, const Dims& batch, const char* op) {
  return has_layout(t, with_matrix(batch, t.size(-2), t.size(-1)), column_major(batch, t.size(-2), t.size(-1)))
             ? t
             : copied_matrices(t, batch, op);
}

Tensor new_vectors(const Dims& batch, int64_t n, DType type, const Tensor& like, const char* op) {
  Dims sizes = batch;
  sizes.push_back(n);
  return make_result(sizes, type, like.device(), op);
}

Tensor as_vectors(const Tensor& t, const Dims& batch, const char* op) {
  Dims sizes = batch;
  sizes.push_back(t.size(-1));
  const Dims strides = contiguous_strides(sizes);
  return has_layout(t, sizes, strides) ? t : copied(t, sizes, strides, op);
}

LapackCall::LapackCall(Lapack::Routine routine, const Dims& batch, DType type) : batch_(batch) {
  call_.routine = routine;
  call_.dtype = real_of(type);
  call_.complex = is_complex(type);
  call_.batch = product(batch);
}

LapackCall& LapackCall::add(const Tensor& t, bool written, bool vector) {
  Lapack::Array a;
  a.complex = is_complex(t.dtype());
  const Tensor real = a.complex ? as_real(t) : t;
  a.data = view_of(real, real.sizes()).data;
  a.dtype = real.dtype();
  a.written = written;
  a.rows = vector ? t.size(-1) : t.size(-2);
  a.cols = vector ? 1 : t.size(-1);
  a.column = std::max<int64_t>(a.rows, 1);
  a.matrix = a.rows * a.cols;
  call_.arrays.push_back(a);
  (written ? writes_ : reads_).push_back(real);
  return *this;
}

Tensor LapackCall::run() {
  const Tensor& first = writes_.empty() ? reads_[0] : writes_[0];
  const Tensor info = make_result(batch_, DType::I32, first.device(), call_.name());
  if (call_.batch == 0) return info;
  Lapack::Array a;
  a.data = view_of(info, info.sizes()).data;
  a.dtype = DType::I32;
  a.written = true;
  a.rows = a.cols = a.column = a.matrix = 1;
  call_.arrays.push_back(a);
  writes_.push_back(info);
  const auto pointers = [](const std::vector<Tensor>& tensors) {
    std::vector<const Tensor*> all;
    for (const Tensor& t : tensors) all.push_back(&t);
    return all;
  };
  submit(std::move(call_), pointers(reads_), pointers(writes_));
  return info;
}

}  // namespace naru::ops
