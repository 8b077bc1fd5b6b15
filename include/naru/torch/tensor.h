// libtorch's names for tensors, options, devices and guards, in namespace torch. Included by naru/torch.h.
#pragma once

#include <cmath>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "naru/naru.h"

namespace torch {

using namespace naru;

// --- types
using Dtype = naru::DType;
using ScalarType = naru::DType;
using IntArrayRef = naru::Dims;
using TensorList = std::vector<naru::Tensor>;
using std::nullopt;
using std::optional;
inline constexpr naru::DType kBool = naru::DType::Bool, kByte = naru::DType::U8, kUInt8 = naru::DType::U8, kChar = naru::DType::I8,
                             kInt8 = naru::DType::I8, kShort = naru::DType::I16, kInt16 = naru::DType::I16, kInt = naru::DType::I32,
                             kInt32 = naru::DType::I32, kLong = naru::DType::I64, kInt64 = naru::DType::I64, kUInt16 = naru::kUInt16,
                             kUInt32 = naru::kUInt32, kUInt64 = naru::kUInt64, kHalf = naru::DType::F16, kFloat16 = naru::DType::F16,
                             kBFloat16 = naru::DType::BF16, kFloat = naru::DType::F32, kFloat32 = naru::DType::F32,
                             kDouble = naru::DType::F64, kFloat64 = naru::DType::F64;

// --- devices. A DeviceType is a kind of device; as a Device, it means the current device of that kind.
class DeviceType {
 public:
  constexpr DeviceType() = default;
  constexpr DeviceType(naru::DeviceType kind) : kind_(kind) {}
  constexpr operator naru::DeviceType() const { return kind_; }
  constexpr operator naru::Device() const { return naru::Device(kind_); }
  operator naru::Options() const { return naru::Options(naru::Device(kind_)); }
  friend constexpr bool operator==(DeviceType, DeviceType) = default;

 private:
  naru::DeviceType kind_ = naru::DeviceType::Cpu;
};
inline constexpr DeviceType kCPU = naru::DeviceType::Cpu;
inline constexpr DeviceType kCUDA = naru::DeviceType::Cuda;
inline constexpr DeviceType kMPS = naru::DeviceType::Mps;
inline constexpr DeviceType kXPU = naru::DeviceType::Xpu;

class Device : public naru::Device {
 public:
  Device(naru::Device d) : naru::Device(d) {}
  Device(DeviceType kind, int index = -1) : naru::Device(kind, index) {}
  Device(const char* text) : naru::Device(text) {}
  Device(const std::string& text) : naru::Device(text) {}
  DeviceType type() const { return naru::Device::type; }
  int index() const { return naru::Device::index; }
  bool is_cuda() const { return naru::Device::type == naru::DeviceType::Cuda; }
};

// --- options: torch::TensorOptions().dtype(torch::kFloat).device(torch::kCUDA, 1).requires_grad(true)
class TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(naru::DType t) : options_(t) {}
  TensorOptions(naru::Device d) : options_(d) {}
  TensorOptions(DeviceType kind) : options_(naru::Device(kind)) {}
  TensorOptions dtype(naru::DType t) const {
    return with([&](naru::Options& o) { o.dtype = t; });
  }
  TensorOptions device(naru::Device d) const {
    return with([&](naru::Options& o) { o.device = d; });
  }
  TensorOptions device(DeviceType kind, int index = -1) const { return device(naru::Device(kind, index)); }
  TensorOptions requires_grad(bool on = true) const {
    return with([&](naru::Options& o) { o.requires_grad = on; });
  }
  TensorOptions pinned_memory(bool on = true) const {
    return with([&](naru::Options& o) { o.pin_memory = on; });
  }
  TensorOptions memory_format(naru::MemoryFormat f) const {
    return with([&](naru::Options& o) { o.memory_format = f; });
  }
  operator naru::Options() const { return options_; }

 private:
  template <class F>
  TensorOptions with(F f) const {
    TensorOptions changed = *this;
    f(changed.options_);
    return changed;
  }
  naru::Options options_;
};
inline TensorOptions dtype(naru::DType t) { return TensorOptions(t); }
inline TensorOptions device(naru::Device d) { return TensorOptions(d); }
inline TensorOptions device(DeviceType kind, int index = -1) { return TensorOptions(naru::Device(kind, index)); }
inline TensorOptions requires_grad(bool on = true) { return TensorOptions().requires_grad(on); }

// --- modes
using NoGradGuard = naru::NoGrad;
using AutoGradMode = naru::EnableGrad;
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

// libtorch's checks: throw a RuntimeError with the condition or the given text.
#define TORCH_CHECK(condition, ...)                                                                                  \
  do {                                                                                                               \
    if (!(condition)) throw naru::RuntimeError("{}", torch::detail::text_or(#condition __VA_OPT__(, ) __VA_ARGS__)); \
  } while (false)

#define AT_ASSERT(...) TORCH_CHECK(__VA_ARGS__)
#define AT_ASSERTM(...) TORCH_CHECK(__VA_ARGS__)

// libtorch's other namespace names.
namespace at = torch;
namespace c10 = torch;

namespace torch::detail {
template <class... A>
std::string text_or(const char* condition, const A&... parts) {
  if constexpr (sizeof...(A) == 0) {
    return std::string("Expected ") + condition + " to be true, but got false.";
  } else {
    std::ostringstream text;
    (text << ... << parts);
    return text.str();
  }
}
}  // namespace torch::detail
