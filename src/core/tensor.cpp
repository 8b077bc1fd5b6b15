// The Tensor handle, and tensor geometry.
#include "naru/tensor.h"

#include "core/tensor_impl.h"

namespace naru {

Options::Options(const char* device_or_dtype) {
  try {
    device = Device(device_or_dtype);
  } catch (const RuntimeError&) {
    try {
      dtype = parse_dtype(device_or_dtype);
    } catch (const TypeError&) {
      throw RuntimeError("'{}' is neither a device (\"cpu\", \"cuda:1\") nor a dtype (\"float32\")", device_or_dtype);
    }
  }
}

Tensor::Tensor(const Tensor& o) noexcept : impl_(o.impl_) {
  if (impl_) impl_->retain();
}
Tensor& Tensor::operator=(const Tensor& o) & noexcept {
  if (o.impl_) o.impl_->retain();
  if (impl_) impl_->release();
  impl_ = o.impl_;
  return *this;
}
Tensor::~Tensor() {
  if (impl_) impl_->release();
}

namespace {
[[noreturn, gnu::cold, gnu::noinline]] void throw_undefined() {
  throw RuntimeError("this tensor is undefined: it has no device, dtype or elements");
}
[[gnu::always_inline]] inline const TensorImpl& checked(const Tensor& t) {
  if (!t.defined()) [[unlikely]]
    throw_undefined();
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

namespace detail {

void throw_overflow(const char* type) { throw RuntimeError("value cannot be converted to type {} without overflow", type); }

void throw_wrong_element(DType is, DType wanted) {
  throw RuntimeError("expected scalar type {} but found {} (the elements are {}: convert the tensor, or read it as what it is)",
                     traits_of(wanted).scalar_type, traits_of(is).scalar_type, name_of(is));
}

void require_host(const Tensor& t, const char* op) {
  if (!t.device().is_cpu())
    throw RuntimeError("{}: wanted a tensor on cpu, got one on {}; copy it to the host first: x.cpu()", op, t.device().str());
}

void require_rank(const Tensor& t, size_t rank) {
  if (t.sizes().size() != rank) throw RuntimeError("TensorAccessor expected {} dims but tensor has {}", rank, t.sizes().size());
}

void require_row_major(const Tensor& t, const char* op) {
  if (!t.is_contiguous())
    throw RuntimeError("{}: wanted elements in row-major order, got strides {} for sizes {}; use x.contiguous()", op, t.strides().str(),
                       t.sizes().str());
}

}  // namespace detail

}  // namespace naru
