// The public C++ API of graph nodes.
#include "naru/autograd/node.h"

#include "autograd/history/accumulate.h"
#include "autograd/history/history.h"

namespace naru {
namespace autograd {
namespace {

GradFn handle_of(const Ref<Node>& node) {
  if (!node) return {};
  return GradFn(std::shared_ptr<Node>(Ref<Node>(node).leak(), [](Node* n) { n->release(); }));
}

void replace(std::vector<Tensor>& grads, const std::vector<Tensor>& changed) {
  if (changed.empty()) return;
  if (changed.size() != grads.size())
    throw RuntimeError("hook 'hook' has returned an incorrect number of values (got {}, but expected {})", changed.size(), grads.size());
  for (size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].defined() && changed[i].defined()) check_hook_result(grads[i], changed[i], "hook");
    if (!grads[i].defined() && changed[i].defined()) throw RuntimeError("can't replace a None gradient with a non-None value");
    grads[i] = changed[i];
  }
}

template <class List, class Call>
HookHandle added(const std::shared_ptr<List>& list, Call call) {
  const int64_t number = list->add(std::move(call));
  return {number, [number, weak = std::weak_ptr<HookRegistry>(list)] {
            if (const auto alive = weak.lock()) alive->remove(number);
          }};
}

}  // namespace

std::string GradFn::name() const { return node_ ? node_->name() : ""; }
uint64_t GradFn::sequence_nr() const { return node_ ? node_->sequence() : 0; }

std::vector<std::pair<GradFn, uint32_t>> GradFn::next_functions() const {
  std::vector<std::pair<GradFn, uint32_t>> list;
  if (!node_) return list;
  for (size_t i = 0; i < node_->next().size(); ++i)
    if (i >= 64 || (node_->shown_edges() >> i & 1)) list.emplace_back(handle_of(node_->next()[i].node), node_->next()[i].slot);
  return list;
}

Tensor GradFn::variable() const {
  const auto* leaf = dynamic_cast<const AccumulateGrad*>(node_.get());
  return leaf ? leaf->variable() : Tensor();
}

HookHandle GradFn::register_hook(std::function<List(const List&, const List&)> hook) const {
  if (!node_) throw RuntimeError("register_hook: the tensor has no history, and this handle no node");
  return added(node_->ensure_extras().after,
               [f = std::move(hook)](List& results, const List& grads) { replace(results, f(results, grads)); });
}

HookHandle GradFn::register_prehook(std::function<List(const List&)> hook) const {
  if (!node_) throw RuntimeError("register_prehook: the tensor has no history, and this handle no node");
  return added(node_->ensure_extras().before, [f = std::move(hook)](List& grads) { replace(grads, f(grads)); });
}

HookHandle register_post_accumulate_grad_hook(const Tensor& leaf, std::function<void(const Tensor&)> hook) {
  if (!requires_grad(leaf)) throw RuntimeError("cannot register a hook on a tensor that doesn't require gradient");
  if (!leaf.is_leaf()) throw RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors");
  return added(gradient_edge(leaf).node->ensure_extras().accumulated, std::move(hook));
}

}  // namespace autograd

autograd::GradFn Tensor::grad_fn() const {
  if (!autograd::requires_grad(*this) || is_leaf()) return {};
  autograd::gradient_edge(*this);  // updates a view's history from its base first
  const autograd::Meta* meta = autograd::meta_of(*this);
  return meta ? autograd::handle_of(meta->grad_fn) : autograd::GradFn();
}

}  // namespace naru
