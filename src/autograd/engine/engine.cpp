// The autograd engine: runs the backward graph from its roots to its leaves, later nodes first.
#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "autograd/engine/engine.h"
#include "autograd/engine/nesting.h"
#include "autograd/graph/anomaly.h"
#include "autograd/history/constant.h"
#include "autograd/history/history.h"
#include "core/autocast.h"
#include "core/language.h"
#include "naru/ops.h"
#include "ops/shape/strides.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"

namespace naru {
namespace autograd {
namespace {

struct Later {
  bool operator()(const Node* a, const Node* b) const noexcept { return a->sequence() < b->sequence(); }
};

// True if g may be added to `sum` in place: this pass holds the only reference to its memory, and the result would have its layout.
bool may_add_to(const Tensor& sum, const Tensor& g) {
  const TensorImpl &a = *sum.impl(), &b = *g.impl();
  return !grad_enabled() && a.use_count() == 1 && !a.base && !a.autograd && !ops::has_sparse_form(sum) && !ops::has_sparse_form(g) &&
         a.storage->use_count() == 1 && a.storage->externally_aliased.load(std::memory_order_relaxed) == 0 && a.dtype == b.dtype &&
         a.sizes == b.sizes && a.strides == b.strides && a.storage->device == b.storage->device && ops::is_dense(a.sizes, a.strides);
}

void accumulate(Tensor& into, Tensor g) {
  if (!g.defined()) return;
  if (!into.defined())
    into = std::move(g);
  else if (may_add_to(into, g))
    into.add_(g);
  else
    into = ops::add_gradients(into, g);
}

// The requested inputs of grad() and backward(inputs=...).
struct Wanted {
  std::map<std::pair<Node*, uint32_t>, size_t> at;  // (node, slot) -> index in the list of inputs
  Needed::Nodes needed;                             // nodes to run: those that lead to one in `at`
  Needed::Nodes reaching;                           // the same, and the nodes in `at`
};

// Runs the hooks on the gradients of a node's outputs.
void run_hooks(const Node::Extras& x, std::vector<Tensor>& grads) {
  const auto hooks = x.hooks->entries();
  if (!hooks) return;
  for (const auto& hook : *hooks) {
    if (hook.slot >= grads.size() || !grads[hook.slot].defined()) continue;
    Tensor changed = hook.call(grads[hook.slot]);
    if (!changed.defined()) continue;
    check_hook_result(grads[hook.slot], changed, hook.name);
    grads[hook.slot] = std::move(changed);
  }
}

void keep_grads(Node::Extras& x, const std::vector<Tensor>& grads) {
  std::vector<Tensor> replaced;  // declared before the lock, so that it is freed after unlocking
  const std::lock_guard lock(x.mutex);
  for (auto& [slot, m] : x.retained) {
    if (slot >= grads.size() || !grads[slot].defined()) continue;
    replaced.push_back(std::move(m->grad));
    m->grad = replaced.back().defined() ? replaced.back() + grads[slot] : grads[slot].clone();
  }
}

// Throws RuntimeError if a gradient contains NaN.
void check_for_nan(const Node& node, std::span<const Tensor> grads) {
  const NoGrad off;
  for (size_t i = 0; i < grads.size(); ++i)
    if (grads[i].defined() && is_inexact(grads[i].dtype()) && ops::number_or(any(isnan(grads[i])), 0) != 0)
      throw RuntimeError("Function '{}' returned nan values in its {}th output.", node.name(), i);
}

std::vector<Tensor> applied(Node& node, std::vector<Tensor> grads, Needed needed) {
  std::vector<Tensor> results = node.apply(std::move(grads), needed);
  if ((node.reads_inputs || node.refused_second) && grad_enabled()) [[unlikely]]
    mark_gradients(node, results);
  return results;
}

std::vector<Tensor> apply_with_hooks(Node& node, std::vector<Tensor> grads, Needed needed) {
  const auto before = node.extras()->before->entries();
  const auto after = node.extras()->after->entries();
  if (before)
    for (const auto& hook : *before) hook.call(grads);
  if (!after) return applied(node, std::move(grads), needed);
  std::vector<Tensor> results = applied(node, grads, needed);
  for (const auto& hook : *after) hook.call(results, grads);
  return results;
}

std::vector<Tensor> apply(Node& node, std::vector<Tensor> grads, Needed needed) {
  if (!anomaly_mode.load(std::memory_order_relaxed)) [[likely]]
    return node.extras() ? apply_with_hooks(node, std::move(grads), needed) : applied(node, std::move(grads), needed);
  try {
    std::vector<Tensor> results =
        node.extras() ? apply_with_hooks(node, std::move(grads), needed) : applied(node, std::move(grads), needed);
    if (anomaly_checks_nan.load(std::memory_order_relaxed)) check_for_nan(node, results);
    return results;
  } catch (...) {
    report_failure(node);
    throw;
  }
}

class Engine;
thread_local constinit Engine* current_engine = nullptr;  // the innermost pass running on this thread
std::atomic<uint64_t> passes{0};

class Engine {
 public:
  Engine(bool keep, Wanted* wanted, std::vector<Tensor>* results) : keep_(keep), wanted_(wanted), results_(results) {}
  Engine(const Engine&) = delete;
  ~Engine() {
    for (Node* node : order_) {
      Node::Visit& v = node->visit;
      if (v.pass.load(std::memory_order_relaxed) != this) continue;
      v.missing = 0, v.queued = false, v.grad = {}, v.more.clear();
      v.pass.store(nullptr, std::memory_order_release);
    }
  }

