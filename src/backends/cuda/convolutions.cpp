#include "backends/cuda/convolutions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>

#include "backends/cuda/device.h"
#include "naru/error.h"

namespace naru::backends::cuda {
namespace {

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

// True if sizes and element count fit into 32 bits: many of its engines do not support more.
bool is_small(const Sizes5& sizes) noexcept {
  int64_t all = 1;
  for (const int64_t n : sizes)
    if (n < 1 || n > INT_MAX || (all *= n) > INT_MAX) return false;
  return true;
}

// True if equal padding on both sides gives the size of the result, as the library expects.
bool is_even(const Convolution& q, size_t d) noexcept {
  if (q.stride[d] > INT_MAX || q.dilation[d] > INT_MAX || q.padding[d] > INT_MAX || q.padding[d] < 0) return false;
  const int64_t rest = q.size[d] + 2 * q.padding[d] - ((q.kernel[d] - 1) * q.dilation[d] + 1);
  return rest >= 0 && 1 + rest / q.stride[d] == q.result[d];
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

std::string described(const DnnConvolution& c) {
  const auto sizes = [&](const std::array<int64_t, 5>& s) { return fmt::format("{}", fmt::join(s.begin(), s.begin() + c.dims, " x ")); };
  return fmt::format("{} of x {}, w {} and y {}", Convolution::kNames[static_cast<int>(c.use)], sizes(c.x), sizes(c.w), sizes(c.y));
}

}  // namespace

std::optional<DnnConvolution> for_cudnn(const Convolution& q, bool channels_last) noexcept {
  DnnConvolution c;
  c.use = q.use, c.channels_last = channels_last;
  c.type = dnn_type(q.dtype), c.tf32 = q.dtype == DType::F32 && q.precision.tf32;
  if (q.precision.deterministic || c.type < 0) return std::nullopt;
  // It has no kernels for channels-last float64, and would transpose instead.
  if (channels_last && q.dtype == DType::F64) return std::nullopt;
  if (!is_small(q.sizes_of_x()) || !is_small(q.sizes_of_w()) || !is_small(q.sizes_of_y())) return std::nullopt;
  for (size_t d = 0; d < 3; ++d)
    if (!is_even(q, d)) return std::nullopt;
  const bool flat = q.size[0] == 1 && q.result[0] == 1 && q.kernel[0] == 1 && q.padding[0] == 0;
  const size_t from = flat ? 1 : 0;
  c.dims = flat ? 4 : 5;
  const auto put = [&](std::array<int64_t, 5>& to, const Sizes5& sizes) {
    to[0] = sizes[0], to[1] = sizes[1];
    for (size_t d = from; d < 3; ++d) to[2 + d - from] = sizes[2 + d];
  };
  put(c.x, q.sizes_of_x()), put(c.w, q.sizes_of_w()), put(c.y, q.sizes_of_y());
  for (size_t d = from; d < 3; ++d)
    c.padding[d - from] = q.padding[d], c.stride[d - from] = q.stride[d], c.dilation[d - from] = q.dilation[d];
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

void add_convolution(DnnGraph& graph, const DnnConvolution& c) {
  const auto dims = static_cast<size_t>(c.dims);
  const auto tensor = [&](DnnConvolved number, const std::array<int64_t, 5>& sizes) {
    // Treat it as 5-d: missing dimensions have size 1.
    const auto of = [&](size_t d) { return d < 2 ? d : d + 5 - dims; };
    Sizes5 five{1, 1, 1, 1, 1}, narrow{};
    for (size_t d = 0; d < dims; ++d) five[of(d)] = sizes[d];
    const Sizes5 strides = dense_strides(five, c.channels_last);
    for (size_t d = 0; d < dims; ++d) narrow[d] = strides[of(d)];
    return graph.in_memory(static_cast<int64_t>(number), c.type, std::span(sizes).first(dims), std::span(narrow).first(dims));
  };
  constexpr int kUses[] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                           CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                           CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR};
  const auto spatial = [&](const std::array<int64_t, 3>& a) { return std::span(a).first(dims - 2); };
  const auto x = tensor(DnnConvolved::X, c.x), w = tensor(DnnConvolved::W, c.w), y = tensor(DnnConvolved::Y, c.y);
  graph.convolution(kUses[static_cast<size_t>(c.use)], spatial(c.padding), spatial(c.stride), spatial(c.dilation),
                    c.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, x, w, y);
}

bool is_exact(const DnnConvolution& c, DnnNotes notes) noexcept {
  if (notes.has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) || notes.has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return false;
  const bool rounds = notes.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) || notes.has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
  return c.type != CUDNN_DATA_FLOAT || c.tf32 || !rounds;
}

struct Convolutions::Plan {
  std::optional<DnnGraph> operations;  // the engines refer to them
  std::optional<DnnDescriptor> graph;
  std::vector<DnnEngine> ways;  // empty: the library does not support it
};

Convolutions::~Convolutions() {
  if (!handle_) return;
  const CudaDevice::Current scope(device_, std::nothrow);
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

void Convolutions::check(cudnnStatus_t status, const char* function, const DnnConvolution& c) const {
  if (status == CUDNN_STATUS_SUCCESS) return;
  check_status(status, function, device_.device(), described(c), "`use_deterministic_algorithms(True)` takes naru's own kernels");
}

std::shared_ptr<Convolutions::Plan> Convolutions::plan_of(const DnnConvolution& c) {
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
  if (some && plan->ways.empty()) tell_of_no_exact_way(device_.device(), described(c));
  // Keep plans with engines: their kernels may be running, or be part of a graph.
  if (plans_.size() >= kMostPlans) std::erase_if(plans_, [](const auto& known) { return known.second->ways.empty(); });
  if (plans_.size() >= kMostPlans) plan->ways.clear();
  if (plans_.size() < kMostPlans) plans_.emplace(c, plan);
  return plan;
}

std::optional<Convolutions::Way> Convolutions::way(const DnnConvolution& c, size_t from) {
  const std::lock_guard lock(mutex_);
  if (!open()) return std::nullopt;
  const auto plan = plan_of(c);
  const DnnCheck must = [&](int status, const char* function) { check(status, function, c); };
  for (size_t i = from; i < plan->ways.size(); ++i) {
    const CudaDevice::Relaxed scope(device_);  // making plans loads kernels
    if (plan->ways[i].usable(*functions_, {handle_}, must)) return Way{i, plan->ways[i].workspace()};
  }
  return std::nullopt;
}

bool Convolutions::start(const DnnConvolution& c, size_t way, void* x, void* w, void* y, void* workspace, CUstream stream) {
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
