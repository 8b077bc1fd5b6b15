#include "naru/distributed/gradient_reducer.h"

#include <algorithm>
#include <unordered_set>

#include "autograd/history/accumulate.h"
#include "autograd/history/history.h"
#include "core/tensor_impl.h"
#include "naru/autograd.h"
#include "naru/autograd/node.h"
#include "naru/ops.h"
#include "ops/sparse/sparse.h"

namespace naru::distributed {
namespace {

struct Bucket {
  std::vector<size_t> members;  // parameters' places in the list
  std::vector<Tensor> parameters, gradients;
  size_t pending = 0;
  Tensor vector;  // gradients are views of it, or are computed into it
  std::function<void()> wait;
};

// Of one dtype and device each, in the order of backward.
std::vector<Bucket> buckets_of(const std::vector<Tensor>& parameters, const GradientReducer::Options& options) {
  std::vector<Bucket> found;
  int64_t room = 0;
  for (size_t i = parameters.size(); i-- > 0;) {
    const Tensor& p = parameters[i];
    if (found.empty() || room <= 0 || found.back().parameters[0].dtype() != p.dtype() ||
        found.back().parameters[0].device() != p.device()) {
      room = static_cast<int64_t>(found.empty() ? options.first_bucket : options.bucket);
      found.emplace_back();
    }
    found.back().members.push_back(i);
    found.back().parameters.push_back(p);
    room -= p.numel() * static_cast<int64_t>(size_of(p.dtype()));
  }
  return found;
}

std::vector<Tensor> views_of(const Tensor& vector, const std::vector<Tensor>& models) {
  std::vector<Tensor> views;
  int64_t at = 0;
  for (const Tensor& m : models) {
    views.push_back(vector.narrow(0, at, m.numel()).view(m.sizes()));
    at += m.numel();
  }
  return views;
}

// The leaves that the outputs depend on.
std::unordered_set<const TensorImpl*> leaves_behind(const std::vector<Tensor>& outputs) {
  std::unordered_set<const TensorImpl*> found;
  std::unordered_set<const autograd::Node*> seen;
  std::vector<const autograd::Node*> waiting;
  const auto add = [&](const autograd::Node* node) {
    if (node && seen.insert(node).second) waiting.push_back(node);
  };
  for (const Tensor& t : outputs)
    if (t.requires_grad()) add(autograd::gradient_edge(t).node.get());
  while (!waiting.empty()) {
    const autograd::Node* const node = waiting.back();
    waiting.pop_back();
    if (const auto* const leaf = dynamic_cast<const autograd::AccumulateGrad*>(node))
      if (const Tensor variable = leaf->variable(); variable.defined()) found.insert(variable.impl());
    for (const autograd::Edge& edge : node->next()) add(edge.node.get());
  }
  return found;
}

}  // namespace

struct GradientReducer::State {
  State(std::vector<Tensor> given, ProcessGroup& of, Options wanted)
      : parameters(std::move(given)), group(of), options(std::move(wanted)), buckets(buckets_of(parameters, options)) {
    bucket_of.resize(parameters.size());
    ready.resize(parameters.size());
    for (size_t b = 0; b < buckets.size(); ++b)
      for (const size_t i : buckets[b].members) bucket_of[i] = b;
    reset();
  }

  const std::vector<Tensor> parameters;
  ProcessGroup& group;
  const Options options;
  std::vector<Bucket> buckets;
  std::vector<size_t> bucket_of;
  std::vector<HookHandle> hooks;
  Exchange exchange;
  std::optional<int> divisor;

  bool expecting = false;
  std::vector<bool> ready;
  size_t next = 0;                        // bucket to be exchanged
  std::optional<std::vector<bool>> used;  // on this rank, if that is looked for

  std::string name(size_t i) const { return i < options.names.size() ? options.names[i] : "number " + std::to_string(i); }

  void reset() {
    expecting = false, next = 0;
    used.reset();
    std::fill(ready.begin(), ready.end(), false);
    for (Bucket& b : buckets) b.pending = b.members.size(), b.gradients.clear(), b.wait = nullptr;
  }

  void prepare() {
    if (next < buckets.size() && std::find(ready.begin(), ready.end(), true) != ready.end()) {
      std::string unused;
      for (size_t i = 0; i < parameters.size(); ++i)
        if (!ready[i]) unused += (unused.empty() ? "" : ", ") + name(i);
      reset();
      throw RuntimeError(
          "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that your module "
          "has parameters that were not used in producing loss: {}. Pass find_unused_parameters=True to DistributedDataParallel (in C++: "
          "the "
          "outputs to prepare()), or let the loss depend on them",
          unused);
    }
    reset();
    expecting = true;
  }

  void mark(size_t i) {
    ready[i] = true;
    --buckets[bucket_of[i]].pending;
  }

  void accumulated(size_t i) {
    if (!expecting) return;
    if (ready[i])
      throw RuntimeError(
          "Expected to mark a variable ready only once: the gradient of {} came a second time in one backward (through a checkpoint, or a "
          "module that is used outside of forward)",
          name(i));
    mark(i);
    const NoGrad off;
    for (; next < buckets.size() && buckets[next].pending == 0; ++next) launch(next);
    if (next == buckets.size()) finish();
  }