  void add_root(Edge edge, Tensor g) { roots_.push_back({std::move(edge), std::move(g)}); }

  uint64_t number() const noexcept { return number_; }
  bool has_inputs() const noexcept { return wanted_ != nullptr; }
  bool keeps_graph() const noexcept { return keep_; }
  bool reaches(Node& node) const {
    const bool claimed = node.visit.pass.load(std::memory_order_relaxed) == this || (!elsewhere_.empty() && elsewhere_.contains(&node));
    return claimed && (!wanted_ || wanted_->reaching.contains(&node));
  }

  void run() {
    std::optional<autocast::Off> off;
    if (autocast::anywhere()) off.emplace();
    struct Current {
      Engine* before;
      ~Current() { current_engine = before; }
    } const current{std::exchange(current_engine, this)};
    count();
    for (auto& [edge, g] : roots_) put(visit(edge.node.get()), edge.slot, std::move(g));
    for (auto& [edge, g] : roots_) make_ready(edge.node.get(), visit(edge.node.get()));
    while (!ready_.empty()) {
      std::pop_heap(ready_.begin(), ready_.end(), Later());
      Node* node = ready_.back();
      ready_.pop_back();
      pass_on(*node, process(*node));
    }
    for (size_t i = 0; i < at_end_.size(); ++i) std::exchange(at_end_[i], {})();
  }
  void call_at_end(std::function<void()> call) { at_end_.push_back(std::move(call)); }

 private:
  // Returns this pass's state for a node. It is in the node itself, unless another pass (on another thread, or the one that this pass is nested
  // in) is using that; then it is in elsewhere_.
  Node::Visit& visit(Node* node) { return node->visit.pass.load(std::memory_order_relaxed) == this ? node->visit : elsewhere_.at(node); }
  // Reserves the state for a node, and adds the node to `order_`, once.
  void claim(Node* node) {
    if (node->visit.pass.load(std::memory_order_relaxed) == this) return;
    const void* nobody = nullptr;
    if (!elsewhere_.empty() && elsewhere_.contains(node)) return;
    if (!node->visit.pass.compare_exchange_strong(nobody, this, std::memory_order_acquire)) elsewhere_.try_emplace(node);
    order_.push_back(node);
  }

  void make_ready(Node* node, Node::Visit& v) {
    if (v.missing != 0 || std::exchange(v.queued, true)) return;
    ready_.push_back(node);
    std::push_heap(ready_.begin(), ready_.end(), Later());
  }

  static void put(Node::Visit& v, uint32_t slot, Tensor g) {
    if (slot == 0) return accumulate(v.grad, std::move(g));
    if (v.more.size() < slot) v.more.resize(slot);
    accumulate(v.more[slot - 1], std::move(g));
  }

