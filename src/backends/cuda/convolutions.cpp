#include "backends/cuda/convolutions.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>

#include "naru/error.h"

namespace naru::backends::cuda {
namespace {

using gpu::DenseConvolution;
using ir::Convolution;

// The library's data type; -1 if it has none.
int dnn_type(DType type) noexcept {
  switch (type) {
    case DType::F32:
      return CUDNN_DATA_FLOAT;
    case DType::F64:
      return CUDNN_DATA_DOUBLE;
    case DType::F16:
      return CUDNN_DATA_HALF;
    case DType::BF16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return -1;
  }
}

// Warns once per device: the library has engines for these convolutions, but none that is exact and deterministic.
void tell_of_no_exact_way(const Device& device, const std::string& what) {
  static std::array<std::atomic<bool>, 128> told{};
  if (told[static_cast<size_t>(device.index)].exchange(true)) return;
  std::fprintf(
      stderr,
      "naru: warning: cuDNN has no way on %s to compute %s with the same bits each time: naru's own kernels do it, which are slower\n",
      device.str().c_str(), what.c_str());
}

}  // namespace

void add_convolution(DnnGraph& graph, const DenseConvolution& c) {
  const auto dims = static_cast<size_t>(c.dims);
  const auto tensor = [&](DnnConvolved number, const gpu::Sizes5& sizes) {
    const gpu::Sizes5 strides = c.strides_of(sizes);
    return graph.in_memory(static_cast<int64_t>(number), dnn_type(c.type), std::span(sizes).first(dims), std::span(strides).first(dims));
  };
  constexpr int kUses[] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                           CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                           CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR};
  const auto spatial = [&](const std::array<int64_t, 3>& a) { return std::span(a).first(dims - 2); };
  const auto x = tensor(DnnConvolved::X, c.x), w = tensor(DnnConvolved::W, c.w), y = tensor(DnnConvolved::Y, c.y);
  graph.convolution(kUses[static_cast<size_t>(c.use)], spatial(c.padding), spatial(c.stride), spatial(c.dilation),
                    c.type == DType::F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, x, w, y);
}

bool is_exact(const DenseConvolution& c, DnnNotes notes) noexcept {
  if (notes.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) || notes.has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return false;
  const bool rounds = notes.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) || notes.has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
  return c.type != DType::F32 || c.tf32 || !rounds;
}

struct Convolutions::Plan {
  std::optional<DnnGraph> operations;  // the engines refer to them
  std::optional<DnnDescriptor> graph;
  std::vector<DnnEngine> ways;  // empty: the library does not support it
};

Convolutions::~Convolutions() {
  if (!handle_) return;
  const gpu::GpuDevice::Current scope(device_, std::nothrow);
  if (device_.forked() || device_.lost() || !scope) {
    static_cast<void>(new auto(std::move(plans_)));  // leaked: destroying plans would unload their kernels
    return;
  }
  plans_.clear();
  functions_->cudnnDestroy(handle_);
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

void Convolutions::check(cudnnStatus_t status, const char* function, const DenseConvolution& c) const {
  if (status == CUDNN_STATUS_SUCCESS) return;
  check_status(status, function, device_.device(), c.words(), "`use_deterministic_algorithms(True)` takes naru's own kernels");
}

std::shared_ptr<Convolutions::Plan> Convolutions::plan_of(const DenseConvolution& c) {
  if (const auto known = plans_.find(c); known != plans_.end()) return known->second;
  auto plan = std::make_shared<Plan>();
  struct Refused {};
  try {
    // The library rejects unsupported descriptors with these statuses; other failures are errors.
    const DnnCheck made = [this, c](int status, const char* function) {
      if (is_refusal(status)) throw Refused{};
      check(status, function, c);
    };
    plan->operations.emplace(*functions_, made, 100);
    add_convolution(*plan->operations, c);
    plan->graph = plan->operations->finish(handle_);
    plan->ways = engines_of(*functions_, {handle_}, *plan->graph, made);
  } catch (const Refused&) {
    plan->ways.clear();
  }
  const bool some = !plan->ways.empty();
  std::erase_if(plan->ways, [&](const DnnEngine& way) { return !is_exact(c, way.notes()); });
  if (some && plan->ways.empty()) tell_of_no_exact_way(device_.device(), c.words());
  // Keep plans with engines: their kernels may be running, or be part of a graph.
  if (plans_.size() >= kMostPlans) std::erase_if(plans_, [](const auto& known) { return known.second->ways.empty(); });
  if (plans_.size() >= kMostPlans) plan->ways.clear();
  if (plans_.size() < kMostPlans) plans_.emplace(c, plan);
  return plan;
}

std::optional<gpu::ConvolutionLibrary::Way> Convolutions::way(const DenseConvolution& c, size_t from) {
  // It has no kernels for channels-last float64, and would transpose instead.
  if (c.channels_last && c.type == DType::F64) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (!open()) return std::nullopt;
  const auto plan = plan_of(c);
  const DnnCheck must = [&](int status, const char* function) { check(status, function, c); };
  for (size_t i = from; i < plan->ways.size(); ++i) {
    const gpu::GpuDevice::Relaxed scope(device_);  // making plans loads kernels
    if (plan->ways[i].usable(*functions_, {handle_}, must)) return Way{i, plan->ways[i].workspace()};
  }
  return std::nullopt;
}

bool Convolutions::start(const DenseConvolution& c, size_t way, void* x, void* w, void* y, void* workspace, CUstream stream) {
  const std::lock_guard lock(mutex_);
  if (!open()) return false;
  const auto plan = plan_of(c);
  const DnnCheck must = [&](int status, const char* function) { check(status, function, c); };
  if (way >= plan->ways.size() || !plan->ways[way].usable(*functions_, {handle_}, must)) return false;
  must(functions_->cudnnSetStream(handle_, stream), "cudnnSetStream");
  constexpr int64_t kNumbers[] = {static_cast<int64_t>(DnnConvolved::X), static_cast<int64_t>(DnnConvolved::W),
                                  static_cast<int64_t>(DnnConvolved::Y)};
  void* const addresses[] = {x, w, y};
  return plan->ways[way].run(*functions_, handle_, kNumbers, addresses, workspace, must);
}

}  // namespace naru::backends::cuda
