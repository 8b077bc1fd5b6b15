// The backward graph: nodes, edges, saved tensors, and the state of tensors that take part. Nothing here computes: operators leave nodes behind
// (ops/history.h), and the engine runs them (backward/engine.cpp).
#pragma once

#include <atomic>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "autograd/hooks.h"
#include "autograd/kept.h"
#include "core/small_vector.h"
#include "core/tensor_impl.h"
#include "naru/autograd.h"
#include "naru/hooks.h"
#include "naru/tensor.h"

namespace naru::autograd {

class Node;
struct Meta;
struct SavedValue;

// Where a gradient goes: input number `slot` of `node`; nowhere if node is null.
struct Edge {
  Ref<Node> node;
  uint32_t slot = 0;
};

using TensorVisitor = std::function<void(const Tensor&)>;

class Node : public RefCounted<Node> {
 public:
  explicit Node(const char* name);
  virtual ~Node();
  // From the gradients of the node's outputs (undefined = zero) to those of its inputs, one for each of next().
  virtual std::vector<Tensor> apply(std::vector<Tensor> grads) = 0;
  // Frees what was saved; a second backward through the node is then an error.
  virtual void release_saved() {}
  // f(t) for each tensor that the node owns a reference to, as far as it can tell.
  virtual void each_saved(const TensorVisitor&) const {}
  virtual SavedValue saved_as(std::string_view name);  // none
  // The Python object that the node owns a reference to, or null.
  virtual void* python_object() const { return nullptr; }

  virtual std::string name() const { return name_; }
  // Nodes with higher numbers are run first: later ones, and those that add to leaves before all others.
  uint64_t sequence() const noexcept { return sequence_; }
  using Edges = SmallVector<Edge, 3>;
  Edges& next() noexcept { return next_; }
  const Edges& next() const noexcept { return next_; }
  // Which of next() PyTorch's node has, a bit for each: it leaves out most numbers.
  virtual uint64_t shown_edges() const { return ~uint64_t{0}; }
  uint32_t outputs = 1;
  bool carries_tangent = false;  // see tangents_only in kept.h
  // What few nodes have.
  struct Extras {
    std::shared_ptr<HookList<Hook>> hooks = std::make_shared<HookList<Hook>>();  // on the gradients of outputs; run before all others
    std::shared_ptr<HookList<NodePreHook>> before = std::make_shared<HookList<NodePreHook>>();
    std::shared_ptr<HookList<NodePostHook>> after = std::make_shared<HookList<NodePostHook>>();
    std::shared_ptr<HookList<LeafHook>> accumulated = std::make_shared<HookList<LeafHook>>();  // of a leaf
    // Results (output, state) whose grad is kept though they are no leaves. The mutex guards them and their grad.
    std::mutex mutex;
    std::vector<std::pair<uint32_t, Meta*>> retained;
    std::string made_at;  // the program's stack, in anomaly mode
  };
  Extras* extras() const noexcept { return extras_.load(std::memory_order_acquire); }
  Extras& ensure_extras();

  // Of the backward pass that runs through the node now (see engine.cpp).
  struct Visit {
    std::atomic<const void*> pass{nullptr};
    int missing = 0;  // gradients still to come
    bool queued = false;
    Tensor grad;               // the sum of those that came, of output 0
    std::vector<Tensor> more;  // of the outputs from 1 on
  } visit;

  // The Python object that stands for the node, while there is one (not owned). Guarded by the GIL.
  mutable void* python = nullptr;

  // Held while saved tensors are taken or freed: passes of several threads may meet at a node.
  class SavedGuard {
   public:
    explicit SavedGuard(const Node& node) noexcept : lock_(single_threaded() ? nullptr : &node.saved_lock_) {
      if (lock_)
        while (lock_->exchange(true, std::memory_order_acquire)) std::this_thread::yield();
    }
    SavedGuard(const SavedGuard&) = delete;
    ~SavedGuard() { release(); }
    // Before the scope's end, for what may run anything.
    void release() noexcept {
      if (lock_) std::exchange(lock_, nullptr)->store(false, std::memory_order_release);
    }

   private:
    std::atomic<bool>* lock_;
  };

  static void* operator new(size_t n) { return pool_allocate(n); }
  static void operator delete(void* p, size_t n) { pool_release(p, n); }
  // Deletes a node that nobody owns any more, without recursion, however long its history is.
  static void dispose(const Node* node) noexcept;

 protected:
  static constexpr uint64_t kFirst = UINT64_MAX;
  Node(const char* name, uint64_t sequence) : name_(name), sequence_(sequence) {}

 private:
  const char* name_;
  uint64_t sequence_;
  Edges next_;
  std::atomic<Extras*> extras_{nullptr};
  mutable std::atomic<bool> saved_lock_{false};
};

// The node that adds to a leaf's grad, as far as the leaf's state knows it (ops/accumulate.h).
class LeafNode : public Node {
 public:
  // Called by the destructor of the leaf's state.
  virtual void forget(const Meta& leaf) noexcept = 0;

