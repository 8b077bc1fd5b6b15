#include "backends/cuda/attention.h"

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "backends/cuda/device.h"
#include "naru/error.h"

namespace naru::backends::cuda {

using ir::Attention;

// Without `way`: the library has no plan, or has not been queried yet.
struct Attentions::Plan {
  int met = 0;
  bool asked = false, refused = false;
  std::optional<DnnGraph> operations;  // the plan refers to them
  std::optional<DnnDescriptor> graph;
  std::optional<DnnEngine> way;
  Room room;

  bool usable() const { return way && !refused; }
};

Attentions::~Attentions() {
  if (!handle_) return;
  if (!device_.forked() && !device_.lost())
    if (const CudaDevice::Current scope(device_, std::nothrow); scope) {
      plans_.clear();
      functions_->cudnnDestroy(handle_);
      return;
    }
  static_cast<void>(new auto(std::move(plans_)));  // leaked: destroying plans would unload their kernels
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
  check_status(status, function, device_.device(), "attention",
               "`torch.nn.attention.sdpa_kernel(SDPBackend.MATH)` takes naru's own products");
}

// Makes a plan of the first engine that the library proposes and accepts.
void Attentions::make(Plan& made, const DnnAttention& a) {
  const DnnCheck check = [this](int status, const char* function) { this->check(status, function); };
  const CudaDevice::Relaxed scope(device_);  // making plans loads kernels
  made.operations.emplace(*functions_, check, static_cast<int64_t>(DnnOperand::Inner));
  add_attention(*made.operations, a);
  made.graph = made.operations->finish(handle_);
  for (DnnEngine& way : engines_of(*functions_, {handle_}, *made.graph, check)) {
    if (!way.usable(*functions_, {handle_}, check)) continue;
    made.room.plan = way.workspace();
    made.way.emplace(std::move(way));
    return;
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
  // Keep existing plans: their kernels may be running.
  if (plans_.size() >= kMostPlans) std::erase_if(plans_, [](const auto& known) { return !known.second->way; });
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
  // Backward is only called for shapes for which Forward has a plan.
  const bool many = op.batch * op.heads * op.queries * op.keys >= kMany;
  if (!many && op.use == Attention::Use::Forward && ++plan->met < kOften) return false;
  plan->asked = true;
  try {
    make(*plan, *attention);
  } catch (const DeviceLostError&) {
    throw;
  } catch (const Error&) {
    // Continue without a plan: products and a softmax do the work, and report the error if it persists.
    plan->way.reset();
  }
  return plan->usable();
}

std::shared_ptr<Attentions::Plan> Attentions::must_have(const Attention& op) {
  const std::optional<DnnAttention> attention = open() ? for_cudnn(op, version_) : std::nullopt;
  const auto plan = attention ? plan_of(*attention) : nullptr;
  if (!plan || !plan->way) throw RuntimeError("cuDNN has no plan for an attention on {} that it was asked for", device_.device().str());
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
  plan->refused = true;  // reset below if it runs
  plan->refused = !plan->way->run(*functions_, handle_, numbers, addresses, workspace, check);
  if (plan->refused) check(CUDNN_STATUS_NOT_SUPPORTED, "cudnnBackendExecute");
}

}  // namespace naru::backends::cuda
