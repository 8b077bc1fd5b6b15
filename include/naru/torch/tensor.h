// libtorch's names for tensors, options, devices and guards, in namespace torch. Included by naru/torch.h.
#pragma once

#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "naru/naru.h"
#include "naru/torch/checks.h"

namespace torch {

using namespace naru;

// --- types
using Dtype = naru::DType;
using ScalarType = naru::DType;
using IntArrayRef = naru::Dims;
using TensorList = std::vector<naru::Tensor>;
using std::make_optional;
using std::nullopt;
using std::optional;
using nullopt_t = std::nullopt_t;
using SymInt = int64_t;
using OptionalIntArrayRef = naru::OptionalDims;
// A list that belongs to another: a vector, Dims, or one value.
template <class T>
class ArrayRef : public std::span<const T> {
 public:
  using std::span<const T>::span;
  ArrayRef(const std::vector<T>& list) : std::span<const T>(list.data(), list.size()) {}
  ArrayRef(const T& one) : std::span<const T>(&one, 1) {}
  ArrayRef(const naru::Dims& list) requires std::is_same_v<T, int64_t> : std::span<const T>(list.data(), list.size()) {}
  std::vector<T> vec() const { return {this->begin(), this->end()}; }
  ArrayRef slice(size_t from, size_t n) const { return {this->data() + from, n}; }
};
template <class T, size_t N>
using TensorAccessor = naru::Accessor<T, N>;
template <class T>
using RestrictPtrTraits = T*;
template <class T>
using DefaultPtrTraits = T*;
template <class T, size_t N, template <class> class... Traits>
using PackedTensorAccessor32 = naru::Accessor<T, N>;
template <class T, size_t N, template <class> class... Traits>
using PackedTensorAccessor64 = naru::Accessor<T, N>;
inline constexpr naru::DType kBool = naru::DType::Bool, kByte = naru::DType::U8, kUInt8 = naru::DType::U8, kChar = naru::DType::I8,
                             kInt8 = naru::DType::I8, kShort = naru::DType::I16, kInt16 = naru::DType::I16, kInt = naru::DType::I32,
                             kInt32 = naru::DType::I32, kLong = naru::DType::I64, kInt64 = naru::DType::I64, kUInt16 = naru::kUInt16,
                             kUInt32 = naru::kUInt32, kUInt64 = naru::kUInt64, kHalf = naru::DType::F16, kFloat16 = naru::DType::F16,
                             kBFloat16 = naru::DType::BF16, kFloat = naru::DType::F32, kFloat32 = naru::DType::F32,
                             kDouble = naru::DType::F64, kFloat64 = naru::DType::F64, kComplexHalf = naru::kComplex32,
                             kComplexFloat = naru::kComplex64, kComplexDouble = naru::kComplex128, kFloat8_e4m3fn = naru::kFloat8E4M3FN,
                             kFloat8_e5m2 = naru::kFloat8E5M2, kFloat8_e4m3fnuz = naru::kFloat8E4M3FNUZ,
                             kFloat8_e5m2fnuz = naru::kFloat8E5M2FNUZ, kFloat8_e8m0fnu = naru::kFloat8E8M0FNU;

inline int64_t maybe_wrap_dim(int64_t dim, int64_t rank) { return naru::wrap_dim(dim, rank); }

// The integers from a to b: for (auto i : c10::irange(n)).
template <class T>
class IntegerRange {
 public:
  struct Iterator {
    T at;
    T operator*() const { return at; }
    Iterator& operator++() { return ++at, *this; }
    bool operator!=(const Iterator& o) const { return at != o.at; }
  };
  IntegerRange(T first, T last) : first_(first), last_(last < first ? first : last) {}
  Iterator begin() const { return {first_}; }
  Iterator end() const { return {last_}; }

 private:
  T first_, last_;
};
template <class T>
IntegerRange<T> irange(T count) {
  return {T(0), count};
}
template <class A, class T>
IntegerRange<T> irange(A first, T last) {
  return {static_cast<T>(first), last};
}

inline const char* toString(ScalarType t) { return naru::traits_of(t).scalar_type; }
inline size_t elementSize(ScalarType t) { return naru::size_of(t); }
inline bool isFloatingType(ScalarType t) { return naru::is_floating(t); }
inline bool isComplexType(ScalarType t) { return naru::is_complex(t); }
inline bool isIntegralType(ScalarType t, bool with_bool) { return naru::is_integral(t) || (with_bool && t == naru::DType::Bool); }
inline ScalarType typeMetaToScalarType(ScalarType t) { return t; }
inline ScalarType promote_types(ScalarType a, ScalarType b) { return naru::promote(a, b); }
inline ScalarType promoteTypes(ScalarType a, ScalarType b) { return naru::promote(a, b); }
enum class Layout { Strided };
inline constexpr Layout kStrided = Layout::Strided;
template <class... A>
std::string str(const A&... parts) {
  return detail::text_of(parts...);
}

// --- devices. A DeviceType is a kind of device; as a Device, it means the current device of that kind.
class DeviceType {
 public:
  constexpr DeviceType() = default;
  constexpr DeviceType(naru::DeviceType kind) : kind_(kind) {}
  constexpr operator naru::DeviceType() const { return kind_; }
  constexpr operator naru::Device() const { return naru::Device(kind_); }
  operator naru::Options() const { return naru::Options(naru::Device(kind_)); }
  friend constexpr bool operator==(DeviceType, DeviceType) = default;
  friend constexpr bool operator==(DeviceType a, naru::DeviceType b) { return a.kind_ == b; }
  static const DeviceType CPU, CUDA, MPS, XPU, Meta;

