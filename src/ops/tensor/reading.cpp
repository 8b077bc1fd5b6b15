// Reading of elements by the host.
#include <complex>
#include <cstring>

#include "naru/tensor.h"

#include "naru/ops.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/float8.h"
#include "ops/elementwise/unsigned.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"
#include "runtime/memory/memory.h"

namespace naru {

Scalar Tensor::item() const {
  if (numel() != 1 && !is_batched(*this))
    throw RuntimeError("a Tensor with {} elements cannot be converted to Scalar (shape {})", numel(), sizes().str());
  return ops::read_scalar(*this);
}

void* Tensor::data_ptr() const {
  if (numel() == 0) return nullptr;
  const TensorImpl& i = *impl_;
  if (i.special & kHasParts) {
    if (i.special & kBatched) throw batching::NoBatchingRule("data_ptr");
    throw RuntimeError("Cannot access data pointer of Tensor that doesn't have storage (a sparse tensor; use to_dense())");
  }
  if (runtime::Queue* q = i.storage->pending.load(std::memory_order_acquire)) q->flush();
  if (!i.storage->data) runtime::allocate_storage(*i.storage);
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

namespace ops {

Scalar read_scalar(const Tensor& t) {
  const TensorImpl& i = *t.impl();
  if (i.special & kBatched) [[unlikely]]
    throw batching::NoBatchingRule("item()");
  if (i.storage->device.is_meta()) throw RuntimeError("Tensor.item() cannot be called on meta tensors");
  if (!i.storage->device.is_cpu()) return read_scalar(t.cpu());
  if (i.special) [[unlikely]] {
    refuse_parts(t, "_local_scalar_dense");
    if (is_complex(i.dtype)) return std::complex(read_scalar(real_part(t)).to_double(), read_scalar(imaginary_part(t)).to_double());
    if (is_float8(i.dtype)) return read_scalar(as_float32(t));
    const int64_t bits = read_scalar(as_stored(t)).to_int();
    return i.dtype == kUInt64 ? Scalar::of_unsigned(static_cast<uint64_t>(bits))
                              : Scalar(bits & (i.dtype == kUInt16 ? 0xffff : 0xffffffff));
  }
  runtime::wait_for_host(*i.storage);
  const void* p = i.address();
  switch (i.dtype) {
    case DType::Bool:
      return *static_cast<const uint8_t*>(p) != 0;
    case DType::U8:
      return *static_cast<const uint8_t*>(p);
    case DType::I8:
      return *static_cast<const int8_t*>(p);
    case DType::I16:
      return *static_cast<const int16_t*>(p);
    case DType::I32:
      return *static_cast<const int32_t*>(p);
    case DType::I64:
      return *static_cast<const int64_t*>(p);
    case DType::F16:
      return half_to_float(*static_cast<const uint16_t*>(p));
    case DType::BF16:
      return bfloat_to_float(*static_cast<const uint16_t*>(p));
    case DType::F32:
      return *static_cast<const float*>(p);
    case DType::F64:
      return *static_cast<const double*>(p);
  }
  return 0;
}

namespace {

bool readable(const Tensor& t) {
  const Storage& s = *t.impl()->storage;
  if (s.device.is_cpu() || runtime::queue_of(s.device).capabilities().elements) return true;
  // Submit pending work at the same point at which a read would.
  if (runtime::Queue* q = s.pending.load(std::memory_order_acquire)) q->flush();
  return false;
}

}  // namespace

bool holds(const Tensor& condition) { return !readable(condition) || read_scalar(condition).to_bool(); }
double number_or(const Tensor& t, double otherwise) { return readable(t) ? read_scalar(t).to_double() : otherwise; }

}  // namespace ops

}  // namespace naru
