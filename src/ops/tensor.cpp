// The handle itself, geometry, and reading by the host.
#include "naru/tensor.h"

#include "naru/ops.h"
#include "ops/common.h"
#include "runtime/memory.h"

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
uint32_t Tensor::version() const { return checked(*this).storage->version.load(std::memory_order_relaxed); }

Scalar Tensor::item() const {
  if (numel() != 1) throw RuntimeError("a Tensor with {} elements cannot be converted to Scalar (shape {})", numel(), sizes().str());
  return ops::read_scalar(*this);
}

void* Tensor::data_ptr() const {
  const TensorImpl& i = checked(*this);
  if (i.numel == 0) return nullptr;
  if (runtime::Queue* q = i.storage->pending.load(std::memory_order_acquire)) q->flush();
  if (!i.storage->data) runtime::allocate_storage(*i.storage);
  if (i.storage->device.is_cpu()) runtime::wait_for_host(*i.storage, true);
  return i.address();
}

namespace {
template <class T, DType D>
std::vector<T> to_vector(const Tensor& t) {
  const Tensor host = t.detach().to(Device(DeviceType::Cpu), D, false, false).contiguous();
  std::vector<T> values(static_cast<size_t>(host.numel()));
  if (!values.empty()) std::memcpy(values.data(), host.data_ptr(), values.size() * sizeof(T));
  return values;
}
}  // namespace
std::vector<double> Tensor::to_doubles() const { return to_vector<double, DType::F64>(*this); }
std::vector<int64_t> Tensor::to_ints() const { return to_vector<int64_t, DType::I64>(*this); }

std::string Tensor::str() const {
  if (!defined()) return "tensor(undefined)";
  return fmt::format("tensor(shape={}, dtype={}, device={})", sizes().str(), name_of(dtype()), device().str());
}

Tensor& Tensor::uniform_(double from, double to) {
  naru::uniform_(*this, from, to);
  return *this;
}
Tensor& Tensor::normal_(double mean, double std) {
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

}  // namespace naru
