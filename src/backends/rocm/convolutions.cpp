#include "backends/rocm/convolutions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "naru/error.h"

namespace naru::backends::rocm {
namespace {

using gpu::DenseConvolution;

// The library's data type; -1 if it has none. Of float64 it has slow reference kernels only.
int miopen_type(DType type) noexcept {
  switch (type) {
    case DType::F32:
      return miopenFloat;
    case DType::F16:
      return miopenHalf;
    case DType::BF16:
      return miopenBFloat16;
    default:
      return -1;
  }
}

// True if a status means that the library does not support the operands, false if it failed.
bool is_refusal(miopenStatus_t status) noexcept {
  return status == miopenStatusBadParm || status == miopenStatusNotImplemented || status == miopenStatusUnsupportedOp;
}

template <size_t kSize>
std::array<int, kSize> narrow(const std::array<int64_t, kSize>& numbers) {
  std::array<int, kSize> small{};
  std::transform(numbers.begin(), numbers.end(), small.begin(), [](int64_t n) { return static_cast<int>(n); });
  return small;
}

}  // namespace

Miopen::Use Miopen::of(ir::Convolution::Use use) const noexcept {
#define NARU_USE(use)                                                                                                           \
  {                                                                                                                             \
    miopenConvolution##use##GetSolutionCount, miopenConvolution##use##GetSolution, miopenConvolution##use##CompileSolution,     \
        miopenConvolution##use##Immediate, "miopenConvolution" #use "GetSolutionCount", "miopenConvolution" #use "GetSolution", \
        "miopenConvolution" #use "CompileSolution", "miopenConvolution" #use "Immediate"                                        \
  }
  switch (use) {
    case ir::Convolution::Use::Forward:
      return NARU_USE(Forward);
    case ir::Convolution::Use::Input:
      return NARU_USE(BackwardData);
    default:
      return NARU_USE(BackwardWeights);
  }
#undef NARU_USE
}

struct Convolutions::Plan {
  template <class T>
  using Owned = std::unique_ptr<T, int (*)(T*)>;
  using Tensor = Owned<MiopenTensorTag>;

  explicit Plan(const Miopen& f)
      : x(nullptr, f.miopenDestroyTensorDescriptor),
        w(nullptr, f.miopenDestroyTensorDescriptor),
        y(nullptr, f.miopenDestroyTensorDescriptor),
        window(nullptr, f.miopenDestroyConvolutionDescriptor) {}

  Tensor x, w, y;
  Owned<MiopenConvolutionTag> window;
  std::vector<miopenConvSolution_t> ways;  // empty: the library does not support it
  std::vector<bool> compiled;              // per way

