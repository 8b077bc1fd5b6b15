// Reading by the host, and methods that stand for functions.
#include "naru/tensor.h"

#include "naru/ops.h"
#include "ops/common.h"
#include "runtime/memory.h"

namespace naru {

Scalar Tensor::item() const {
  if (numel() != 1) throw RuntimeError("a Tensor with {} elements cannot be converted to Scalar (shape {})", numel(), sizes().str());
  return ops::read_scalar(*this);
}

void* Tensor::data_ptr() const {
  if (numel() == 0) return nullptr;
  const TensorImpl& i = *impl_;
  if (runtime::Queue* q = i.storage->pending.load(std::memory_order_acquire)) q->flush();
  if (!i.storage->data) runtime::allocate_storage(*i.storage);
  if (is_sparse_form(i.dtype))
    throw RuntimeError("Cannot access data pointer of Tensor that doesn't have storage (a sparse tensor; use to_dense())");
  if (i.storage->device.is_cpu()) runtime::wait_for_host(*i.storage, true);
  return i.address();
}

namespace {
template <class T, DType D>
std::vector<T> to_vector(const Tensor& t) {
  ops::require_defined(t, "reading", "input");
  if (is_complex(t.dtype())) throw RuntimeError("to_doubles, to_ints: complex numbers are pairs; read view_as_real(t)");
  const Tensor host = t.detach().to(Device(DeviceType::Cpu), D, false, false).contiguous();
  std::vector<T> values(static_cast<size_t>(host.numel()));
  if (!values.empty()) std::memcpy(values.data(), host.data_ptr(), values.size() * sizeof(T));
  return values;
}
}  // namespace
std::vector<double> Tensor::to_doubles() const { return to_vector<double, DType::F64>(*this); }
std::vector<int64_t> Tensor::to_ints() const { return to_vector<int64_t, DType::I64>(*this); }

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

}  // namespace naru
