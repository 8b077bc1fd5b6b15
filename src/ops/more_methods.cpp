// The methods of naru/tensor_methods.inc.
#include "naru/autograd.h"
#include "naru/compositions.h"
#include "naru/linalg.h"
#include "naru/ops.h"

namespace naru {
namespace {

// What is not said is as the tensor has it.
Options like_this(const Tensor& t, Options o) {
  if (!o.dtype) o.dtype = t.dtype();
  if (!o.device) o.device = t.device();
  return o;
}

}  // namespace

const Tensor& Tensor::write_result(const Tensor& made, const char* method) const {
  if (category_of(made.dtype()) > category_of(dtype()))
    throw RuntimeError("result type {} can't be cast to the desired output type {} ({} writes to its tensor)",
                       traits_of(made.dtype()).scalar_type, traits_of(dtype()).scalar_type, method);
  if (made.sizes() != sizes())
    throw RuntimeError("output with shape {} doesn't match the broadcast shape {} ({})", sizes().str(), made.sizes().str(), method);
  return copy_(made);
}

Tensor Tensor::to_be_written() const { return grad_enabled() && requires_grad() ? clone() : *this; }

int64_t Tensor::stride(int64_t d) const {
  if (strides().empty()) throw IndexError("Dimension specified as {} but tensor has no dimensions", d);
  return strides()[static_cast<size_t>(wrap_dim(d, dim()))];
}

Tensor Tensor::argmin(std::optional<int64_t> dim, bool keepdim) const { return naru::argmin(*this, dim, keepdim); }
Tensor Tensor::prod(std::optional<int64_t> dim, bool keepdim) const { return naru::prod(*this, dim, keepdim); }
Tensor Tensor::amax(const OptionalDims& dims, bool keepdim) const { return naru::amax(*this, dims, keepdim); }
Tensor Tensor::amin(const OptionalDims& dims, bool keepdim) const { return naru::amin(*this, dims, keepdim); }
std::pair<Tensor, Tensor> Tensor::max(int64_t dim, bool keepdim) const { return naru::max(*this, dim, keepdim); }
std::pair<Tensor, Tensor> Tensor::min(int64_t dim, bool keepdim) const { return naru::min(*this, dim, keepdim); }
Tensor Tensor::any(const OptionalDims& dims, bool keepdim) const { return naru::any(*this, dims, keepdim); }
Tensor Tensor::all(const OptionalDims& dims, bool keepdim) const { return naru::all(*this, dims, keepdim); }
Tensor Tensor::var(const OptionalDims& dims, double correction, bool keepdim) const { return naru::var(*this, dims, correction, keepdim); }
Tensor Tensor::std(const OptionalDims& dims, double correction, bool keepdim) const { return naru::std(*this, dims, correction, keepdim); }
Tensor Tensor::norm(double p, const OptionalDims& dims, bool keepdim) const { return naru::norm(*this, p, dims, keepdim); }
Tensor Tensor::logsumexp(const Dims& dims, bool keepdim) const { return naru::logsumexp(*this, dims, keepdim); }
Tensor Tensor::cumsum(int64_t dim) const { return naru::cumsum(*this, dim); }
Tensor Tensor::cumprod(int64_t dim) const { return naru::cumprod(*this, dim); }
Tensor Tensor::count_nonzero(const OptionalDims& dims) const { return naru::count_nonzero(*this, dims); }
bool Tensor::equal(const Tensor& b) const { return naru::equal(*this, b); }
bool Tensor::allclose(const Tensor& b, double rtol, double atol, bool equal_nan) const {
  return naru::allclose(*this, b, rtol, atol, equal_nan);
}
Tensor Tensor::mm(const Tensor& b) const { return naru::mm(*this, b); }
Tensor Tensor::bmm(const Tensor& b) const { return naru::bmm(*this, b); }
Tensor Tensor::mv(const Tensor& v) const { return naru::mv(*this, v); }
Tensor Tensor::dot(const Tensor& b) const { return naru::dot(*this, b); }
Tensor Tensor::outer(const Tensor& b) const { return naru::outer(*this, b); }
Tensor Tensor::addmm(const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) const { return naru::addmm(*this, a, b, beta, alpha); }
std::vector<Tensor> Tensor::split(int64_t size, int64_t dim) const { return naru::split(*this, size, dim); }
std::vector<Tensor> Tensor::split(const Dims& sizes, int64_t dim) const { return naru::split(*this, sizes, dim); }
std::vector<Tensor> Tensor::chunk(int64_t count, int64_t dim) const { return naru::chunk(*this, count, dim); }
std::vector<Tensor> Tensor::unbind(int64_t dim) const { return naru::unbind(*this, dim); }
Tensor Tensor::repeat(const Dims& times) const { return naru::repeat(*this, times); }
Tensor Tensor::flip(const Dims& dims) const { return naru::flip(*this, dims); }
Tensor Tensor::roll(const Dims& shifts, const Dims& dims) const { return naru::roll(*this, shifts, dims); }
Tensor Tensor::tril(int64_t diagonal) const { return naru::tril(*this, diagonal); }
Tensor Tensor::triu(int64_t diagonal) const { return naru::triu(*this, diagonal); }
Tensor Tensor::broadcast_to(const Dims& shape) const { return naru::broadcast_to(*this, shape); }
Tensor Tensor::expand_as(const Tensor& other) const { return expand(other.sizes()); }
Tensor Tensor::view_as(const Tensor& other) const { return view(other.sizes()); }
Tensor Tensor::reshape_as(const Tensor& other) const { return reshape(other.sizes()); }
Tensor Tensor::type_as(const Tensor& other) const { return to(other.device(), other.dtype(), false, false); }
Tensor Tensor::to(const Tensor& other) const { return to(other.device(), other.dtype(), false, false); }
Tensor Tensor::gather(int64_t dim, const Tensor& index) const { return naru::gather(*this, dim, index); }
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Operand& value) const { return naru::scatter(*this, dim, index, value); }
Tensor Tensor::scatter_add(int64_t dim, const Tensor& index, const Tensor& value) const {
  return naru::scatter_add(*this, dim, index, value);
}
const Tensor& Tensor::scatter_(int64_t dim, const Tensor& index, const Operand& value) const {
  naru::scatter_(*this, dim, index, value);
  return *this;
}
const Tensor& Tensor::scatter_add_(int64_t dim, const Tensor& index, const Tensor& value) const {
  naru::scatter_add_(*this, dim, index, value);
  return *this;
}
const Tensor& Tensor::index_add_(int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha) const {
  naru::index_add_(*this, dim, index, source, alpha);
  return *this;
}
Tensor Tensor::index_select(int64_t dim, const Tensor& index) const { return naru::index_select(*this, dim, index); }
Tensor Tensor::masked_select(const Tensor& mask) const { return naru::masked_select(*this, mask); }
Tensor Tensor::masked_fill(const Tensor& mask, const Operand& value) const { return naru::masked_fill(*this, mask, value); }
const Tensor& Tensor::masked_fill_(const Tensor& mask, const Operand& value) const {
  naru::masked_fill_(*this, mask, value);
  return *this;
}
Tensor Tensor::nonzero() const { return naru::nonzero(*this); }
Tensor Tensor::take(const Tensor& index) const { return naru::take(*this, index); }
std::pair<Tensor, Tensor> Tensor::sort(int64_t dim, bool descending) const { return naru::sort(*this, dim, descending); }
Tensor Tensor::argsort(int64_t dim, bool descending) const { return naru::argsort(*this, dim, descending); }
std::pair<Tensor, Tensor> Tensor::topk(int64_t k, int64_t dim, bool largest, bool sorted) const {
  return naru::topk(*this, k, dim, largest, sorted);
}
Tensor Tensor::bincount(int64_t minlength) const { return naru::bincount(*this, minlength); }
Tensor Tensor::clip(const Operand& low, const Operand& high) const { return clamp(low, high); }
const Tensor& Tensor::clip_(const Operand& low, const Operand& high) const { return clamp_(low, high); }
Tensor Tensor::softmax(int64_t dim, std::optional<DType> dtype) const { return naru::softmax(*this, dim, dtype); }
Tensor Tensor::log_softmax(int64_t dim, std::optional<DType> dtype) const { return naru::log_softmax(*this, dim, dtype); }
Tensor Tensor::bernoulli() const { return naru::bernoulli(*this); }
const Tensor& Tensor::bernoulli_(double p) const {
  naru::bernoulli_(*this, p);
  return *this;
}
const Tensor& Tensor::random_(int64_t low, int64_t high) const {
  naru::random_(*this, low, high);
  return *this;
}
Tensor Tensor::multinomial(int64_t samples, bool replacement) const { return naru::multinomial(*this, samples, replacement); }
Options Tensor::options() const { return Options(dtype(), device()); }
Tensor Tensor::new_empty(const Dims& sizes, const Options& options) const { return naru::empty(sizes, like_this(*this, options)); }
Tensor Tensor::new_zeros(const Dims& sizes, const Options& options) const { return naru::zeros(sizes, like_this(*this, options)); }
Tensor Tensor::new_ones(const Dims& sizes, const Options& options) const { return naru::ones(sizes, like_this(*this, options)); }
Tensor Tensor::new_full(const Dims& sizes, Scalar value, const Options& options) const {
  return naru::full(sizes, value, like_this(*this, options));
}
bool Tensor::is_cuda() const { return device().type == DeviceType::Cuda; }
bool Tensor::is_cpu() const { return device().type == DeviceType::Cpu; }
bool Tensor::is_floating_point() const { return is_floating(dtype()); }
bool Tensor::is_complex() const { return naru::is_complex(dtype()); }
size_t Tensor::nbytes() const { return static_cast<size_t>(numel()) * element_size(); }
Tensor Tensor::inverse() const { return naru::inverse(*this); }
Tensor Tensor::det() const { return linalg::det(*this); }
Tensor Tensor::logdet() const { return naru::logdet(*this); }
std::pair<Tensor, Tensor> Tensor::slogdet() const { return linalg::slogdet(*this); }
Tensor Tensor::cholesky(bool upper) const { return linalg::cholesky(*this, upper); }
std::pair<Tensor, Tensor> Tensor::qr(bool some) const { return linalg::qr(*this, some ? "reduced" : "complete"); }
std::tuple<Tensor, Tensor, Tensor> Tensor::svd(bool some) const { return naru::svd(*this, some); }
Tensor Tensor::pinverse(double rcond) const { return naru::pinverse(*this, rcond); }
Tensor Tensor::matrix_power(int64_t n) const { return linalg::matrix_power(*this, n); }
Tensor Tensor::matrix_exp() const { return linalg::matrix_exp(*this); }

}  // namespace naru
