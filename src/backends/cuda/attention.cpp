#include "backends/cuda/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "backends/cuda/device.h"
#include "naru/error.h"

namespace naru::backends::cuda {

using ir::Attention;

// No plan: the library has none, or it has not been asked for yet.
struct Attentions::Plan {
  int met = 0;
  bool asked = false, refused = false;
  std::optional<DnnGraph> operations;  // what the plan was made of lives as long as it
  std::optional<DnnDescriptor> graph, engine, plan;
  Room room;

  bool usable() const { return plan && !refused; }
};

Attentions::~Attentions() {
  if (!handle_) return;
  if (!device_.forked() && !device_.lost())
    if (const CudaDevice::Current scope(device_, std::nothrow); scope) {
      plans_.clear();
      functions_->cudnnDestroy(handle_);
      return;
    }
  static_cast<void>(new auto(std::move(plans_)));  // they would unload their kernels
}

bool Attentions::open() {
  if (opened_) return handle_ != nullptr;
  opened_ = true;
  functions_ = library_.get();
  if (!functions_) return false;
  version_ = functions_->version();
  const int status = functions_->cudnnCreate(&handle_);
  if (status == CUDNN_STATUS_SUCCESS) return true;
  library_.refused(status);
  handle_ = nullptr;
  return false;
}

void Attentions::check(int status, const char* function) const {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const std::string what =
      fmt::format("cuDNN error: {}, when calling `{}` on {} for attention", status_name<Cudnn>(status), function, device_.device().str());
  if (status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED || status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED)
    throw OutOfMemoryError(what + ". Use smaller tensors, or free some");
  throw RuntimeError("{}. `torch.nn.attention.sdpa_kernel(SDPBackend.MATH)` takes naru's own products", what);
}

// The first of the library's proposals that it makes a plan of, the quickest first as it expects.
void Attentions::make(Plan& made, const DnnAttention& a) {
  const DnnCheck check = [this](int status, const char* function) { this->check(status, function); };
  const CudaDevice::Relaxed scope(device_);  // it loads kernels
  made.operations.emplace(*functions_, check, static_cast<int64_t>(DnnOperand::Inner));
  add_attention(*made.operations, a);
  made.graph = made.operations->finish(handle_);
  for (const int mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    DnnDescriptor proposals(*functions_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, check);
    proposals.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *made.graph, check);
    proposals.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode, check);
    int64_t count = 0;
    const auto get = [&](int64_t wanted, void* to) {
      return functions_->cudnnBackendGetAttribute(proposals.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, wanted,
                                                  &count, to);
    };
    if (functions_->cudnnBackendFinalize(proposals.get()) != CUDNN_STATUS_SUCCESS || get(0, nullptr) != CUDNN_STATUS_SUCCESS) continue;
    std::vector<DnnDescriptor> engines;
    std::vector<cudnnBackendDescriptor_t> all;
    for (int64_t i = 0; i < count; ++i) {
      engines.emplace_back(*functions_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, check);
      all.push_back(engines.back().get());
    }
    if (count == 0 || get(count, all.data()) != CUDNN_STATUS_SUCCESS) continue;
    for (DnnDescriptor& engine : std::span(engines).first(std::min(engines.size(), static_cast<size_t>(std::max<int64_t>(count, 0))))) {
      DnnDescriptor plan(*functions_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, check);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle_, check);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine, check);
      if (functions_->cudnnBackendFinalize(plan.get()) != CUDNN_STATUS_SUCCESS) continue;
      int64_t bytes = 0, one = 0;
      check(functions_->cudnnBackendGetAttribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &one, &bytes),
            "cudnnBackendGetAttribute");
      made.room.plan = static_cast<size_t>(std::max<int64_t>(bytes, 0));
      made.engine = std::move(engine), made.plan = std::move(plan);
      return;
    }
  }
}

