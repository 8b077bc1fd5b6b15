// TensorImpl: what a Tensor handle points at: a view (offset, sizes, strides) of a storage, and its autograd state.
#pragma once

#include <memory>

#include "core/storage.h"
#include "naru/dims.h"
#include "naru/dtype.h"

namespace naru {

// Implemented by autograd; core only keeps it.
struct AutogradMeta {
  virtual ~AutogradMeta() = default;
};

struct TensorImpl : RefCounted<TensorImpl> {
  Ref<Storage> storage;
  int64_t offset = 0;  // elements
  int64_t numel = 1;
  DType dtype = DType::F32;
  bool contiguous = true;
  bool silent_version = false;  // writes through it do not count (Tensor.data)
  Dims sizes, strides;
  Origin origin;
  std::unique_ptr<AutogradMeta> autograd;
  // Views: the tensor whose storage it is a view of (never itself a view), so that an in-place write can reach its history.
  Ref<TensorImpl> base;
  // The Python object that wraps this tensor while one exists (not owned); cleared by that object's destructor.
  void* python = nullptr;

  TensorImpl(Ref<Storage> s, DType t) : storage(std::move(s)), dtype(t) {}
  void set_geometry(Dims new_sizes, Dims new_strides, int64_t new_offset);
  // The device address of the first element. The storage must have memory.
  void* address() const noexcept { return static_cast<char*>(storage->data) + offset * static_cast<int64_t>(size_of(dtype)); }
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
// "train.py:12", or "" for 0. Set together with current_line.
extern std::string (*line_text)(uint32_t where);

}  // namespace naru
