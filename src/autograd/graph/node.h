// The backward graph: nodes, edges, saved tensors, and the autograd state of tensors. Operators create the nodes (autograd/history/history.h), and
// the engine runs them (autograd/engine/engine.cpp).
#pragma once

#include <atomic>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <vector>

#include "autograd/graph/hooks.h"
#include "autograd/graph/kept.h"
#include "core/small_vector.h"
#include "core/tensor_impl.h"
#include "naru/autograd.h"
#include "naru/autograd/hooks.h"
#include "naru/tensor.h"

namespace naru::autograd {

class Node;
struct Meta;
struct SavedValue;

// Where a gradient goes: to input `slot` of the backward node `node` (PyTorch: input_nr). Nowhere if `node` is null.
struct Edge {
  Ref<Node> node;
  uint32_t slot = 0;
};

// Says which of its inputs' gradients a node shall compute: those with an edge, and, in a pass that was given inputs, only those that lead to
// one of these (PyTorch: task_should_compute_output).
class Needed {
 public:
  using Nodes = std::unordered_set<const Node*>;
  // reaching: the nodes that lead to the given inputs, and the inputs' own; null if none were given.
  explicit Needed(const Node& node, const Nodes* reaching = nullptr) noexcept : node_(&node), reaching_(reaching) {}
  inline bool operator[](size_t i) const noexcept;

 private:
  const Node* node_;
  const Nodes* reaching_;
};

using TensorVisitor = std::function<void(const Tensor&)>;

// The shape, dtype and device that a gradient or a tangent must have.
struct TensorLike {
  Dims sizes;
  DType dtype = DType::F32;
  Device device;
  TensorLike() = default;
  explicit TensorLike(const Tensor& t) : sizes(t.sizes()), dtype(t.dtype()), device(t.device()) {}
};

class Node : public RefCounted<Node> {
 public:
  explicit Node(const char* name);
  virtual ~Node();
  // Maps the gradients of the operator's outputs (undefined: zero) to those of its inputs, one for each edge of next(). Those that are not
  // needed may be left undefined.
  virtual std::vector<Tensor> apply(std::vector<Tensor> grads, Needed needed) = 0;
  // Maps tangents of the operator's inputs, one for each edge of next() (undefined: zero), to those of its outputs. They may have less than
  // the outputs' shape, where that broadcasts, and another dtype. No value: the node has no rule, and backward's derivative by the gradient is
  // taken in its place (autograd/engine/forward.cpp).
  virtual std::optional<std::vector<Tensor>> jvp(std::vector<Tensor>) { return std::nullopt; }
  // Frees the saved tensors; a second backward through the node is then an error.
  virtual void release_saved() {}
  // From now on the saved operands keep their values: a write to their memory copies them first (see kept.h).
  virtual void keep_saved() {}
  // Calls f(t) for each tensor that the node is known to own a reference to.
  virtual void each_saved(const TensorVisitor&) const {}
  virtual SavedValue saved_as(std::string_view name);  // default: none
  // The Python object that the node owns a reference to, or null.
  virtual void* python_object() const { return nullptr; }

  virtual std::string name() const { return name_; }
  // The engine runs nodes with higher numbers first: later nodes before earlier ones, and AccumulateGrad nodes (kFirst) before all others.
  uint64_t sequence() const noexcept { return sequence_; }
  using Edges = SmallVector<Edge, 3>;
  Edges& next() noexcept { return next_; }
  const Edges& next() const noexcept { return next_; }
  // Bit i is set if PyTorch's node has edge i too. It has no edges for most scalar operands.
  virtual uint64_t shown_edges() const { return ~uint64_t{0}; }
  uint32_t outputs = 1;
  // See reading_inputs and refusing_second in autograd/history/constant.h.
  bool reads_inputs = false;
  const char* refused_second = nullptr;
  bool carries_tangent = false;  // a tangent flows through it; see tangents_only in kept.h
  // Hooks and other data that few nodes need.
  struct Extras {
    std::shared_ptr<HookList<Hook>> hooks = std::make_shared<HookList<Hook>>();  // on the gradients of outputs; run before the other hooks
    std::shared_ptr<HookList<NodePreHook>> before = std::make_shared<HookList<NodePreHook>>();
    std::shared_ptr<HookList<NodePostHook>> after = std::make_shared<HookList<NodePostHook>>();
    std::shared_ptr<HookList<LeafHook>> accumulated = std::make_shared<HookList<LeafHook>>();  // AccumulateGrad only
    // The non-leaf results (output, state) with retain_grad(). The mutex guards the list and their grad.
    std::mutex mutex;
    std::vector<std::pair<uint32_t, Meta*>> retained;
    std::vector<std::optional<TensorLike>> results;  // what outputs with a history are like, of nodes that a tangent flows through
    std::string made_at;                             // stack trace of the forward call, in anomaly mode
  };
  Extras* extras() const noexcept { return extras_.load(std::memory_order_acquire); }
  Extras& ensure_extras();