  // x, w and y in the order of the library's parameters: what is read first and second, and what is written.
  template <class T>
  static std::array<T, 3> ordered(ir::Convolution::Use use, T of_x, T of_w, T of_y) {
    switch (use) {
      case ir::Convolution::Use::Forward:
        return {of_w, of_x, of_y};
      case ir::Convolution::Use::Input:
        return {of_y, of_w, of_x};
      default:
        return {of_y, of_x, of_w};
    }
  }
  std::array<miopenTensorDescriptor_t, 3> tensors(ir::Convolution::Use use) const { return ordered(use, x.get(), w.get(), y.get()); }
};

Convolutions::~Convolutions() {
  plans_.clear();
  if (!handle_ || device_.forked() || device_.lost()) return;
  if (const gpu::GpuDevice::Current scope(device_, std::nothrow); scope) functions_->miopenDestroy(handle_);
}

bool Convolutions::open() {
  if (opened_) return handle_ != nullptr;
  opened_ = true;
  functions_ = library_.get();
  if (!functions_) return false;
  const miopenStatus_t status = functions_->miopenCreate(&handle_);
  if (status == miopenStatusSuccess) return true;
  library_.refused(status);
  handle_ = nullptr;
  return false;
}

bool Convolutions::accepted(miopenStatus_t status, const char* function, const DenseConvolution& c) const {
  if (status == miopenStatusSuccess) return true;
  if (is_refusal(status)) return false;
  const char* const said = functions_->miopenGetErrorString(status);
  const std::string what = fmt::format("MIOpen error: {} ({}) when calling `{}` on {} for {}", gpu::status_name<Miopen>(status),
                                       said ? said : "", function, device_.device().str(), c.words());
  if (status == miopenStatusAllocFailed) throw OutOfMemoryError(what + ". Use smaller tensors, or free some");
  throw RuntimeError("{}. `use_deterministic_algorithms(True)` takes naru's own kernels", what);
}

std::shared_ptr<Convolutions::Plan> Convolutions::plan_of(const DenseConvolution& c) {
  if (const auto known = plans_.find(c); known != plans_.end()) return known->second;
  const Miopen& f = *functions_;
  auto plan = std::make_shared<Plan>(f);
  const auto ok = [&](miopenStatus_t status, const char* function) { return accepted(status, function, c); };
  const auto tensor = [&](Plan::Tensor& to, const gpu::Sizes5& sizes) {
    miopenTensorDescriptor_t made = nullptr;
    if (!ok(f.miopenCreateTensorDescriptor(&made), "miopenCreateTensorDescriptor")) return false;
    to.reset(made);
    const auto lengths = narrow(sizes), strides = narrow(c.strides_of(sizes));
    return ok(f.miopenSetTensorDescriptor(made, miopen_type(c.type), c.dims, lengths.data(), strides.data()), "miopenSetTensorDescriptor");
  };
  const auto window = [&] {
    miopenConvolutionDescriptor_t made = nullptr;
    if (!ok(f.miopenCreateConvolutionDescriptor(&made), "miopenCreateConvolutionDescriptor")) return false;
    plan->window.reset(made);
    const auto padding = narrow(c.padding), stride = narrow(c.stride), dilation = narrow(c.dilation);
    // Only kernels with the same bits each time.
    return ok(f.miopenInitConvolutionNdDescriptor(made, c.dims - 2, padding.data(), stride.data(), dilation.data(), miopenConvolution),
              "miopenInitConvolutionNdDescriptor") &&
           ok(f.miopenSetConvolutionGroupCount(made, static_cast<int>(c.groups())), "miopenSetConvolutionGroupCount") &&
           ok(f.miopenSetConvolutionAttribute(made, MIOPEN_CONVOLUTION_ATTRIB_DETERMINISTIC, 1), "miopenSetConvolutionAttribute");
  };
  if (tensor(plan->x, c.x) && tensor(plan->w, c.w) && tensor(plan->y, c.y) && window()) {
    const Miopen::Use use = f.of(c.use);
    const auto [a, b, into] = plan->tensors(c.use);
    size_t count = 0;
    if (ok(use.count(handle_, a, b, plan->window.get(), into, &count), use.count_name) && count > 0) {
      plan->ways.resize(count);
      const size_t most = count;
      count = 0;
      if (!ok(use.solutions(handle_, a, b, plan->window.get(), into, most, &count, plan->ways.data()), use.solutions_name)) count = 0;
      plan->ways.resize(std::min(count, most));
      plan->compiled.resize(plan->ways.size());
    }
  }
  if (plans_.size() >= kMostPlans) plans_.clear();
  plans_.emplace(c, plan);
  return plan;
}

std::optional<gpu::ConvolutionLibrary::Way> Convolutions::way(const DenseConvolution& c, size_t from) {
  if (miopen_type(c.type) < 0) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (!open()) return std::nullopt;
  const gpu::GpuDevice::Relaxed scope(device_);  // solutions load kernels
  const auto plan = plan_of(c);
  const Miopen::Use use = functions_->of(c.use);
  const auto [a, b, into] = plan->tensors(c.use);
  for (size_t i = from; i < plan->ways.size(); ++i) {
    if (!plan->compiled[i] &&
        !accepted(use.compile(handle_, a, b, plan->window.get(), into, plan->ways[i].solution_id), use.compile_name, c))
      continue;
    plan->compiled[i] = true;
    return Way{i, plan->ways[i].workspace_size};
  }
  return std::nullopt;
}

bool Convolutions::start(const DenseConvolution& c, size_t way, void* x, void* w, void* y, void* workspace, gpu::StreamHandle stream) {
  const std::lock_guard lock(mutex_);
  if (!open()) return false;
  const auto plan = plan_of(c);
  if (way >= plan->ways.size()) return false;
  const miopenConvSolution_t& solution = plan->ways[way];
  if (!accepted(functions_->miopenSetStream(handle_, stream), "miopenSetStream", c)) return false;
  const auto [a, b, into] = plan->tensors(c.use);
  const auto [at_a, at_b, at_into] = Plan::ordered(c.use, x, w, y);
  const Miopen::Use use = functions_->of(c.use);
  return accepted(
      use.run(handle_, a, at_a, b, at_b, plan->window.get(), into, at_into, workspace, solution.workspace_size, solution.solution_id),
      use.run_name, c);
}

}  // namespace naru::backends::rocm