 private:
  naru::DeviceType kind_ = naru::DeviceType::Cpu;
};
inline constexpr DeviceType DeviceType::CPU = naru::DeviceType::Cpu;
inline constexpr DeviceType DeviceType::CUDA = naru::DeviceType::Cuda;
inline constexpr DeviceType DeviceType::MPS = naru::DeviceType::Mps;
inline constexpr DeviceType DeviceType::XPU = naru::DeviceType::Xpu;
inline constexpr DeviceType DeviceType::Meta = naru::DeviceType::Meta;
inline constexpr DeviceType kCPU = naru::DeviceType::Cpu;
inline constexpr DeviceType kCUDA = naru::DeviceType::Cuda;
inline constexpr DeviceType kMPS = naru::DeviceType::Mps;
inline constexpr DeviceType kXPU = naru::DeviceType::Xpu;
inline constexpr DeviceType kMeta = naru::DeviceType::Meta;

class Device : public naru::Device {
 public:
  Device(naru::Device d) : naru::Device(d) {}
  Device(DeviceType kind, int index = -1) : naru::Device(kind, index) {}
  Device(const char* text) : naru::Device(text) {}
  Device(const std::string& text) : naru::Device(text) {}
  DeviceType type() const { return naru::Device::type(); }
  int index() const { return naru::Device::index; }
  bool is_cuda() const { return naru::Device::type == naru::DeviceType::Cuda; }
};

// --- options: torch::TensorOptions().dtype(torch::kFloat).device(torch::kCUDA, 1).requires_grad(true)
inline TensorOptions dtype(naru::DType t) { return TensorOptions(t); }
inline TensorOptions device(naru::Device d) { return TensorOptions(d); }
inline TensorOptions device(DeviceType kind, int index) { return TensorOptions(naru::Device(kind, index)); }
inline TensorOptions requires_grad(bool on = true) { return TensorOptions().requires_grad(on); }

// --- modes
using NoGradGuard = naru::NoGrad;
class AutoGradMode {
 public:
  explicit AutoGradMode(bool on) : before_(naru::set_grad_enabled(on)) {}
  ~AutoGradMode() { naru::set_grad_enabled(before_); }
  AutoGradMode(const AutoGradMode&) = delete;

 private:
  bool before_;
};
using AutoGradGuard = AutoGradMode;
using naru::InferenceMode;
struct GradMode {
  static bool is_enabled() { return naru::grad_enabled(); }
  static void set_enabled(bool on) { naru::set_grad_enabled(on); }
};

// --- functions with one dimension where naru's have a list
using naru::sum;
inline Tensor sum(const Tensor& x, int64_t dim, bool keepdim = false) { return naru::sum(x, Dims{dim}, keepdim); }
using naru::mean;
inline Tensor mean(const Tensor& x, int64_t dim, bool keepdim = false) { return naru::mean(x, Dims{dim}, keepdim); }
// Functions that are methods in naru. Not overloaded, so that they can be passed as arguments: Functional(torch::reshape, shape).
inline Tensor reshape(const Tensor& x, const Dims& shape) { return x.reshape(shape); }
inline Tensor flatten(const Tensor& x, int64_t start = 0, int64_t end = -1) { return x.flatten(start, end); }
inline Tensor unsqueeze(const Tensor& x, int64_t dim) { return x.unsqueeze(dim); }
inline Tensor transpose(const Tensor& x, int64_t a, int64_t b) { return x.transpose(a, b); }
inline Tensor permute(const Tensor& x, const Dims& dims) { return x.permute(dims); }
// Functions with arguments in libtorch's order, or with those that naru does not need.
using naru::eye;
inline Tensor eye(int64_t n, const TensorOptions& o) { return naru::eye(n, n, o); }
using naru::randint;
inline Tensor randint(int64_t high, const Dims& sizes, const naru::Options& o = {}) { return naru::randint(0, high, sizes, o); }
using naru::empty_like;
inline Tensor empty_like(const Tensor& x, naru::MemoryFormat f) { return naru::empty_like(x, TensorOptions().memory_format(f)); }
using naru::batch_norm;
inline Tensor batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& mean, const Tensor& var, bool training,
                         double momentum, double eps, bool /*cudnn_enabled*/) {
  return naru::batch_norm(x, mean, var, weight, bias, training, momentum, eps);
}
// libtorch's constants for reductions.
inline constexpr naru::Reduction kNone = naru::Reduction::None, kMean = naru::Reduction::Mean, kSum = naru::Reduction::Sum;

namespace cuda {
inline bool is_available() { return naru::is_available(naru::DeviceType::Cuda); }
inline int device_count() { return naru::device_count(naru::DeviceType::Cuda); }
inline void synchronize(int index = -1) { naru::synchronize(naru::Device(naru::DeviceType::Cuda, index)); }
inline void manual_seed(uint64_t seed) { naru::manual_seed(seed); }
inline void manual_seed_all(uint64_t seed) { naru::manual_seed(seed); }
}  // namespace cuda

namespace indexing {
using naru::Ellipsis;
using naru::None;
using naru::Slice;
using TensorIndex = naru::Index;
}  // namespace indexing

namespace autograd {
using naru::backward;
using naru::grad;
using naru::autograd::Function;
using naru::autograd::gradcheck;
using AutogradContext = naru::autograd::Context;
using Variable = naru::Tensor;
using variable_list = std::vector<naru::Tensor>;
using tensor_list = std::vector<naru::Tensor>;
using DetectAnomalyGuard = naru::DetectAnomaly;
struct AnomalyMode {
  static bool is_enabled() { return naru::anomaly_enabled(); }
  static void set_enabled(bool on, bool check_nan = true) { naru::set_detect_anomaly(on, check_nan); }
};
}  // namespace autograd

}  // namespace torch

// libtorch's other namespace names.
namespace at = torch;
namespace c10 = torch;