  // State of the backward pass that is using the node (see engine.cpp).
  struct Visit {
    std::atomic<const void*> pass{nullptr};
    int missing = 0;  // number of gradients not yet received
    bool queued = false;
    Tensor grad;               // sum of the gradients received for output 0
    std::vector<Tensor> more;  // the same for outputs 1, 2, ...
  } visit;

  // The node's Python object, while one exists (not owned). Guarded by the GIL.
  mutable void* python = nullptr;

  // Hold it while reading or freeing saved tensors: backward passes on several threads may use one node.
  class SavedGuard {
   public:
    explicit SavedGuard(const Node& node) noexcept : lock_(single_threaded() ? nullptr : &node.saved_lock_) {
      if (lock_)
        while (lock_->exchange(true, std::memory_order_acquire)) std::this_thread::yield();
    }
    SavedGuard(const SavedGuard&) = delete;
    ~SavedGuard() { release(); }
    // Releases before the end of the scope, for calls that may run arbitrary code.
    void release() noexcept {
      if (lock_) std::exchange(lock_, nullptr)->store(false, std::memory_order_release);
    }

   private:
    std::atomic<bool>* lock_;
  };

  static void* operator new(size_t n) { return pool_allocate(n); }
  static void operator delete(void* p, size_t n) { pool_release(p, n); }
  // Deletes a node without owners. Does not recurse, so the history may have any length.
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

bool Needed::operator[](size_t i) const noexcept {
  const Edge& e = node_->next()[i];
  return e.node && (!reaching_ || reaching_->contains(e.node.get()));
}

// The node that adds to a leaf's grad: the interface that Meta uses. AccumulateGrad implements it (autograd/history/accumulate.h).
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
  Tensor grad;                                  // see lock_grad
  Ref<Node> grad_fn;                            // null for leaves
  uint32_t output = 0;                          // which output of grad_fn
  std::atomic<LeafNode*> accumulator{nullptr};  // leaves: the AccumulateGrad node, created on first use; owned
  std::atomic<uint64_t> history{0};             // base: in-place changes to its history; view: how many its grad_fn includes
  // The hooks that register_hook returned numbers for, for remove_hook.
  std::unique_ptr<std::vector<std::pair<int64_t, std::weak_ptr<HookRegistry>>>> hooks;
  ~Meta() override;
  static void* operator new(size_t n) { return pool_allocate(n); }
  static void operator delete(void* p, size_t n) { pool_release(p, n); }
};

Meta* meta_of(const Tensor& t) noexcept;  // null if none
Meta& ensure_meta(const Tensor& t);
// Tensor::requires_grad(): true for leaves that require grad, tensors with a grad_fn, and views that will get one from their base (follow_base).
bool takes_part(const Tensor& t) noexcept;
// True if operators on the tensor are recorded while recording is on. As takes_part, but with tangents_only only tensors with a tangent count.
bool requires_grad(const Tensor& t) noexcept;
// Moves the retain_grad() entry of a tensor from its former grad_fn to the current one.
void move_retained(Meta& m, const Ref<Node>& former);

// A saved tensor that SavedTensorHooks packed (value, unpack) or that survives in-place writes (kept), and the edge that its gradient follows.
struct PackedTensor : RefCounted<PackedTensor> {
  std::shared_ptr<void> value;
  SavedTensorHooks::Unpack unpack;
  std::shared_ptr<Kept> kept;
  Edge edge;
};
class Saved;
// The value of a node's attribute `_saved_NAME`: a tensor or a scalar. Both null if the node has no such attribute.
struct SavedValue {
  Saved* tensor = nullptr;
  const Scalar* number = nullptr;
};
// Index in FunctionNode::saved of the tensor that PyTorch's node of that name calls `saved`; -1 if there is none.
int saved_index(const std::string& node, std::string_view saved) noexcept;
// While true, saved tensors come back without a history on this thread: what is computed of them is a function of the gradients alone.
extern thread_local constinit bool saved_are_constant;

// The innermost hooks of this thread, or null.
inline thread_local constinit const SavedTensorHooks* saved_tensor_hooks = nullptr;

// A tensor saved for backward, with its version at that time.
class Saved {
 public:
  Saved() = default;
  // output_of_this_node: the tensor is a result of the node that saves it; it is saved without history, to avoid a reference cycle.
  Saved(const Tensor& t, bool output_of_this_node = false, uint32_t output = 0);
  // Throws RuntimeError with the operator's name if the tensor was written in place since, or was released. self: the node that saved it, or
  // null if that was destroyed.
  Tensor get(Node* self) const;
  // True if get() may run hooks. Then do not call get() while holding a SavedGuard.
  bool is_packed() const noexcept { return static_cast<bool>(packed_); }
  // Packs the tensor with this thread's hooks, as if they had been active when it was saved. RuntimeError if it was released, is undefined,
  // or has been packed before.
  void pack_kept();
  // Does nothing for results of the node itself, and where hooks have packed the tensor.
  void keep_value();
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

// An operator's backward, and its rule of forward derivatives: jvp(tangents, saved) is the tangent of the result, or a vector of those of all
// results. Tangents are one for each input, undefined where an input has none; not all are undefined.
template <class Backward, class Jvp>
struct WithJvp : Backward {
  WithJvp(Backward b, Jvp j) : Backward(std::move(b)), jvp(std::move(j)) {}
  Jvp jvp;
};

// The backward of an operator with one input and a symmetric Jacobian, such as elementwise ones and softmax: it maps tangents as it maps
// gradients. That is so for real numbers; tangents of complex ones take backward's derivative.
template <class Backward>
struct Symmetric : Backward {
  explicit Symmetric(Backward b) : Backward(std::move(b)) {}
};
template <class F>
inline constexpr bool is_symmetric = false;
template <class B>
inline constexpr bool is_symmetric<Symmetric<B>> = true;

// A node whose backward is a function of the gradients, the saved tensors and, if it takes a third argument, what is needed.
template <class F>
class FunctionNode final : public Node {
 public:
  FunctionNode(const char* name, F f) : Node(name), f_(std::move(f)) {}
  std::vector<Saved> saved;
  std::vector<Tensor> apply(std::vector<Tensor> grads, Needed needed) override {
    bool any = false;
    for (const Tensor& g : grads) any |= g.defined();
    if (!any) return std::vector<Tensor>(next().size());
    std::vector<Tensor> values = saved_values();
    return call(grads, values, needed);
  }
  std::optional<std::vector<Tensor>> jvp(std::vector<Tensor> tangents) override {
    if constexpr (is_symmetric<F>) {
      if (is_complex(tangents[0].dtype())) return std::nullopt;
      std::vector<Tensor> values = saved_values();
      return call(tangents, values, Needed(*this));
    } else if constexpr (requires { &F::jvp; }) {
      std::vector<Tensor> values = saved_values();
      if constexpr (std::is_same_v<decltype(f_.jvp(tangents, values)), Tensor>)
        return std::vector<Tensor>{f_.jvp(tangents, values)};
      else
        return f_.jvp(tangents, values);
    } else {
      return std::nullopt;
    }
  }
  void release_saved() override {
    if (saved.empty()) return;
    const SavedGuard guard(*this);
    for (Saved& s : saved) s.release();
  }
  void keep_saved() override {
    for (Saved& s : saved) s.keep_value();
  }
  void each_saved(const TensorVisitor& f) const override {
    const SavedGuard guard(*this);
    for (const Saved& s : saved) s.visit(f);
  }
  SavedValue saved_as(std::string_view what) override {
    const int at = saved_index(name(), what);
    return {at >= 0 && static_cast<size_t>(at) < saved.size() ? &saved[static_cast<size_t>(at)] : nullptr};
  }

