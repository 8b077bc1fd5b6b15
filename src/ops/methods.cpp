// The methods that stand for functions of naru/compositions.h.
#include "naru/compositions.h"

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

}  // namespace naru
