#include "autograd/graph/cycles.h"

#include <unordered_map>
#include <vector>

#include "autograd/graph/node.h"

namespace naru::autograd {
namespace {

// Larger histories are skipped: nothing is freed.
constexpr size_t kMost = 1 << 20;

// The tensors and nodes reachable from one tensor, each with the number of references found during the traversal.
class Reached {
 public:
  explicit Reached(TensorImpl& start) {
    add(&start, nullptr);
    for (size_t i = 0; i < objects_.size() && objects_.size() < kMost; ++i)
      objects_[i].impl ? follow(*objects_[i].impl, i) : follow(*objects_[i].node, i);
  }
  // Tensors whose grad can be freed, because they are not reachable from outside. `held`: the caller's own references to the first.
  std::vector<TensorImpl*> isolated(uint32_t held) {
    std::vector<size_t> outside;
    for (size_t i = 0; i < objects_.size(); ++i) {
      Object& o = objects_[i];
      const uint32_t owners = o.impl ? o.impl->use_count() : o.node->use_count();
      if (objects_.size() >= kMost || o.met + (i == 0 ? held : 0) < owners) o.outside = true, outside.push_back(i);
    }
    while (!outside.empty()) {
      const size_t i = outside.back();
      outside.pop_back();
      for (const size_t to : objects_[i].to)
        if (!std::exchange(objects_[to].outside, true)) outside.push_back(to);
    }
    std::vector<TensorImpl*> found;
    for (const Object& o : objects_)
      if (o.impl && !o.outside) found.push_back(o.impl);
    return found;
  }

 private:
  struct Object {
    TensorImpl* impl = nullptr;
    const Node* node = nullptr;
    uint32_t met = 0;
    bool outside = false;
    std::vector<size_t> to;
  };

  size_t add(TensorImpl* impl, const Node* node) {
    const void* key = impl ? static_cast<const void*>(impl) : node;
    const auto [at, added] = places_.try_emplace(key, objects_.size());
    if (added) objects_.push_back({impl, node, 0, false, {}});
    return at->second;
  }
  void meet(size_t from, TensorImpl* impl, const Node* node) {
    if (!impl && !node) return;
    const size_t to = add(impl, node);
    ++objects_[to].met;
    objects_[from].to.push_back(to);
  }
  void follow(TensorImpl& impl, size_t from) {
    meet(from, impl.base.get(), nullptr);
    auto* m = static_cast<Meta*>(impl.autograd.get());
    if (!m) return;
    meet(from, m->grad.impl(), nullptr);
    meet(from, nullptr, m->grad_fn.get());
    meet(from, nullptr, m->accumulator.load(std::memory_order_acquire));
  }
  void follow(const Node& node, size_t from) {
    for (const Edge& e : node.next()) meet(from, nullptr, e.node.get());
    node.each_saved([&](const Tensor& t) { meet(from, t.impl(), nullptr); });
  }

  std::vector<Object> objects_;
  std::unordered_map<const void*, size_t> places_;
};

}  // namespace

void free_isolated(const Tensor& t) {
  Meta* m = meta_of(t);
  if (!m || !m->grad.defined() || t.impl()->use_count() == 1) return;
  if (const Meta* g = meta_of(m->grad); !g || !g->grad_fn) return;
  std::vector<Tensor> grads;
  for (TensorImpl* impl : Reached(*t.impl()).isolated(1))
    if (auto* meta = static_cast<Meta*>(impl->autograd.get())) grads.push_back(std::move(meta->grad));
}

}  // namespace naru::autograd
