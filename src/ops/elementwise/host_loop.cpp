#include "ops/elementwise/host_loop.h"

#include "naru/autograd.h"
#include "runtime/memory/memory.h"
#include "runtime/queue/host_work.h"

namespace naru::ops {

bool can_use_host_loop(std::initializer_list<const Tensor*> tensors) {
  if (recording_host()) return false;
  for (const Tensor* t : tensors) {
    const TensorImpl& i = *t->impl();
    if (!i.storage->device.is_cpu() || i.special || i.numel == 0) return false;
    if (grad_enabled() && t->requires_grad()) return false;
  }
  return true;
}

void run_host_loop(ir::HostLoop::Kind kind, std::initializer_list<const Tensor*> reads, std::initializer_list<const Tensor*> writes,
                   std::array<int64_t, 4> numbers, bool* told) {
  ir::HostLoop loop;
  loop.kind = kind, loop.numbers = numbers;
  loop.arrays.reserve(reads.size() + writes.size());
  for (const auto* list : {&reads, &writes})
    for (const Tensor* t : *list) {
      if (!t->defined()) {
        loop.arrays.emplace_back();
        continue;
      }
      const TensorImpl& i = *t->impl();
      if (runtime::is_pending(*i.storage)) runtime::wait_for_host(*i.storage, list == &writes);
      if (!i.storage->data) runtime::allocate_storage(*i.storage);
      loop.arrays.push_back({i.address(), i.dtype, i.sizes});
    }
  if (told) loop.arrays.push_back({told, DType::Bool, {1}});
  runtime::host_work().run(loop);
}

}  // namespace naru::ops
