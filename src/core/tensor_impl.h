// TensorImpl: what a Tensor handle points to: a view (offset, sizes, strides) of a storage, and its autograd state.
#pragma once

#include <atomic>
#include <memory>

#include "core/language.h"
#include "core/storage.h"
#include "naru/dims.h"
#include "naru/dtype.h"

namespace naru {

// Implemented by autograd; core only stores it.
struct AutogradMeta {
  virtual ~AutogradMeta() = default;
};

// Owns a tensor's autograd state. Threads that share the tensor may try to create it at the same time.
class AutogradSlot {
 public:
  AutogradSlot() = default;
  ~AutogradSlot() { delete get(); }
  AutogradMeta* get() const noexcept { return meta_.load(std::memory_order_acquire); }
  explicit operator bool() const noexcept { return get() != nullptr; }
  AutogradMeta& operator*() const noexcept { return *get(); }
  AutogradMeta* operator->() const noexcept { return get(); }
  // Keeps the first state offered; returns the one that is kept.
  AutogradMeta& offer(std::unique_ptr<AutogradMeta> meta) noexcept {
    AutogradMeta* kept = nullptr;
    return meta_.compare_exchange_strong(kept, meta.get(), std::memory_order_acq_rel) ? *meta.release() : *kept;
  }
  // For the tensor's creator, before other threads can see it.
  void set(std::unique_ptr<AutogradMeta> meta) noexcept { meta_.store(meta.release(), std::memory_order_relaxed); }
  std::unique_ptr<AutogradMeta> take() noexcept {
    return std::unique_ptr<AutogradMeta>(meta_.exchange(nullptr, std::memory_order_acq_rel));
  }

 private:
  std::atomic<AutogradMeta*> meta_{nullptr};
};

// Whether an in-place write to a view becomes part of its base's history. Only writes to Tracked views do; in_place.cpp rejects the others.
enum class ViewKind : uint8_t {
  Tracked,
  MadeWithoutGrad,  // the view was made in no-grad mode
  OfFunction,       // the view is the result of a user-defined autograd function
};

// The parts of a tensor without elements of its own: a sparse tensor's coordinates and values, or the value whose batch vmap hides (autograd/graph/batch.h).
struct LayoutParts : RefCounted<LayoutParts> {
  virtual ~LayoutParts() = default;
};

// Why a tensor is not a dense array of a type that instructions compute with. One test of these bits, for all operands together, tells
// operators whether the plain path serves.
enum Special : uint8_t { kNotSpecial = 0, kSparse = 1, kComplexElements = 2, kUnsignedElements = 4, kFloat8Elements = 8, kBatched = 16 };
// Bits of tensors that have LayoutParts.
constexpr uint8_t kHasParts = kSparse | kBatched;
constexpr uint8_t special_type(DType t) noexcept {
  return in_programs(t) ? kNotSpecial : is_complex(t) ? kComplexElements : is_float8(t) ? kFloat8Elements : kUnsignedElements;
}

struct TensorImpl : RefCounted<TensorImpl> {
  Ref<Storage> storage;
  int64_t offset = 0;  // in elements
  int64_t numel = 1;
  DType dtype = DType::F32;       // changed by set_dtype only
  uint8_t special = kNotSpecial;  // bits of Special
  bool contiguous = true;
  bool silent_version = false;  // writes through it do not increment the version (Tensor.data)
  ViewKind view_kind = ViewKind::Tracked;
  // True if this tensor owns its Python object (and not vice versa): nothing in Python refers to the object, but it has attributes.
  bool owns_python = false;
  Dims sizes, strides;
  Origin origin;
  AutogradSlot autograd;
  // Views only: the base, which is never a view itself, so that an in-place write can reach its history.
  Ref<TensorImpl> base;
  // Sparse and batched tensors only; dtype is that of their values. Set by set_parts only.
  Ref<LayoutParts> parts;
  // The Python object that wraps this tensor, if any; that object's destructor clears it.
  void* python = nullptr;

  TensorImpl(Ref<Storage> s, DType t) : storage(std::move(s)), dtype(t), special(special_type(t)) {}
  ~TensorImpl() {
    if (owns_python) language()->release(python);
  }
  void set_dtype(DType t) noexcept {
    dtype = t;
    special = static_cast<uint8_t>(special_type(t) | (special & kHasParts));
  }
  // kind: kSparse or kBatched.
  void set_parts(Ref<LayoutParts> p, uint8_t kind) noexcept {
    parts = std::move(p);
    special = static_cast<uint8_t>(special_type(dtype) | kind);
  }
  void set_geometry(Dims new_sizes, Dims new_strides, int64_t new_offset);
  // The device address of the first element. The storage must have memory.
  void* address() const noexcept { return static_cast<char*>(storage->data) + offset * static_cast<int64_t>(size_of(dtype)); }
  // Sets the memory category of its storage; does nothing without a storage.
  void serves(MemoryRole role) const noexcept {
    if (storage) storage->role.store(role, std::memory_order_relaxed);
  }
  static void* operator new(size_t n) { return pool_allocate(n); }
  static void operator delete(void* p, size_t n) { pool_release(p, n); }
};

// Row-major without gaps (dimensions of size 1 may have any stride; empty tensors are contiguous).
bool is_contiguous(const Dims& sizes, const Dims& strides) noexcept;
// False only if no two elements share an address; true for expanded and overlapping views.
bool may_overlap(const Dims& sizes, const Dims& strides);

}  // namespace naru
