// The memory that a tensor and its views share: a vector over all of it, other memory in its place, memory for forked processes.
#include <sys/mman.h>

#include <cstring>

#include "autograd/node.h"
#include "naru/compositions.h"
#include "ops/common.h"
#include "runtime/memory.h"
#include "runtime/queue.h"

namespace naru {

Tensor ops::whole_storage(const Tensor& t, DType type) {
  const Ref<Storage>& storage = t.impl()->storage;
  if (runtime::Queue* q = storage->pending.load()) q->flush();
  Tensor v(new TensorImpl(storage, type));
  v.impl()->set_geometry({static_cast<int64_t>(storage->bytes / size_of(type))}, {1}, 0);
  v.impl()->origin = t.impl()->origin;
  return v;
}

void set_(const Tensor& t, const Tensor& from) {
  if (t.dtype() != from.dtype())
    throw RuntimeError("Could not set tensor of type {} to a tensor of type {}", name_of(from.dtype()), name_of(t.dtype()));
  if (t.requires_grad() && grad_enabled()) {
    autograd::check_in_place(t, "set_");
    throw RuntimeError("the derivative for 'set_' is not implemented; use .data, or write under no_grad()");
  }
  ops::replace_storage(t, from.impl()->storage);
  t.impl()->set_geometry(from.sizes(), from.strides(), from.storage_offset());
  t.impl()->base = nullptr;
}

namespace {

void release_shared(Storage& s) noexcept { munmap(s.data, reinterpret_cast<uintptr_t>(s.owner)); }

}  // namespace

bool ops::is_in_shared_memory(const Tensor& t) { return t.impl()->storage->release_memory == release_shared; }

bool is_shared(const Tensor& t) { return !t.device().is_cpu() || ops::is_in_shared_memory(t); }

void share_memory_(const Tensor& t) {
  if (!t.device().is_cpu()) return;  // as in PyTorch, where devices' memory counts as shared
  Storage& s = *t.impl()->storage;
  if (s.bytes == 0 || ops::is_in_shared_memory(t)) return;
  if (s.externally_aliased > 0)
    throw RuntimeError("share_memory_: the memory is also an array's, or another library's; clone() the tensor first");
  t.data_ptr();  // waits for what is under way
  void* data = mmap(nullptr, s.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  std::memcpy(data, s.data, s.bytes);
  if (s.release_memory) s.release_memory(s);
  s.data = data;
  s.owner = reinterpret_cast<void*>(s.bytes);
  s.release_memory = release_shared;
  s.ordered = s.resizable = false;
}

}  // namespace naru
