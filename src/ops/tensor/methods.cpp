// Methods of Tensor that call the function of the same name; function_methods.inc has the generated ones.
#include "naru/autograd.h"
#include "naru/ops.h"
#include "naru/ops/aliases.h"
#include "naru/ops/complex.h"
#include "naru/ops/functions.h"
#include "naru/ops/linalg.h"
#include "naru/ops/sparse.h"
#include "naru/ops/special.h"

namespace naru {

Tensor Tensor::add(const Operand& b, Scalar alpha) const { return naru::add(*this, b, alpha); }
Tensor Tensor::sub(const Operand& b, Scalar alpha) const { return naru::sub(*this, b, alpha); }
Tensor Tensor::rsub(const Operand& b) const { return naru::rsub(*this, b); }
const Tensor& Tensor::add_(const Operand& b, Scalar alpha) const {
  naru::add_(*this, b, alpha);
  return *this;
}
const Tensor& Tensor::sub_(const Operand& b, Scalar alpha) const {
  naru::sub_(*this, b, alpha);
  return *this;
}
Tensor Tensor::div(const Operand& b, std::optional<std::string_view> rounding_mode) const { return naru::div(*this, b, rounding_mode); }
const Tensor& Tensor::div_(const Operand& b, std::optional<std::string_view> rounding_mode) const {
  naru::div_(*this, b, rounding_mode);
  return *this;
}
Tensor Tensor::addcmul(const Tensor& a, const Tensor& b, Scalar value) const { return naru::addcmul(*this, a, b, value); }
Tensor Tensor::addcdiv(const Tensor& a, const Tensor& b, Scalar value) const { return naru::addcdiv(*this, a, b, value); }
const Tensor& Tensor::addcmul_(const Tensor& a, const Tensor& b, Scalar value) const {
  naru::addcmul_(*this, a, b, value);
  return *this;
}
const Tensor& Tensor::addcdiv_(const Tensor& a, const Tensor& b, Scalar value) const {
  naru::addcdiv_(*this, a, b, value);
  return *this;
}
const Tensor& Tensor::lerp_(const Tensor& end, const Operand& weight) const {
  naru::lerp_(*this, end, weight);
  return *this;
}
const Tensor& Tensor::round_(int64_t decimals) const {
  naru::round_(*this, decimals);
  return *this;
}
const Tensor& Tensor::resize_(const Dims& sizes, std::optional<MemoryFormat> format) const {
  naru::resize_(*this, sizes, format);
  return *this;
}
const Tensor& Tensor::resize_as_(const Tensor& model, std::optional<MemoryFormat> format) const {
  naru::resize_as_(*this, model, format);
  return *this;
}
const Tensor& Tensor::t_() const {
  naru::t_(*this);
  return *this;
}
const Tensor& Tensor::transpose_(int64_t a, int64_t b) const {
  naru::transpose_(*this, a, b);
  return *this;
}
const Tensor& Tensor::squeeze_() const {
  naru::squeeze_(*this);
  return *this;
}
const Tensor& Tensor::squeeze_(int64_t dim) const {
  naru::squeeze_(*this, dim);
  return *this;
}
const Tensor& Tensor::unsqueeze_(int64_t dim) const {
  naru::unsqueeze_(*this, dim);
  return *this;
}
const Tensor& Tensor::set_(const Tensor& from) const {
  naru::set_(*this, from);
  return *this;
}
const Tensor& Tensor::share_memory_() const {
  naru::share_memory_(*this);
  return *this;
}
const Tensor& Tensor::index_fill_(int64_t dim, const Tensor& index, const Operand& value) const {
  naru::index_fill_(*this, dim, index, value);
  return *this;
}
const Tensor& Tensor::index_copy_(int64_t dim, const Tensor& index, const Tensor& source) const {
  naru::index_copy_(*this, dim, index, source);
  return *this;
}
const Tensor& Tensor::masked_scatter_(const Tensor& mask, const Tensor& source) const {
  naru::masked_scatter_(*this, mask, source);
  return *this;
}
const Tensor& Tensor::fill_diagonal_(const Operand& value, bool wrap) const {
  naru::fill_diagonal_(*this, value, wrap);
  return *this;
}
const Tensor& Tensor::tril_(int64_t diagonal) const {
  naru::tril_(*this, diagonal);
  return *this;
}
const Tensor& Tensor::triu_(int64_t diagonal) const {
  naru::triu_(*this, diagonal);
  return *this;
}
const Tensor& Tensor::cumsum_(int64_t dim) const {
  naru::cumsum_(*this, dim);
  return *this;
}
bool Tensor::is_shared() const { return naru::is_shared(*this); }
Tensor Tensor::mT() const { return naru::mT(*this); }
Tensor Tensor::fill(const Operand& value) const { return naru::fill(*this, value); }
std::vector<Tensor> Tensor::tensor_split(const Tensor& ends, int64_t dim) const { return naru::tensor_split(*this, ends, dim); }
Tensor Tensor::prelu(const Tensor& weight) const { return naru::prelu(*this, weight); }
Tensor Tensor::addmv(const Tensor& matrix, const Tensor& vector, Scalar beta, Scalar alpha) const {
  return naru::addmv(*this, matrix, vector, beta, alpha);
}
Tensor Tensor::baddbmm(const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) const {
  return naru::baddbmm(*this, a, b, beta, alpha);
}
Tensor Tensor::round(int64_t decimals) const { return naru::round(*this, decimals); }
Tensor Tensor::float_power(const Operand& exponent) const { return naru::float_power(*this, exponent); }
Tensor Tensor::rad2deg() const { return naru::rad2deg(*this); }
Tensor Tensor::deg2rad() const { return naru::deg2rad(*this); }
Tensor Tensor::logit(std::optional<double> eps) const { return naru::logit(*this, eps); }
Tensor Tensor::nan_to_num(double nan, std::optional<double> posinf, std::optional<double> neginf) const {
  return naru::nan_to_num(*this, nan, posinf, neginf);
}
Tensor Tensor::heaviside(const Tensor& at_zero) const { return naru::heaviside(*this, at_zero); }
Tensor Tensor::median() const { return naru::median(*this); }
std::pair<Tensor, Tensor> Tensor::median(int64_t dim, bool keepdim) const { return naru::median(*this, dim, keepdim); }
Tensor Tensor::nansum(const OptionalDims& dims, bool keepdim) const { return naru::nansum(*this, dims, keepdim); }
Tensor Tensor::nanmean(const OptionalDims& dims, bool keepdim) const { return naru::nanmean(*this, dims, keepdim); }
std::pair<Tensor, Tensor> Tensor::aminmax(std::optional<int64_t> dim, bool keepdim) const { return naru::aminmax(*this, dim, keepdim); }
Tensor Tensor::trace() const { return naru::trace(*this); }
bool Tensor::is_nonzero() const { return naru::is_nonzero(*this); }
Tensor Tensor::quantile(const Operand& q, std::optional<int64_t> dim, bool keepdim, std::string_view interpolation) const {
  return naru::quantile(*this, q, dim, keepdim, interpolation);
}
std::pair<Tensor, Tensor> Tensor::kthvalue(int64_t k, int64_t dim, bool keepdim) const { return naru::kthvalue(*this, k, dim, keepdim); }
Tensor Tensor::histc(int64_t bins, double low, double high) const { return naru::histc(*this, bins, low, high); }
Tensor Tensor::bucketize(const Tensor& boundaries, bool out_int32, bool right) const {
  return naru::bucketize(*this, boundaries, out_int32, right);
}
Tensor Tensor::dist(const Tensor& b, double p) const { return naru::dist(*this, b, p); }
Tensor Tensor::cross(const Tensor& b, std::optional<int64_t> dim) const { return naru::cross(*this, b, dim); }
Tensor Tensor::inner(const Tensor& b) const { return naru::inner(*this, b); }
Tensor Tensor::kron(const Tensor& b) const { return naru::kron(*this, b); }
Tensor Tensor::diff(int64_t n, int64_t dim) const { return naru::diff(*this, n, dim); }
std::vector<Tensor> Tensor::tensor_split(int64_t sections, int64_t dim) const { return naru::tensor_split(*this, sections, dim); }
std::vector<Tensor> Tensor::tensor_split(const Dims& ends, int64_t dim) const { return naru::tensor_split(*this, ends, dim); }
Tensor Tensor::tile(const Dims& times) const { return naru::tile(*this, times); }
Tensor Tensor::repeat_interleave(int64_t repeats, std::optional<int64_t> dim, std::optional<int64_t> output_size) const {
  return naru::repeat_interleave(*this, repeats, dim, output_size);
}
Tensor Tensor::repeat_interleave(const Tensor& repeats, std::optional<int64_t> dim, std::optional<int64_t> output_size) const {
  return naru::repeat_interleave(*this, repeats, dim, output_size);
}
Tensor Tensor::squeeze(const Dims& dims) const { return naru::squeeze(*this, dims); }
Tensor Tensor::movedim(const Dims& from, const Dims& to) const { return naru::movedim(*this, from, to); }
Tensor Tensor::rot90(int64_t k, const Dims& dims) const { return naru::rot90(*this, k, dims); }
Tensor Tensor::diag(int64_t diagonal) const { return naru::diag(*this, diagonal); }
Tensor Tensor::take_along_dim(const Tensor& indices, std::optional<int64_t> dim) const { return naru::take_along_dim(*this, indices, dim); }
Tensor Tensor::index_fill(int64_t dim, const Tensor& index, const Operand& value) const {
  return naru::index_fill(*this, dim, index, value);
}
Tensor Tensor::index_copy(int64_t dim, const Tensor& index, const Tensor& source) const {
  return naru::index_copy(*this, dim, index, source);
}
Tensor Tensor::index_add(int64_t dim, const Tensor& index, const Tensor& source, Scalar alpha) const {
  return naru::index_add(*this, dim, index, source, alpha);
}
Tensor Tensor::index_put(IndexList indices, const Operand& value, bool accumulate) const {
  return naru::index_put(*this, {indices.begin(), indices.size()}, value, accumulate);
}
Tensor Tensor::index_put(std::span<const Index> indices, const Operand& value, bool accumulate) const {
  return naru::index_put(*this, indices, value, accumulate);
}

namespace {

// Fills unset options from the tensor.
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
TensorOptions Tensor::options() const { return Options(dtype(), device()); }
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

const Tensor& Tensor::uniform_(double from, double to) const {
  naru::uniform_(*this, from, to);
  return *this;
}
const Tensor& Tensor::normal_(double mean, double std) const {
  naru::normal_(*this, mean, std);
  return *this;
}
Tensor Tensor::sum() const { return naru::sum(*this); }
Tensor Tensor::sum(const Dims& dims, bool keepdim) const { return naru::sum(*this, dims, keepdim); }
Tensor Tensor::mean() const { return naru::mean(*this); }
Tensor Tensor::mean(const Dims& dims, bool keepdim) const { return naru::mean(*this, dims, keepdim); }
Tensor Tensor::max() const { return naru::max(*this); }
Tensor Tensor::min() const { return naru::min(*this); }
Tensor Tensor::argmax() const { return naru::argmax(*this); }
Tensor Tensor::argmax(int64_t dim, bool keepdim) const { return naru::argmax(*this, dim, keepdim); }
Tensor Tensor::matmul(const Tensor& other) const { return naru::matmul(*this, other); }

#include "ops/tensor/function_methods.inc"

}  // namespace naru
