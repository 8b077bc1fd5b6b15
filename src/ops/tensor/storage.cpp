// Storages: a vector over all of the memory, replacing the memory (set_), and memory shared between processes.
#include <cstring>

#include "autograd/graph/node.h"
#include "naru/ops/functions.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"
#include "runtime/memory/memory.h"
#include "runtime/os/system.h"
#include "runtime/queue/queue.h"

namespace naru {

Tensor ops::whole_storage(const Tensor& t, DType type) {
  require_storage(t);
  const Ref<Storage>& storage = t.impl()->storage;
  if (runtime::Queue* q = storage->pending.load()) q->flush();
  Tensor v(new TensorImpl(storage, type));
  v.impl()->set_geometry({static_cast<int64_t>(storage->bytes / size_of(type))}, {1}, 0);
  v.impl()->origin = t.impl()->origin;
  return v;
}

void set_(const Tensor& t, const Tensor& from) {
  ops::require_storage(t), ops::require_storage(from);
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

namespace system = runtime::system;

// Memory shared between processes: an unnamed file, which stays open so that it can be sent to other processes; file is -1 if the system has no such
// files. `before`: the storage's earlier memory, if an array outside naru still uses it. Arrays keep the storage alive, and with it that memory.
struct SharedBlock {
  size_t bytes;
  int file;
  struct {
    void (*release_memory)(Storage&) noexcept = nullptr;
    void *data = nullptr, *owner = nullptr;
  } before{};
};

void release_shared(Storage& s) noexcept {
  auto* const block = static_cast<SharedBlock*>(s.owner);
  system::unmap_shared(s.data, block->bytes);
  if (block->file >= 0) system::close_shared(block->file);
  if (block->before.release_memory) {
    s.data = block->before.data, s.owner = block->before.owner;
    block->before.release_memory(s);
  }
  delete block;
}

// Replaces the storage's memory by that of `file`. `keep`: the file's bytes stay; otherwise the storage's bytes are copied into it.
void move_to(Storage& s, int file, bool keep) {
  void* const data = system::map_shared(file, s.bytes);
  if (!data) {
    if (file >= 0) system::close_shared(file);
    throw std::bad_alloc();
  }
  if (!keep) std::memcpy(data, s.data, s.bytes);
  auto* const block = new SharedBlock{s.bytes, file};
  if (s.externally_aliased > 0)
    block->before = {s.release_memory, s.data, s.owner};
  else if (s.release_memory)
    s.release_memory(s);
  s.data = data;
  s.owner = block;
  s.release_memory = release_shared;
  s.ordered = s.resizable = false;
}

}  // namespace

bool ops::is_in_shared_memory(const Tensor& t) { return t.impl()->storage->release_memory == release_shared; }

bool is_shared(const Tensor& t) {
  ops::require_storage(t);
  return !t.device().is_cpu() || ops::is_in_shared_memory(t);
}

void share_memory_(const Tensor& t) {
  ops::require_storage(t);
  if (!t.device().is_cpu()) return;  // as in PyTorch, where device memory counts as shared
  Storage& s = *t.impl()->storage;
  if (s.bytes == 0 || ops::is_in_shared_memory(t)) return;
  t.data_ptr();  // waits for pending uses
  move_to(s, runtime::system::new_shared_file(s.bytes), false);
}

int shared_file(const Tensor& t) {
  return ops::is_in_shared_memory(t) ? static_cast<const SharedBlock*>(t.impl()->storage->owner)->file : -1;
}

Tensor tensor_of_shared_file(int file, int64_t bytes) {
  const Tensor t = empty({bytes}, Options(DType::U8, Device(DeviceType::Cpu)));
  t.data_ptr();
  move_to(*t.impl()->storage, file, true);
  return t;
}

}  // namespace naru