  std::vector<Tensor> take_grads(Node& node) {
    Node::Visit& v = visit(&node);
    std::vector<Tensor> grads = std::move(spare_);
    grads.resize(node.outputs);
    grads[0] = std::move(v.grad);
    for (size_t i = 0; i < v.more.size() && i + 1 < grads.size(); ++i) grads[i + 1] = std::move(v.more[i]);
    return grads;
  }

  // Runs the hooks, stores retained and requested gradients, and runs the node. Returns the gradients of its inputs.
  std::vector<Tensor> process(Node& node) {
    std::vector<Tensor> grads = take_grads(node);
    const bool needed = !wanted_ || wanted_->needed.contains(&node);
    if (!needed && !wanted_->reaching.contains(&node)) return {};
    if (Node::Extras* x = node.extras()) {
      run_hooks(*x, grads);
      keep_grads(*x, grads);
    }
    if (wanted_ && results_)
      for (uint32_t slot = 0; slot < grads.size(); ++slot)
        if (auto it = wanted_->at.find({&node, slot}); it != wanted_->at.end()) (*results_)[it->second] = grads[slot];
    if (!needed) return {};
    std::vector<Tensor> results = apply(node, std::move(grads), Needed(node, wanted_ ? &wanted_->reaching : nullptr));
    if (!keep_) node.release_saved();
    return results;
  }

  void pass_on(Node& node, std::vector<Tensor> results) {
    for (size_t i = 0; i < node.next().size(); ++i) {
      const Edge& e = node.next()[i];
      if (!e.node) continue;
      Node::Visit& v = visit(e.node.get());
      if (i < results.size()) put(v, e.slot, std::move(results[i]));
      --v.missing;
      make_ready(e.node.get(), v);
    }
    results.clear();
    spare_ = std::move(results);
  }

  void count() {
    for (const auto& [edge, g] : roots_) claim(edge.node.get());
    for (size_t i = 0; i < order_.size(); ++i)
      for (const Edge& e : order_[i]->next()) {
        if (!e.node) continue;
        claim(e.node.get());
        ++visit(e.node.get()).missing;
      }
    if (wanted_) find_needed();
  }

  void find_needed() {
    for (const auto& [key, position] : wanted_->at) {
      wanted_->reaching.insert(key.first);
      // In backward(), the AccumulateGrad node of a requested leaf must run, to add to its grad.
      if (!results_ && key.first->next().empty()) wanted_->needed.insert(key.first);
    }
    const auto reaches = [&](const Node* node) {
      for (const Edge& e : node->next())
        if (e.node && wanted_->reaching.contains(e.node.get())) return true;
      return false;
    };
    // A node is created after the nodes it leads to, so it comes after them in the order of sequence numbers, and one round is almost always enough.
    std::sort(order_.begin(), order_.end(), [](Node* a, Node* b) { return a->sequence() < b->sequence(); });
    for (bool grown = true; grown;) {
      grown = false;
      for (Node* node : order_)
        if (!wanted_->needed.contains(node) && reaches(node)) {
          wanted_->needed.insert(node), wanted_->reaching.insert(node);
          grown = true;
        }
    }
  }