std::shared_ptr<Attentions::Plan> Attentions::plan_of(const DnnAttention& a) {
  if (const auto known = plans_.find(a); known != plans_.end()) return known->second;
  auto plan = std::make_shared<Plan>();
  if (a.use == Attention::Use::Backward) {
    const Sizes4& s = a.q_sizes;
    plan->room.sums = static_cast<size_t>(s[0] * s[1] * s[2]) * sizeof(float);
    plan->room.query = plan->room.sums * static_cast<size_t>(s[3]);
  }
  // Those that there are stay: their kernels may be at work.
  if (plans_.size() >= kMostPlans) std::erase_if(plans_, [](const auto& known) { return !known.second->plan; });
  if (plans_.size() >= kMostPlans)
    plan->asked = true;
  else
    plans_.emplace(a, plan);
  return plan;
}

bool Attentions::takes(const Attention& op) {
  const std::lock_guard lock(mutex_);
  if (op.queries < kFewQueries || !open()) return false;
  const std::optional<DnnAttention> attention = for_cudnn(op, version_);
  if (!attention) return false;
  const auto plan = plan_of(*attention);
  if (plan->asked) return plan->usable();
  // Backward is asked for where Forward has a plan.
  const bool many = op.batch * op.heads * op.queries * op.keys >= kMany;
  if (!many && op.use == Attention::Use::Forward && ++plan->met < kOften) return false;
  plan->asked = true;
  try {
    make(*plan, *attention);
  } catch (const DeviceLostError&) {
    throw;
  } catch (const Error&) {
    // As where there is none: products and a softmax do it, and tell what is wrong, if it still is.
    plan->plan.reset();
  }
  return plan->usable();
}

std::shared_ptr<Attentions::Plan> Attentions::must_have(const Attention& op) {
  const std::optional<DnnAttention> attention = open() ? for_cudnn(op, version_) : std::nullopt;
  const auto plan = attention ? plan_of(*attention) : nullptr;
  if (!plan || !plan->plan) throw RuntimeError("cuDNN has no plan for an attention on {} that it was asked for", device_.device().str());
  return plan;
}

Attentions::Room Attentions::room(const Attention& op) {
  const std::lock_guard lock(mutex_);
  return must_have(op)->room;
}

void Attentions::start(const Attention& op, void* workspace, void* sums, void* query, CUstream stream) {
  const std::lock_guard lock(mutex_);
  const auto plan = must_have(op);
  float scale = static_cast<float>(op.scale), hidden = -std::numeric_limits<float>::infinity(), one = 1;
  std::vector<int64_t> numbers;
  std::vector<void*> addresses;
  const auto add = [&](DnnOperand number, void* address) { numbers.push_back(static_cast<int64_t>(number)), addresses.push_back(address); };
  add(DnnOperand::Query, op.q.data), add(DnnOperand::Key, op.k.data), add(DnnOperand::Value, op.v.data);
  add(DnnOperand::Result, op.out.data), add(DnnOperand::Statistics, op.stats.data), add(DnnOperand::Scale, &scale);
  if (op.biased) add(DnnOperand::Bias, op.bias.data);
  if (op.causal) add(DnnOperand::Hidden, &hidden);
  if (op.use == Attention::Use::Backward) {
    add(DnnOperand::ResultGradient, op.dout.data), add(DnnOperand::QueryGradient, op.dq.data);
    add(DnnOperand::KeyGradient, op.dk.data), add(DnnOperand::ValueGradient, op.dv.data);
    add(DnnOperand::Sums, sums), add(DnnOperand::QuerySums, query), add(DnnOperand::One, &one);
  }
  const DnnCheck check = [this](int status, const char* function) { this->check(status, function); };
  check(functions_->cudnnSetStream(handle_, stream), "cudnnSetStream");
  DnnDescriptor pack(*functions_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, check);
  const auto count = static_cast<int64_t>(numbers.size());
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, numbers.data(), check);
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, addresses.data(), check);
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace, check);
  pack.finish(check);
  const int status = functions_->cudnnBackendExecute(handle_, plan->plan->get(), pack.get());
  if (status != CUDNN_STATUS_SUCCESS) plan->refused = true;
  check(status, "cudnnBackendExecute");
}

}  // namespace naru::backends::cuda
