// The engine: runs the backward graph from its roots to its leaves, later nodes first.
#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "autograd/node.h"
#include "core/autocast.h"
#include "naru/ops.h"

namespace naru {
namespace autograd {
namespace {

struct Later {
  bool operator()(const Node* a, const Node* b) const noexcept { return a->sequence() < b->sequence(); }
};

void accumulate(Tensor& into, Tensor g) {
  if (!g.defined()) return;
  into = into.defined() ? into + g : std::move(g);
}

// Which inputs of the graph grad() asks for: (node, slot) -> position.
struct Wanted {
  std::map<std::pair<Node*, uint32_t>, size_t> at;
  std::unordered_set<Node*> on_the_way;  // nodes from which a wanted one is reached
};

class Engine {
 public:
  Engine(bool keep, Wanted* wanted, std::vector<Tensor>* results) : keep_(keep), wanted_(wanted), results_(results) {}
  Engine(const Engine&) = delete;
  ~Engine() {
    for (Node* node : claimed_) {
      Node::Visit& v = node->visit;
      v.missing = 0, v.queued = false, v.grad = {}, v.more.clear();
      v.pass.store(nullptr, std::memory_order_release);
    }
  }

  void add_root(Edge edge, Tensor g) { roots_.push_back({std::move(edge), std::move(g)}); }

  void run() {
    std::optional<autocast::Off> off;
    if (autocast::anywhere()) off.emplace();
    count();
    for (auto& [edge, g] : roots_) put(visit(edge.node.get()), edge.slot, std::move(g));
    for (auto& [edge, g] : roots_) make_ready(edge.node.get(), visit(edge.node.get()));
    while (!ready_.empty()) {
      std::pop_heap(ready_.begin(), ready_.end(), Later());
      Node* node = ready_.back();
      ready_.pop_back();
      std::vector<Tensor> grads = take_grads(*node);
      prepare(*node, grads);
      std::vector<Tensor> results;
      const bool leaf = node->next().empty();
      const bool useful = !wanted_ || wanted_->on_the_way.contains(node);
      if (useful && !(wanted_ && leaf && results_)) {
        results = node->apply(std::move(grads));
        if (!keep_) node->release_saved();
      }
      for (size_t i = 0; i < node->next().size(); ++i) {
        const Edge& e = node->next()[i];
        if (!e.node) continue;
        Node::Visit& v = visit(e.node.get());
        if (i < results.size()) put(v, e.slot, std::move(results[i]));
        --v.missing;
        make_ready(e.node.get(), v);
      }
    }
  }

 private:
  // Where the pass keeps what it knows of a node: in the node itself, unless another pass (of another thread, or the one that this one
  // is part of) is there.
  Node::Visit& visit(Node* node) { return node->visit.pass.load(std::memory_order_relaxed) == this ? node->visit : elsewhere_.at(node); }
  // False if it was known already.
  bool claim(Node* node) {
    if (node->visit.pass.load(std::memory_order_relaxed) == this) return false;
    const void* nobody = nullptr;
    if (elsewhere_.contains(node)) return false;
    if (node->visit.pass.compare_exchange_strong(nobody, this, std::memory_order_acquire))
      claimed_.push_back(node);
    else
      elsewhere_.try_emplace(node);
    return true;
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
    std::vector<Tensor> grads(node.outputs);
    grads[0] = std::move(v.grad);
    for (size_t i = 0; i < v.more.size() && i + 1 < grads.size(); ++i) grads[i + 1] = std::move(v.more[i]);
    return grads;
  }

  // Hooks, kept gradients, and gradients that were asked for.
  void prepare(Node& node, std::vector<Tensor>& grads) {
    if (node.extras) {
      for (auto& [key, hook] : node.extras->hooks)
        if (key.first < grads.size() && grads[key.first].defined())
          if (Tensor changed = hook(grads[key.first]); changed.defined()) grads[key.first] = changed;
      for (auto& [slot, impl] : node.extras->retained)
        if (grads[slot].defined()) {
          auto& m = static_cast<Meta&>(*impl->autograd);
          m.grad = m.grad.defined() ? m.grad + grads[slot] : grads[slot];
        }
    }
    if (wanted_ && results_)
      for (uint32_t slot = 0; slot < grads.size(); ++slot)
        if (auto it = wanted_->at.find({&node, slot}); it != wanted_->at.end()) (*results_)[it->second] = grads[slot];
  }

