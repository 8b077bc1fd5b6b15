// TensorImpl: what a Tensor handle points at: a view (offset, sizes, strides) of a storage, and its autograd state.
#pragma once

#include <atomic>
#include <memory>

#include "core/storage.h"
#include "naru/dims.h"
#include "naru/dtype.h"

namespace naru {

// Implemented by autograd; core only keeps it.
struct AutogradMeta {
  virtual ~AutogradMeta() = default;
};

// Owns a tensor's autograd state. Threads that share the tensor may all be the first to need one.
class AutogradSlot {
 public:
  AutogradSlot() = default;
  ~AutogradSlot() { delete get(); }
  AutogradMeta* get() const noexcept { return meta_.load(std::memory_order_acquire); }
  explicit operator bool() const noexcept { return get() != nullptr; }
  AutogradMeta& operator*() const noexcept { return *get(); }
  AutogradMeta* operator->() const noexcept { return get(); }
  // The first one offered is kept; returns it.
  AutogradMeta& offer(std::unique_ptr<AutogradMeta> meta) noexcept {
    AutogradMeta* kept = nullptr;
    return meta_.compare_exchange_strong(kept, meta.get(), std::memory_order_acq_rel) ? *meta.release() : *kept;
  }
  // For the tensor's maker, while nobody else knows it.
  void set(std::unique_ptr<AutogradMeta> meta) noexcept { meta_.store(meta.release(), std::memory_order_relaxed); }
  std::unique_ptr<AutogradMeta> take() noexcept {
    return std::unique_ptr<AutogradMeta>(meta_.exchange(nullptr, std::memory_order_acq_rel));
  }

 private:
  std::atomic<AutogradMeta*> meta_{nullptr};
};

// What the views of a tensor may be written through: an in-place write to one becomes part of its base's history, unless
enum class ViewKind : uint8_t {
  Tracked,
  MadeWithoutGrad,  // the view was made while nothing was recorded, or
  OfFunction,       // is the result of a function with a derivative of its own.
};

// What a tensor is made of that has no elements in memory: a sparse one's coordinates and values. Implemented by ops; core only keeps it.
struct LayoutParts : RefCounted<LayoutParts> {
  virtual ~LayoutParts() = default;
};

// Called by the destructor of a tensor that owns its Python object. Set by the Python module.
extern void (*release_python)(void* object) noexcept;

struct TensorImpl : RefCounted<TensorImpl> {
  Ref<Storage> storage;
  int64_t offset = 0;  // elements
  int64_t numel = 1;
  DType dtype = DType::F32;
  bool contiguous = true;
  bool silent_version = false;  // writes through it do not count (Tensor.data)
  ViewKind view_kind = ViewKind::Tracked;
  // Whether this tensor owns its Python object (and not the other way round): nothing in Python refers to it, but it has attributes.
  bool owns_python = false;
  Dims sizes, strides;
  Origin origin;
  AutogradSlot autograd;
  // Views: the tensor whose storage it is a view of (never itself a view), so that an in-place write can reach its history.
  Ref<TensorImpl> base;
  // Sparse tensors only; their dtype is a sparse form.
  Ref<LayoutParts> parts;
  // The Python object that wraps this tensor while one exists; cleared by that object's destructor.
  void* python = nullptr;

  TensorImpl(Ref<Storage> s, DType t) : storage(std::move(s)), dtype(t) {}
  ~TensorImpl() {
    if (owns_python) release_python(python);
  }
  void set_geometry(Dims new_sizes, Dims new_strides, int64_t new_offset);
  // The device address of the first element. The storage must have memory.
  void* address() const noexcept { return static_cast<char*>(storage->data) + offset * static_cast<int64_t>(size_of(dtype)); }
  // Notes what its memory serves; a tensor without memory has nothing to note.
  void serves(MemoryRole role) const noexcept {
    if (storage) storage->role.store(role, std::memory_order_relaxed);
  }
  static void* operator new(size_t n) { return pool_allocate(n); }
  static void operator delete(void* p, size_t n) { pool_release(p, n); }
};

// Dense in row-major order (sizes of 1 may have any stride; empty tensors are).
bool is_contiguous(const Dims& sizes, const Dims& strides) noexcept;
// Whether several elements may lie at one address, as in expanded and overlapping views; false only where none do.
bool may_overlap(const Dims& sizes, const Dims& strides);

// Asks for the line of the user's program that is running now: the number of an interned text, 0 if unknown. Set by the Python
// module; without it C++ programs get no lines.
extern uint32_t (*current_line)() noexcept;
// The number of the calls that lead to where the program stands; null unless a history of memory asks for them.
extern std::atomic<uint32_t (*)() noexcept> memory_context;
// "train.py:12", or "" for 0. Set together with current_line.
extern std::string (*line_text)(uint32_t where);

}  // namespace naru
