#include "backends/cuda/convolutions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <climits>

#include "backends/cuda/device.h"
#include "naru/error.h"

namespace naru::backends::cuda {
namespace {

using ir::Convolution;
using Use = Convolution::Use;
using Algorithm = Convolutions::Algorithm;

bool set_types(DnnConvolution& c, const Convolution& q) noexcept {
  c.compute = CUDNN_DATA_FLOAT, c.math = CUDNN_DEFAULT_MATH;
  switch (q.dtype) {
    case DType::F32:
      // By default, the library rounds to TF32 where there are units for it.
      c.type = CUDNN_DATA_FLOAT, c.math = q.precision.tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
      return true;
    case DType::F64:
      c.type = c.compute = CUDNN_DATA_DOUBLE;
      return true;
    case DType::F16:
      c.type = CUDNN_DATA_HALF, c.math = CUDNN_TENSOR_OP_MATH;
      return true;
    case DType::BF16:
      c.type = CUDNN_DATA_BFLOAT16;
      return true;
    default:
      return false;
  }
}

// The library counts in 32 bits, elements too.
bool is_small(const Sizes5& sizes) noexcept {
  int64_t all = 1;
  for (const int64_t n : sizes)
    if (n < 1 || n > INT_MAX || (all *= n) > INT_MAX) return false;
  return true;
}

// With padding on both sides the result has the size that the library expects.
bool is_even(const Convolution& q, size_t d) noexcept {
  if (q.stride[d] > INT_MAX || q.dilation[d] > INT_MAX || q.padding[d] > INT_MAX || q.padding[d] < 0) return false;
  const int64_t rest = q.size[d] + 2 * q.padding[d] - ((q.kernel[d] - 1) * q.dilation[d] + 1);
  return rest >= 0 && 1 + rest / q.stride[d] == q.result[d];
}

bool is_refusal(cudnnStatus_t status) noexcept { return status / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000; }
// Of an algorithm that was offered: also what the library finds in the addresses only when it is to run.
bool is_refusal_to_run(cudnnStatus_t status) noexcept { return is_refusal(status) || status / 1000 == CUDNN_STATUS_BAD_PARAM / 1000; }

// The functions of each use.
struct Names {
  const char *algorithms, *workspace, *work;
};
constexpr Names kNames[] = {
    {"cudnnGetConvolutionForwardAlgorithm_v7", "cudnnGetConvolutionForwardWorkspaceSize", "cudnnConvolutionForward"},
    {"cudnnGetConvolutionBackwardDataAlgorithm_v7", "cudnnGetConvolutionBackwardDataWorkspaceSize", "cudnnConvolutionBackwardData"},
    {"cudnnGetConvolutionBackwardFilterAlgorithm_v7", "cudnnGetConvolutionBackwardFilterWorkspaceSize", "cudnnConvolutionBackwardFilter"}};
const Names& names_of(const DnnConvolution& c) { return kNames[static_cast<size_t>(c.use)]; }

}  // namespace

std::optional<DnnConvolution> for_cudnn(const Convolution& q, bool channels_last) noexcept {
  DnnConvolution c;
  c.use = q.use, c.channels_last = channels_last;
  if (q.precision.deterministic || !set_types(c, q)) return std::nullopt;
  // It has no kernels for that.
  if (channels_last && q.dtype == DType::F64) return std::nullopt;
  if (!is_small(q.sizes_of_x()) || !is_small(q.sizes_of_w()) || !is_small(q.sizes_of_y())) return std::nullopt;
  for (size_t d = 0; d < 3; ++d)
    if (!is_even(q, d)) return std::nullopt;
  const bool flat = q.size[0] == 1 && q.result[0] == 1 && q.kernel[0] == 1;
  const size_t from = flat ? 1 : 0;
  c.dims = flat ? 4 : 5, c.groups = static_cast<int>(q.groups);
  const auto put = [&](std::array<int, 5>& to, const Sizes5& sizes) {
    to[0] = static_cast<int>(sizes[0]), to[1] = static_cast<int>(sizes[1]);
    for (size_t d = from; d < 3; ++d) to[2 + d - from] = static_cast<int>(sizes[2 + d]);
  };
  put(c.x, q.sizes_of_x()), put(c.w, q.sizes_of_w()), put(c.y, q.sizes_of_y());
  for (size_t d = from; d < 3; ++d) {
    c.padding[d - from] = static_cast<int>(q.padding[d]);
    c.stride[d - from] = static_cast<int>(q.stride[d]), c.dilation[d - from] = static_cast<int>(q.dilation[d]);
  }
  return c;
}

Sizes5 dense_strides(const Sizes5& sizes, bool channels_last) noexcept {
  Sizes5 strides{};
  int64_t next = channels_last ? sizes[1] : 1;
  for (size_t d = 5; d-- > 2;) strides[d] = next, next *= sizes[d];
  strides[1] = channels_last ? 1 : next;
  strides[0] = channels_last ? next : next * sizes[1];
  return strides;
}

bool is_dense(const Sizes5& strides, const Sizes5& sizes, bool channels_last) noexcept {
  const Sizes5 dense = dense_strides(sizes, channels_last);
  for (size_t d = 0; d < 5; ++d)
    if (sizes[d] != 1 && strides[d] != dense[d]) return false;
  return true;
}

DnnDescriptors::DnnDescriptors(const Cudnn& f, const DnnConvolution& shape, const Check& check)
    : x_(nullptr, f.cudnnDestroyTensorDescriptor),
      y_(nullptr, f.cudnnDestroyTensorDescriptor),
      w_(nullptr, f.cudnnDestroyFilterDescriptor),
      convolution_(nullptr, f.cudnnDestroyConvolutionDescriptor) {
  const auto tensor = [&](Owned<DnnTensorTag>& t, const std::array<int, 5>& sizes) {
    DnnTensorTag* made = nullptr;
    check(f.cudnnCreateTensorDescriptor(&made), "cudnnCreateTensorDescriptor");
    t.reset(made);
    const auto of = [&](int d) { return static_cast<size_t>(d < 2 ? d : d + 5 - shape.dims); };
    Sizes5 five{1, 1, 1, 1, 1};
    for (int d = 0; d < shape.dims; ++d) five[of(d)] = sizes[static_cast<size_t>(d)];
    const Sizes5 strides = dense_strides(five, shape.channels_last);
    std::array<int, 5> narrow{};
    for (int d = 0; d < shape.dims; ++d) narrow[static_cast<size_t>(d)] = static_cast<int>(strides[of(d)]);
    check(f.cudnnSetTensorNdDescriptor(made, shape.type, shape.dims, sizes.data(), narrow.data()), "cudnnSetTensorNdDescriptor");
  };
  tensor(x_, shape.x), tensor(y_, shape.y);
  DnnFilterTag* filter = nullptr;
  check(f.cudnnCreateFilterDescriptor(&filter), "cudnnCreateFilterDescriptor");
  w_.reset(filter);
  check(f.cudnnSetFilterNdDescriptor(filter, shape.type, shape.channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, shape.dims,
                                     shape.w.data()),
        "cudnnSetFilterNdDescriptor");
  DnnConvolutionTag* made = nullptr;
  check(f.cudnnCreateConvolutionDescriptor(&made), "cudnnCreateConvolutionDescriptor");
  convolution_.reset(made);
  check(f.cudnnSetConvolutionNdDescriptor(made, shape.dims - 2, shape.padding.data(), shape.stride.data(), shape.dilation.data(),
                                          CUDNN_CROSS_CORRELATION, shape.compute),
        "cudnnSetConvolutionNdDescriptor");
  check(f.cudnnSetConvolutionGroupCount(made, shape.groups), "cudnnSetConvolutionGroupCount");
  check(f.cudnnSetConvolutionMathType(made, shape.math), "cudnnSetConvolutionMathType");
}

struct Convolutions::Plan {
  const Cudnn& f;
  const DnnConvolution shape;
  std::optional<DnnDescriptors> of;  // none: the library does not do it
  std::vector<Algorithm> algorithms;