 private:
  std::vector<Tensor> saved_values() {
    std::vector<Tensor> values;
    if (saved.empty()) return values;
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
    return values;
  }
  std::vector<Tensor> call(std::vector<Tensor>& grads, std::vector<Tensor>& values, Needed needed) {
    if constexpr (std::is_invocable_v<F&, std::vector<Tensor>&, std::vector<Tensor>&, Needed>)
      return f_(grads, values, needed);
    else
      return f_(grads, values);
  }
  F f_;
};

// True if an operator with these inputs must be recorded.
bool recording(std::initializer_list<const Tensor*> inputs) noexcept;
bool recording(std::span<const Tensor> inputs) noexcept;

// Sets node.carries_tangent if one of its next nodes carries a tangent, and notes what `out` is like then.
void mark_tangent(Node& node, const Tensor& out, uint32_t output = 0);
// Makes (node, output) the history of `out`. Does nothing for integer and bool tensors.
void set_history(const Tensor& out, Ref<Node> node, uint32_t output = 0);
// True if an in-place write to `target` must be recorded whatever the other operands are.
bool recording_write(const Tensor& target) noexcept;
// Call before a recorded write. Throws RuntimeError if `target` is a leaf that requires grad, a view of one, or a view whose writes cannot
// become part of its base's history (see ViewKind).
void check_in_place(const Tensor& target, const char* op);
// Throws PyTorch's RuntimeError for a view whose history can't follow that of its base. indirect: the base was written, not the view.
[[noreturn]] void throw_untracked(const Tensor& view, bool indirect);
// Marks a view made in no-grad mode as up to date with all writes to its base so far.
void see_history(const Tensor& view);

}  // namespace naru::autograd