 protected:
  explicit LeafNode(const char* name) : Node(name, kFirst) {}
};

struct Meta : AutogradMeta {
  TensorImpl* owner = nullptr;
  bool requires_grad = false;  // leaves only
  bool retains_grad = false;
  Tensor grad;                                  // see GradLock
  Ref<Node> grad_fn;                            // null for leaves
  uint32_t output = 0;                          // which output of grad_fn
  std::atomic<LeafNode*> accumulator{nullptr};  // leaves: the node that adds to grad, once one was asked for; owned
  std::atomic<uint64_t> history{0};             // counts in-place changes of the history (base: made; view: seen)
  // What register_hook gave out, for remove_hook.
  std::unique_ptr<std::vector<std::pair<int64_t, std::weak_ptr<HookRegistry>>>> hooks;
  ~Meta() override;
  static void* operator new(size_t n) { return pool_allocate(n); }
  static void operator delete(void* p, size_t n) { pool_release(p, n); }
};

Meta* meta_of(const Tensor& t) noexcept;  // null if none
Meta& ensure_meta(const Tensor& t);
// Does the tensor take part in differentiation?
bool takes_part(const Tensor& t) noexcept;
// And is what is done with it recorded, where anything is? (With tangents_only less than that.)
bool requires_grad(const Tensor& t) noexcept;
// Moves what retain_grad() left at a tensor's former grad_fn to the one it has now.
void move_retained(Meta& m, const Ref<Node>& former);

// What SavedTensorHooks made of a tensor, or one that outlives writes, and where its gradient goes.
struct PackedTensor : RefCounted<PackedTensor> {
  std::shared_ptr<void> value;
  SavedTensorHooks::Unpack unpack;
  std::shared_ptr<Kept> kept;
  Edge edge;
};
class Saved;
// What the attribute `_saved_NAME` of a node stands for; nothing where the node has none of that name.
struct SavedValue {
  Saved* tensor = nullptr;
  const Scalar* number = nullptr;
};
// Where a node of a name keeps `saved`, as PyTorch calls it; -1 where it does not.
int place_of_saved(const std::string& node, std::string_view saved) noexcept;
// Those that count on this thread.
inline thread_local constinit const SavedTensorHooks* saved_tensor_hooks = nullptr;

// A tensor kept for backward, with the version it had.
class Saved {
 public:
  Saved() = default;
  // output_of_this_node: the tensor is a result of the node that saves it (a cycle otherwise).
  Saved(const Tensor& t, bool output_of_this_node = false, uint32_t output = 0);
  // Throws RuntimeError naming the operation if the tensor was written in place since, or was released. self: the node that saved it, or null
  // if it is gone.
  Tensor get(Node* self) const;
  // Whether get() runs hooks: then not while a SavedGuard is held.
  bool is_packed() const noexcept { return static_cast<bool>(packed_); }
  // Gives the tensor to the hooks that count on this thread, as if they had counted when it was saved. RuntimeError where there is none any
  // more, and where it was packed before.
  void pack_kept();
  void release() {
    tensor_ = {};
    packed_ = {};
    released_ = true;
  }
  void visit(const TensorVisitor& f) const {
    if (tensor_.defined()) f(tensor_);
  }

 private:
  void pack(const Tensor& t);
  Ref<PackedTensor> packed_like(const Tensor& t) const;
  [[noreturn]] void throw_written(const Tensor& t, const std::string& node) const;
  Tensor attached(const Tensor& t, Edge edge) const;
  Tensor tensor_;
  Ref<PackedTensor> packed_;
  uint32_t version_ = 0, output_ = 0;
  bool is_output_ = false, released_ = false, undefined_ = true;
};

// A node whose backward is a function of the gradients and the saved tensors.
template <class F>
class FunctionNode final : public Node {
 public:
  FunctionNode(const char* name, F f) : Node(name), f_(std::move(f)) {}
  std::vector<Saved> saved;
  std::vector<Tensor> apply(std::vector<Tensor> grads) override {
    bool any = false;
    for (const Tensor& g : grads) any |= g.defined();
    if (!any) return std::vector<Tensor>(next().size());
    std::vector<Tensor> values;
    if (!saved.empty()) {
      values.reserve(saved.size());
      SavedGuard guard(*this);
      bool packed = false;
      for (const Saved& s : saved) packed |= s.is_packed();
      if (packed) [[unlikely]] {
        const std::vector<Saved> copies = saved;
        guard.release();
        for (const Saved& s : copies) values.push_back(s.get(this));
      } else {
        for (const Saved& s : saved) values.push_back(s.get(this));
      }
    }
    return f_(grads, values);
  }
  void release_saved() override {
    if (saved.empty()) return;
    const SavedGuard guard(*this);
    for (Saved& s : saved) s.release();
  }
  void each_saved(const TensorVisitor& f) const override {
    const SavedGuard guard(*this);
    for (const Saved& s : saved) s.visit(f);
  }
  SavedValue saved_as(std::string_view what) override {
    const int at = place_of_saved(name(), what);
    return {at >= 0 && static_cast<size_t>(at) < saved.size() ? &saved[static_cast<size_t>(at)] : nullptr};
  }

 private:
  F f_;
};

// Whether an operator over these tensors must record itself.
bool recording(std::initializer_list<const Tensor*> inputs) noexcept;
bool recording(std::span<const Tensor> inputs) noexcept;

// Whether a tangent flows through a node, found from those that it leads to.
void mark_tangent(Node& node) noexcept;
// Makes output number `output` of `node` the history of `out`.
void set_history(const Tensor& out, Ref<Node> node, uint32_t output = 0);
// In place. Whether a write to `target` must be recorded for its own sake.
bool recording_write(const Tensor& target) noexcept;
// Before a write that is recorded: throws RuntimeError if `target` is a leaf that requires grad, a view of one, or a view whose writes cannot
// become part of its base's history.
void check_in_place(const Tensor& target, const char* op);
// Throws RuntimeError in PyTorch's words: a view whose history can't follow that of its base. indirect: the base was written, not the view.
[[noreturn]] void throw_untracked(const Tensor& view, bool indirect);
// Notes that a view made while nothing is recorded has seen all writes to its base so far.
void see_history(const Tensor& view);

}  // namespace naru::autograd
