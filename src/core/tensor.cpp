// The handle itself, and geometry.
#include "naru/tensor.h"

#include <fmt/format.h>

#include "core/tensor_impl.h"

namespace naru {

Tensor::Tensor(const Tensor& o) noexcept : impl_(o.impl_) {
  if (impl_) impl_->retain();
}
Tensor& Tensor::operator=(const Tensor& o) noexcept {
  if (o.impl_) o.impl_->retain();
  if (impl_) impl_->release();
  impl_ = o.impl_;
  return *this;
}
Tensor::~Tensor() {
  if (impl_) impl_->release();
}

namespace {
const TensorImpl& checked(const Tensor& t) {
  if (!t.defined()) throw RuntimeError("this tensor is undefined: it has no device, dtype or elements");
  return *t.impl();
}
}  // namespace

Device Tensor::device() const {
  const Device d = checked(*this).storage->device;
  return d.is_cpu() ? Device(DeviceType::Cpu) : d;
}
DType Tensor::dtype() const { return checked(*this).dtype; }
const Dims& Tensor::sizes() const { return checked(*this).sizes; }
const Dims& Tensor::strides() const { return checked(*this).strides; }
int64_t Tensor::size(int64_t dim) const {
  if (sizes().empty()) throw IndexError("Dimension specified as {} but tensor has no dimensions", dim);
  return sizes()[wrap_dim(dim, this->dim())];
}
int64_t Tensor::dim() const { return static_cast<int64_t>(sizes().size()); }
int64_t Tensor::numel() const { return checked(*this).numel; }
int64_t Tensor::storage_offset() const { return checked(*this).offset; }
bool Tensor::is_contiguous() const { return checked(*this).contiguous; }
bool Tensor::is_inference() const { return checked(*this).storage->inference; }
uint32_t Tensor::version() const { return checked(*this).storage->version.load(std::memory_order_relaxed); }

std::string Tensor::str() const {
  if (!defined()) return "tensor(undefined)";
  return fmt::format("tensor(shape={}, dtype={}, device={})", sizes().str(), name_of(dtype()), device().str());
}

}  // namespace naru
