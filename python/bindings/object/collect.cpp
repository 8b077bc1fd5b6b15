#include "object/collect.h"

#include <array>
#include <utility>
#include <vector>

#include "autograd/history/accumulate.h"

namespace naru::py {
namespace {

using autograd::Meta;
using autograd::Node;

// A reference count of 1 means sole ownership. Nothing increments it while the GIL is held: backward takes its reference to the first node
// before it releases the GIL (Roots in autograd.cpp), and afterwards only follows edges. Saved tensors are not followed, because backward
// references them.
class Owned {
 public:
  void add(const Tensor& t) {
    if (t.defined() && t.impl()->use_count() == 1) add(static_cast<const Meta*>(t.impl()->autograd.get()));
  }
  void add(const Node* node) {
    if (node && node->use_count() == 1) nodes_.push_back(node);
  }
  // Calls f(object) for each.
  template <class F>
  int each(F f) {
    int status = 0;
    const std::function<void(void*)> visit = [&](void* o) {
      if (o && !status) status = f(static_cast<PyObject*>(o));
    };
    for (size_t i = 0; i < nodes_.size() && i < kMost && !status; ++i) {
      const Node& node = *nodes_[i];
      if (const Node::Extras* x = node.extras())
        for (const autograd::HookRegistry* list : registries(*x)) list->each_object(visit);
      visit(node.python_object());
      for (const autograd::Edge& e : node.next()) add(e.node.get());
    }
    for (PyObject* o : tensors_) visit(o);
    return status;
  }
  static std::array<autograd::HookRegistry*, 4> registries(const Node::Extras& x) {
    return {x.hooks.get(), x.before.get(), x.after.get(), x.accumulated.get()};
  }

 private:
  static constexpr size_t kMost = 1 << 16;

  void add(const Meta* m) {
    if (!m) return;
    add(m->grad_fn.get());
    const Node* accumulator = m->accumulator.load(std::memory_order_acquire);
    add(accumulator);
    // While a graph leads to the leaf, backward may access its grad.
    if (!m->grad.defined() || (accumulator && accumulator->use_count() != 1) || m->retains_grad) return;
    const TensorImpl& grad = *m->grad.impl();
    if (grad.use_count() == 1 && grad.owns_python)
      tensors_.push_back(static_cast<PyObject*>(grad.python));
    else
      add(m->grad);
  }

  std::vector<const Node*> nodes_;
  std::vector<PyObject*> tensors_;
};

}  // namespace

int visit_owned(const Tensor& t, visitproc visit, void* arg) {
  Owned owned;
  owned.add(t);
  return owned.each([&](PyObject* o) { return visit(o, arg); });
}

int visit_owned(const Node& node, visitproc visit, void* arg) {
  Owned owned;
  owned.add(&node);
  return owned.each([&](PyObject* o) { return visit(o, arg); });
}

void clear_owned(const Tensor& t) {
  if (!t.defined() || t.impl()->use_count() != 1) return;
  Meta* m = autograd::meta_of(t);
  if (!m) return;
  if (Node* accumulator = m->accumulator.load(std::memory_order_acquire); accumulator && accumulator->use_count() == 1)
    clear_owned(*accumulator);
  const Ref<Node> history = std::exchange(m->grad_fn, nullptr);
  autograd::move_retained(*m, history);
  const Tensor grad = std::move(m->grad);
}

void clear_owned(Node& node) {
  if (Node::Extras* x = node.extras(); x && node.use_count() == 1)
    for (autograd::HookRegistry* list : Owned::registries(*x)) list->clear();
}

}  // namespace naru::py