  Plan(const Cudnn& functions, const DnnConvolution& c) : f(functions), shape(c) {}

  // Calls g(algorithms, memory, work, a, b, d): the functions of the use, and the descriptors of what it reads and writes.
  template <class G>
  auto with_use(G&& g) const {
    switch (shape.use) {
      case Use::Forward:
        return g(f.cudnnGetConvolutionForwardAlgorithm_v7, f.cudnnGetConvolutionForwardWorkspaceSize, f.cudnnConvolutionForward, of->x(),
                 of->w(), of->y());
      case Use::Input:
        return g(f.cudnnGetConvolutionBackwardDataAlgorithm_v7, f.cudnnGetConvolutionBackwardDataWorkspaceSize,
                 f.cudnnConvolutionBackwardData, of->w(), of->y(), of->x());
      default:
        return g(f.cudnnGetConvolutionBackwardFilterAlgorithm_v7, f.cudnnGetConvolutionBackwardFilterWorkspaceSize,
                 f.cudnnConvolutionBackwardFilter, of->x(), of->y(), of->w());
    }
  }

  void ask(cudnnHandle_t handle, const DnnDescriptors::Check& check) {
    constexpr int kMost = 10;
    cudnnConvolutionAlgoPerf_t found[kMost] = {};
    int count = 0;
    const cudnnStatus_t status = with_use(
        [&](auto* get, auto, auto, auto* a, auto* b, auto* d) { return get(handle, a, b, of->convolution(), d, kMost, &count, found); });
    if (is_refusal(status) || status / 1000 == CUDNN_STATUS_BAD_PARAM / 1000) return;
    check(status, names_of(shape).algorithms);
    for (int i = 0; i < std::clamp(count, 0, kMost); ++i) {
      const cudnnConvolutionAlgoPerf_t& p = found[i];
      // Algorithms that know no units for matrices are reported with the default type; the descriptor's type, FMA, keeps the others away.
      const bool fma = shape.math == CUDNN_FMA_MATH, exact = !fma || p.mathType == CUDNN_FMA_MATH || p.mathType == CUDNN_DEFAULT_MATH;
      if (p.status != CUDNN_STATUS_SUCCESS || p.determinism != CUDNN_DETERMINISTIC || !exact) continue;
      Algorithm one{p.algo, fma ? CUDNN_FMA_MATH : p.mathType, 0};
      if (std::any_of(algorithms.begin(), algorithms.end(), [&](const Algorithm& a) { return a.number == one.number && a.math == one.math; }))
        continue;
      check(f.cudnnSetConvolutionMathType(of->convolution(), one.math), "cudnnSetConvolutionMathType");
      const cudnnStatus_t sized = with_use([&](auto, auto* size, auto, auto* a, auto* b, auto* d) {
        return size(handle, a, b, of->convolution(), d, one.number, &one.workspace);
      });
      if (is_refusal(sized)) continue;
      check(sized, names_of(shape).workspace);
      algorithms.push_back(one);
    }
  }
};

Convolutions::~Convolutions() {
  plans_.clear();  // host memory only
  if (!handle_ || device_.forked() || device_.lost()) return;
  if (const CudaDevice::Current scope(device_, std::nothrow); scope) functions_->cudnnDestroy(handle_);
}

bool Convolutions::open() {
  if (opened_) return handle_ != nullptr;
  opened_ = true;
  functions_ = library_.get();
  if (!functions_) return false;
  const cudnnStatus_t status = functions_->cudnnCreate(&handle_);
  if (status == CUDNN_STATUS_SUCCESS) return true;
  library_.refused(status);
  handle_ = nullptr;
  return false;
}

void Convolutions::check(cudnnStatus_t status, const char* function, const DnnConvolution& c) const {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const auto sizes = [&](const std::array<int, 5>& s) { return fmt::format("{}", fmt::join(s.begin(), s.begin() + c.dims, " x ")); };
  const std::string what =
      fmt::format("cuDNN error: {}, when calling `{}` on {} for {} of x {}, w {} and y {}", status_name<Cudnn>(status), function,
                  device_.device().str(), Convolution::kNames[static_cast<int>(c.use)], sizes(c.x), sizes(c.w), sizes(c.y));
  if (status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED || status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED)
    throw OutOfMemoryError(what + ". Use smaller tensors, or free some");
  throw RuntimeError("{}. `use_deterministic_algorithms(True)` takes naru's own kernels", what);
}

std::shared_ptr<Convolutions::Plan> Convolutions::plan_of(const DnnConvolution& c) {
  if (const auto known = plans_.find(c); known != plans_.end()) return known->second;
  auto plan = std::make_shared<Plan>(*functions_, c);
  struct Refused {};
  try {
    const auto made = [&](cudnnStatus_t status, const char* function) {
      if (is_refusal(status)) throw Refused{};
      check(status, function, c);
    };
    plan->of.emplace(*functions_, c, made);
    plan->ask(handle_, made);
  } catch (const Refused&) {
    plan->algorithms.clear();
  }
  if (plans_.size() >= kMostPlans) plans_.clear();
  plans_.emplace(c, plan);
  return plan;
}

std::vector<Algorithm> Convolutions::algorithms(const DnnConvolution& c) {
  const std::lock_guard lock(mutex_);
  return open() ? plan_of(c)->algorithms : std::vector<Algorithm>{};
}

bool Convolutions::start(const DnnConvolution& c, const Algorithm& algorithm, void* x, void* w, void* y, void* workspace, CUstream stream) {
  const std::lock_guard lock(mutex_);
  if (!open()) return false;
  const auto plan = plan_of(c);
  if (!plan->of) return false;
  check(functions_->cudnnSetStream(handle_, stream), "cudnnSetStream", c);
  check(functions_->cudnnSetConvolutionMathType(plan->of->convolution(), algorithm.math), "cudnnSetConvolutionMathType", c);
  const float one = 1, zero = 0;
  const double one64 = 1, zero64 = 0;
  const bool wide = c.compute == CUDNN_DATA_DOUBLE;
  const void *const alpha = wide ? static_cast<const void*>(&one64) : &one, *const beta = wide ? static_cast<const void*>(&zero64) : &zero;
  void *const a = c.use == Use::Input ? w : x, *const b = c.use == Use::Forward ? w : y,
              *const d = c.use == Use::Forward ? y
                         : c.use == Use::Input ? x
                                               : w;
  const cudnnStatus_t status = plan->with_use([&](auto, auto, auto* work, auto* of_a, auto* of_b, auto* of_d) {
    return work(handle_, alpha, of_a, a, of_b, b, plan->of->convolution(), algorithm.number, workspace, algorithm.workspace, beta, of_d, d);
  });
  if (is_refusal_to_run(status)) {
    // Offered and then refused, with nothing done.
    std::erase_if(plan->algorithms,
                  [&](const Algorithm& other) { return other.number == algorithm.number && other.math == algorithm.math; });
    return false;
  }
  check(status, names_of(c).work, c);
  return true;
}

}  // namespace naru::backends::cuda