  void count() {
    SmallVector<Node*, 32> order;
    for (const auto& [edge, g] : roots_)
      if (claim(edge.node.get())) order.push_back(edge.node.get());
    for (size_t i = 0; i < order.size(); ++i)
      for (const Edge& e : order[i]->next()) {
        if (!e.node) continue;
        if (claim(e.node.get())) order.push_back(e.node.get());
        ++visit(e.node.get()).missing;
      }
    if (!wanted_) return;
    // An input was made before whatever uses it, so in the order of sequence numbers users come last.
    std::sort(order.begin(), order.end(), [](Node* a, Node* b) { return a->sequence() < b->sequence(); });
    for (const auto& [key, position] : wanted_->at) wanted_->on_the_way.insert(key.first);
    for (bool grown = true; grown;) {
      grown = false;
      for (Node* node : order)
        if (!wanted_->on_the_way.contains(node))
          for (const Edge& e : node->next())
            if (e.node && wanted_->on_the_way.contains(e.node.get())) {
              wanted_->on_the_way.insert(node);
              grown = true;
              break;
            }
    }
  }

  bool keep_;
  Wanted* wanted_;
  std::vector<Tensor>* results_;
  SmallVector<std::pair<Edge, Tensor>, 1> roots_;
  SmallVector<Node*, 32> claimed_, ready_;
  std::unordered_map<Node*, Node::Visit> elsewhere_;
};

struct GradMode {
  explicit GradMode(bool on) : before(set_grad_enabled(on)) {}
  ~GradMode() { set_grad_enabled(before); }
  bool before;
};

void add_roots(Engine& engine, const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& t = outputs[i];
    if (!requires_grad(t))
      throw RuntimeError("element {} of tensors does not require grad and does not have a grad_fn (shape {}, {})", i, t.sizes().str(),
                         name_of(t.dtype()));
    Tensor g = i < gradients.size() ? gradients[i] : Tensor();
    if (!g.defined()) {
      if (t.numel() != 1)
        throw RuntimeError("grad can be implicitly created only for scalar outputs (shape {}; pass gradient=)", t.sizes().str());
      g = ones_like(t);
    } else if (!(g.sizes() == t.sizes())) {
      throw RuntimeError("Mismatch in shape: grad_output[{}] has a shape of {} and output[{}] has a shape of {}.", i, g.sizes().str(), i,
                         t.sizes().str());
    }
    engine.add_root(gradient_edge(t), g);
  }
}

}  // namespace
}  // namespace autograd

