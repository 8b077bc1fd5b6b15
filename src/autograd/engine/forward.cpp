#include "autograd/engine/forward.h"

#include <unordered_map>
#include <unordered_set>

#include "autograd/engine/engine.h"
#include "autograd/history/history.h"
#include "naru/ops.h"
#include "ops/complex/complex.h"

namespace naru::autograd {
namespace {

using List = std::vector<Tensor>;
using Likes = std::vector<std::optional<TensorLike>>;  // nothing for outputs without a history

struct ConstantSaved {
  explicit ConstantSaved(bool on) : before(std::exchange(saved_are_constant, on)) {}
  ~ConstantSaved() { saved_are_constant = before; }
  bool before;
};

// The results' tangents for a node without a rule. Backward is linear in the results' gradients u, with J^T u as the inputs' gradients, so its
// derivative with respect to u, applied to the inputs' tangents t, is J t. The value of u does not matter.
List by_backward(Node& node, const List& tangents, const Likes& like, bool create_graph) {
  const GradMode recording(true);
  const ConstantSaved constant(!create_graph);
  Needed::Nodes reaching;
  for (size_t i = 0; i < tangents.size(); ++i)
    if (tangents[i].defined()) reaching.insert(node.next()[i].node.get());
  List starts;
  for (const auto& each : like) starts.push_back(each ? zeros(each->sizes, Options(each->dtype, each->device)).requires_grad_() : Tensor());
  const List found = node.apply(starts, Needed(node, &reaching));
  List used, along;
  for (size_t i = 0; i < tangents.size(); ++i)
    if (tangents[i].defined() && found[i].defined() && found[i].requires_grad()) used.push_back(found[i]), along.push_back(tangents[i]);
  List results(starts.size());
  if (used.empty()) return results;
  List given;
  for (const Tensor& u : starts)
    if (u.defined()) given.push_back(u);
  List products = grad(used, given, along, true, create_graph, true);
  for (size_t i = 0, k = 0; i < starts.size(); ++i)
    if (starts[i].defined()) results[i] = std::move(products[k++]);
  return results;
}

// Broadcasts and converts a tangent to its tensor's shape, dtype and device, which rules need not do.
Tensor fit_tangent(Tensor t, const TensorLike& like) {
  if (t.dtype() != like.dtype) t = ops::gradient_as(t, like.dtype);
  if (!(t.device() == like.device)) t = t.to(like.device);
  return t.sizes() == like.sizes ? t : t.expand(like.sizes);
}

class Walk {
 public:
  Walk(std::span<const Dual> duals, std::optional<bool> create_graph) : create_(create_graph.value_or(false)), decides_(!create_graph) {
    for (const Dual& d : duals) {
      List& at = tangents_[d.edge.node.get()];
      if (at.size() <= d.edge.slot) at.resize(d.edge.slot + 1);
      at[d.edge.slot] = d.tangent;
      starts_.insert(d.edge.node.get());
      dependent_.insert(d.edge.node.get());
      if (decides_) create_ = create_ || d.tangent.requires_grad();
    }
  }
  void add_output(const Edge& e) {
    if (e.node) ++uses_[e.node.get()], visit(e.node.get());
  }
  void run() {
    create_ = create_ && grad_enabled();
    for (Node* node : order_) push(*node);
  }
  Tensor at(const Edge& e) const {
    const auto found = tangents_.find(e.node.get());
    return found == tangents_.end() || e.slot >= found->second.size() ? Tensor() : found->second[e.slot];
  }
  bool reached(const Edge& e) const { return uses_.contains(e.node.get()); }
  bool depends(const Edge& e) const { return dependent_.contains(e.node.get()); }

 private:
  // Appends `first` and the nodes that it depends on to order_, in topological order: a node's inputs come first.
  void visit(Node* first) {
    std::vector<std::pair<Node*, size_t>> path;  // and how many edges have been followed
    const auto enter = [&](Node* node) {
      if (starts_.contains(node) || !seen_.insert(node).second) return;
      if (node->carries_tangent)
        path.emplace_back(node, 0);
      else if (decides_)
        create_ = true;  // the result depends on other tensors that require grad
    };
    enter(first);
    while (!path.empty()) {
      auto& [node, followed] = path.back();
      if (followed == node->next().size()) {
        order_.push_back(node);
        path.pop_back();
      } else if (Node* const next = node->next()[followed++].node.get()) {
        ++uses_[next];
        enter(next);
      }
    }
  }
  void push(Node& node) {
    List given(node.next().size());
    bool any = false;
    for (size_t i = 0; i < given.size(); ++i)
      if (const Edge& e = node.next()[i]; e.node) {
        given[i] = at(e), any |= given[i].defined();
        if (depends(e)) dependent_.insert(&node);
      }
    if (any) {
      const Node::Extras* const extras = node.extras();
      Likes like = extras ? extras->results : Likes();
      like.resize(node.outputs);
      const GradMode mode(create_);
      std::optional<List> found = node.jvp(given);
      List results = found ? std::move(*found) : by_backward(node, given, like, create_);
      results.resize(like.size());
      for (size_t i = 0; i < results.size(); ++i)
        if (like[i] && results[i].defined()) results[i] = fit_tangent(std::move(results[i]), *like[i]);
      tangents_[&node] = std::move(results);
    }
    // Free tangents after their last use.
    for (const Edge& e : node.next())
      if (e.node && --uses_[e.node.get()] == 0 && !starts_.contains(e.node.get())) tangents_.erase(e.node.get());
  }

  bool create_, decides_;  // decides_: create_ follows from the tangents and the graph
  std::unordered_map<const Node*, List> tangents_;
  std::unordered_set<const Node*> starts_, seen_, dependent_;  // dependent: a dual is part of its results
  std::unordered_map<const Node*, int> uses_;                  // edges to a node within the walk, and outputs
  std::vector<Node*> order_;                                   // in topological order
};

}  // namespace

Pushed push_forward(std::span<const Tensor> outputs, std::span<const Dual> duals, std::optional<bool> create_graph) {
  Walk walk(duals, create_graph);
  std::vector<Edge> edges;
  for (const Tensor& t : outputs) walk.add_output(edges.emplace_back(t.defined() ? gradient_edge(t) : Edge{}));
  walk.run();
  Pushed result;
  for (size_t i = 0; i < edges.size(); ++i) {
    Tensor t = edges[i].node ? walk.at(edges[i]) : Tensor();
    if (!t.defined() && walk.depends(edges[i])) t = zeros_like(outputs[i].detach());
    result.tangents.push_back(std::move(t));
  }
  for (const Dual& d : duals) result.reached.push_back(walk.reached(d.edge));
  return result;
}

}  // namespace naru::autograd