  const uint64_t number_ = passes.fetch_add(1, std::memory_order_relaxed) + 1;
  bool keep_;
  Wanted* wanted_;
  std::vector<Tensor>* results_;
  std::vector<Tensor> spare_;  // an empty vector whose memory the next node's gradients reuse
  SmallVector<std::pair<Edge, Tensor>, 1> roots_;
  SmallVector<Node*, 32> order_;  // all nodes of this pass
  SmallVector<Node*, 32> ready_;
  std::unordered_map<Node*, Node::Visit> elsewhere_;
  std::vector<std::function<void()>> at_end_;
};

void add_roots(Engine& engine, std::span<const Tensor> outputs, std::span<const Tensor> gradients) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& t = outputs[i];
    if (!requires_grad(t))
      throw RuntimeError("element {} of tensors does not require grad and does not have a grad_fn (shape {}, {})", i, t.sizes().str(),
                         name_of(t.dtype()));
    Tensor g = i < gradients.size() ? gradients[i] : Tensor();
    if (!g.defined()) {
      if (t.numel() != 1)
        throw RuntimeError("grad can be implicitly created only for scalar outputs (shape {}; pass {})", t.sizes().str(),
                           spelled("backward(gradient)", "gradient="));
      if (is_complex(t.dtype()))
        throw RuntimeError("grad can be implicitly created only for real scalar outputs but got {} (pass {})",
                           traits_of(t.dtype()).scalar_type, spelled("backward(gradient)", "gradient="));
      g = ones_like(t);
    } else if (!(g.sizes() == t.sizes())) {
      throw RuntimeError("Mismatch in shape: grad_output[{}] has a shape of torch.Size({}) and output[{}] has a shape of torch.Size({}).",
                         i, g.sizes().str(), i, t.sizes().str());
    } else if (g.dtype() != t.dtype() || g.device() != t.device()) {
      g = fit_gradient(g, TensorLike(t), "", i);
    }
    engine.add_root(gradient_edge(t), g);
  }
}

void add_wanted(Wanted& wanted, const std::vector<Tensor>& inputs, std::vector<Edge>& edges) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) throw RuntimeError("One of the differentiated Tensors is undefined (inputs[{}])", i);
    edges.push_back(gradient_edge(inputs[i]));
    if (!edges[i].node) throw RuntimeError("One of the differentiated Tensors does not require grad (inputs[{}])", i);
    wanted.at[{edges[i].node.get(), edges[i].slot}] = i;
  }
}

// results: receives the gradients in grad(); null in backward().
void run_backward(std::span<const Tensor> outputs, std::span<const Tensor> gradients, bool retain_graph, bool create_graph, Wanted* wanted,
                  std::vector<Tensor>* results) {
  const GradMode mode(create_graph);
  Engine engine(retain_graph || create_graph, wanted, results);
  add_roots(engine, outputs, gradients);
  run_nested([&] { engine.run(); });
}

}  // namespace

uint64_t current_backward() noexcept { return current_engine ? current_engine->number() : 0; }
bool backward_has_inputs() noexcept { return current_engine && current_engine->has_inputs(); }
bool backward_keeps_graph() noexcept { return current_engine && current_engine->keeps_graph(); }
bool backward_reaches(Node& node) {
  if (!current_engine) throw RuntimeError("no backward pass is under way on this thread");
  return current_engine->reaches(node);
}

}  // namespace autograd

void queue_callback(std::function<void()> call) {
  if (!autograd::current_engine) throw RuntimeError("Final callbacks can only be installed during backward pass.");
  autograd::current_engine->call_at_end(std::move(call));
}

void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients, bool retain_graph, bool create_graph,
              const std::vector<Tensor>& inputs) {
  autograd::Wanted wanted;
  std::vector<autograd::Edge> edges;
  for (const Tensor& t : inputs)
    if (t.defined() && t.requires_grad()) t.retain_grad();
  autograd::add_wanted(wanted, inputs, edges);
  autograd::run_backward(outputs, gradients, retain_graph, create_graph, inputs.empty() ? nullptr : &wanted, nullptr);
}

void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph, SourceLocation where) const {
  const SourceLocationScope here(where);
  autograd::run_backward({this, 1}, {&gradient, 1}, retain_graph, create_graph, nullptr, nullptr);
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs, const std::vector<Tensor>& gradients,
                         bool retain_graph, bool create_graph, bool allow_unused) {
  if (inputs.empty()) throw RuntimeError("`inputs` argument to `grad()` cannot be empty.");
  autograd::Wanted wanted;
  std::vector<autograd::Edge> edges;
  autograd::add_wanted(wanted, inputs, edges);
  std::vector<Tensor> results(inputs.size());
  autograd::run_backward(outputs, gradients, retain_graph, create_graph, &wanted, &results);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const size_t first = wanted.at[{edges[i].node.get(), edges[i].slot}];
    if (first != i) results[i] = results[first];
    if (!results[i].defined() && !allow_unused)
      throw RuntimeError(
          "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is the "
          "desired behavior. (inputs[{}])",
          i);
  }
  return results;
}

}  // namespace naru