void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients, bool retain_graph, bool create_graph,
              const std::vector<Tensor>& inputs) {
  autograd::Wanted wanted;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const autograd::Edge e = autograd::gradient_edge(inputs[i]);
    if (!e.node) throw RuntimeError("One of the differentiated Tensors does not require grad (inputs[{}])", i);
    wanted.at[{e.node.get(), e.slot}] = i;
  }
  autograd::GradMode mode(create_graph);
  autograd::Engine engine(retain_graph || create_graph, inputs.empty() ? nullptr : &wanted, nullptr);
  autograd::add_roots(engine, outputs, gradients);
  engine.run();
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs, const std::vector<Tensor>& gradients,
                         bool retain_graph, bool create_graph, bool allow_unused) {
  autograd::Wanted wanted;
  std::vector<autograd::Edge> edges;
  for (size_t i = 0; i < inputs.size(); ++i) {
    edges.push_back(autograd::gradient_edge(inputs[i]));
    if (!edges.back().node) throw RuntimeError("One of the differentiated Tensors does not require grad (inputs[{}])", i);
    wanted.at[{edges.back().node.get(), edges.back().slot}] = i;
  }
  std::vector<Tensor> results(inputs.size());
  {
    autograd::GradMode mode(create_graph);
    autograd::Engine engine(retain_graph || create_graph, &wanted, &results);
    autograd::add_roots(engine, outputs, gradients);
    engine.run();
  }
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

// --- the part of Tensor that speaks of gradients --------------------------------------------------------------------------------------

bool Tensor::requires_grad() const { return autograd::requires_grad(*this); }

Tensor& Tensor::requires_grad_(bool on) {
  if (on && !is_floating(dtype()))
    throw RuntimeError("only Tensors of floating point dtype can require gradients (got {})", name_of(dtype()));
  if (!on && !is_leaf())
    throw RuntimeError(
        "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a subgraph that "
        "doesn't require differentiation use var_no_grad = var.detach().");
  if (on || autograd::meta_of(*this))
    if (is_leaf()) {
      autograd::ensure_meta(*this).requires_grad = on;
      // A leaf is the base of its views: a write through one of them must be found out.
      if (on) impl_->base = nullptr;
    }
  return *this;
}

bool Tensor::is_leaf() const {
  if (!autograd::requires_grad(*this)) return true;
  return !autograd::meta_of(*this) ? false : !autograd::gradient_edge(*this).node || autograd::meta_of(*this)->grad_fn.get() == nullptr;
}

Tensor Tensor::grad() const {
  const autograd::Meta* m = autograd::meta_of(*this);
  return m ? m->grad : Tensor();
}

void Tensor::set_grad(const Tensor& g) {
  if (g.defined()) {
    if (!(g.sizes() == sizes()))
      throw RuntimeError("assigned grad has data of a different size: wanted {}, got {}", sizes().str(), g.sizes().str());
    if (g.device() != device())
      throw RuntimeError("assigned grad has data located on a different device: wanted {}, got {}", device().str(), g.device().str());
    if (g.dtype() != dtype())
      throw RuntimeError("assigned grad has data of a different type: wanted {}, got {}", name_of(dtype()), name_of(g.dtype()));
  } else if (!autograd::meta_of(*this)) {
    return;
  }
  autograd::ensure_meta(*this).grad = g;
}

std::string Tensor::grad_fn_name() const {
  if (!autograd::requires_grad(*this)) return "";
  autograd::gradient_edge(*this);
  const autograd::Meta* m = autograd::meta_of(*this);
  return m && m->grad_fn ? m->grad_fn->name() : "";
}

void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph) const {
  naru::backward({*this}, {gradient}, retain_graph, create_graph);
}

Tensor Tensor::detach() const {
  const TensorImpl& i = *impl_;
  auto* impl = new TensorImpl(i.storage, i.dtype);
  Tensor t(impl);
  impl->sizes = i.sizes;
  impl->strides = i.strides;
  impl->offset = i.offset;
  impl->numel = i.numel;
  impl->contiguous = i.contiguous;
  impl->origin = i.origin;
  return t;
}

Tensor& Tensor::detach_() {
  if (autograd::Meta* m = autograd::meta_of(*this)) {
    m->grad_fn = nullptr;
    m->requires_grad = false;
  }
  impl_->base = nullptr;
  return *this;
}

Tensor Tensor::data() const {
  Tensor t = detach();
  t.impl()->silent_version = true;
  return t;
}

int64_t Tensor::register_hook(std::function<Tensor(const Tensor&)> hook) const {
  if (!autograd::requires_grad(*this)) throw RuntimeError("cannot register a hook on a tensor that doesn't require gradient");
  const autograd::Edge e = autograd::gradient_edge(*this);
  autograd::Meta& m = autograd::ensure_meta(*this);
  const int64_t number = m.next_hook++;
  if (m.grad_fn) {
    e.node->ensure_extras().hooks[{e.slot, number}] = std::move(hook);
  } else {
    if (!m.hooks) m.hooks = std::make_unique<std::map<int64_t, autograd::Hook>>();
    (*m.hooks)[number] = std::move(hook);
  }
  return number;
}

void Tensor::remove_hook(int64_t number) const {
  autograd::Meta* m = autograd::meta_of(*this);
  if (!m) return;
  if (m->hooks) m->hooks->erase(number);
  if (m->grad_fn && m->grad_fn->extras) m->grad_fn->extras->hooks.erase({m->output, number});
}

void Tensor::retain_grad() const {
  if (!autograd::requires_grad(*this)) throw RuntimeError("can't retain_grad on Tensor that has requires_grad=False");
  autograd::gradient_edge(*this);
  autograd::Meta& m = *autograd::meta_of(*this);
  if (!m.grad_fn || m.retains_grad) return;
  m.retains_grad = true;
  m.grad_fn->ensure_extras().retained.emplace_back(m.output, impl_);
}

}  // namespace naru