  void launch(size_t number) {
    Bucket& b = buckets[number];
    for (size_t k = 0; k < b.members.size(); ++k) {
      const Tensor grad = b.parameters[k].grad();
      if (grad.defined() && ops::has_sparse_form(grad))
        throw RuntimeError("DistributedDataParallel: the gradient of {} is sparse, which is not averaged; use sparse=False",
                           name(b.members[k]));
      b.gradients.push_back(grad.defined() ? grad : zeros_like(b.parameters[k]).detach());
    }
    if (options.as_views || exchange) flatten(b);
    if (exchange)
      b.wait = exchange(number, b.vector, b.parameters, number + 1 == buckets.size());
    else
      average(b, number + 1 < buckets.size());
  }

  static void flatten(Bucket& b) {
    if (!b.vector.defined()) {
      std::vector<Tensor> flat;
      for (const Tensor& g : b.gradients) flat.push_back(g.reshape({-1}));
      b.vector = cat(flat);
    }
    const std::vector<Tensor> views = views_of(b.vector, b.parameters);
    for (size_t k = 0; k < views.size(); ++k) {
      const Tensor &grad = b.gradients[k], &view = views[k];
      if (grad.impl()->storage.get() != view.impl()->storage.get() || grad.storage_offset() != view.storage_offset() ||
          grad.strides() != view.strides())
        view.copy_(grad);
    }
  }

  // beside: on another thread or stream. For the last bucket no work is left to do at the same time.
  void average(Bucket& b, bool beside) {
    const std::vector<Tensor> tensors = b.vector.defined() ? std::vector<Tensor>{b.vector} : b.gradients;
    const WorkRef work = group.all_reduce(tensors, divisor ? ReduceOp::Sum : ReduceOp::Avg, beside);
    b.wait = [work, tensors, by = divisor] {
      work->wait();
      if (by)
        for (const Tensor& t : tensors) t.div_(*by);
    };
  }

  void finish() {
    const std::optional<std::vector<bool>> anywhere = used_anywhere();
    for (Bucket& b : buckets) {
      if (b.wait) b.wait();
      const std::vector<Tensor> views = b.vector.defined() ? views_of(b.vector, b.parameters) : std::vector<Tensor>();
      for (size_t k = 0; k < b.members.size(); ++k) {
        if (anywhere && !(*anywhere)[b.members[k]]) continue;
        const Tensor& result = views.empty() ? b.gradients[k] : views[k];
        const Tensor grad = b.parameters[k].grad();
        if (!grad.defined() || options.as_views)
          b.parameters[k].set_grad(result);
        else if (!views.empty())
          grad.copy_(result);
      }
      if (!options.as_views) b.vector = {};
    }
    reset();
  }

  std::optional<std::vector<bool>> used_anywhere() const {
    if (!used) return std::nullopt;
    const Tensor here = tensor(std::vector<uint8_t>(used->begin(), used->end()), naru::Options(Device(DeviceType::Cpu)));
    group.all_reduce(here, ReduceOp::Max);
    const std::vector<int64_t> found = here.to_ints();
    return std::vector<bool>(found.begin(), found.end());
  }

  void join_with_zeros() {
    const NoGrad off;
    for (Bucket& b : buckets) {
      b.gradients.clear();
      for (const Tensor& p : b.parameters) b.gradients.push_back(zeros_like(p).detach());
      if (options.as_views) b.vector = {}, flatten(b);
      average(b, true);
    }
    for (Bucket& b : buckets) {
      b.wait();
      if (!options.as_views) continue;
      const std::vector<Tensor> views = views_of(b.vector, b.parameters);
      for (size_t k = 0; k < views.size(); ++k) b.parameters[k].set_grad(views[k]);  // for an optimizer that is joined, too
    }
    reset();
  }
};

GradientReducer::GradientReducer(std::vector<Tensor> parameters, ProcessGroup& group, Options options) {
  for (const Tensor& p : parameters)
    if (!p.defined() || !p.requires_grad() || !p.is_leaf())
      throw ValueError("GradientReducer: parameters must be leaves that require gradients");
  state_ = std::make_shared<State>(std::move(parameters), group, std::move(options));
  for (size_t i = 0; i < state_->parameters.size(); ++i)
    state_->hooks.push_back(
        autograd::register_post_accumulate_grad_hook(state_->parameters[i], [weak = std::weak_ptr<State>(state_), i](const Tensor&) {
          if (const auto state = weak.lock()) state->accumulated(i);
        }));
}

GradientReducer::~GradientReducer() {
  for (HookHandle& hook : state_->hooks) hook.remove();
}

void GradientReducer::broadcast() {
  const NoGrad off;
  std::vector<Tensor> values;
  for (const Tensor& p : state_->parameters) values.push_back(p.detach());
  state_->group.broadcast(values, 0);
}

void GradientReducer::prepare() { state_->prepare(); }

void GradientReducer::prepare(const std::vector<Tensor>& outputs) {
  State& s = *state_;
  s.prepare();
  const auto reached = leaves_behind(outputs);
  s.used.emplace();
  for (const Tensor& p : s.parameters) s.used->push_back(reached.contains(p.impl()));
  // Nothing is exchanged before backward: buckets of unused parameters alone go together with later ones.
  for (size_t i = 0; i < s.parameters.size(); ++i)
    if (!(*s.used)[i]) s.mark(i);
}

void GradientReducer::stop() { state_->expecting = false; }
void GradientReducer::join_with_zeros() { state_->join_with_zeros(); }
void GradientReducer::set_divisor(std::optional<int> divisor) { state_->divisor = divisor; }
void GradientReducer::set_exchange(Exchange exchange) { state_->exchange = std::move(exchange); }

}  // namespace naru::distributed
