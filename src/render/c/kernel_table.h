// KernelTable: the kernels that a device has compiled so far, by Key.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "naru/condition_variable.h"
#include "render/c/launch.h"

namespace naru::render::c {

// Thread-safe: several kernels can be compiled at once without blocking look-ups of others. References to kernels stay valid.
template <class Kernel>
class KernelTable {
 public:
  // Returns the launch's kernel. Calls `compile()` if the kernel is new, only once even if several threads need it at the same time. If compile()
  // throws, the exception propagates and the next caller tries again.
  template <class Compile>
  Kernel& of(const Launch& launch, const Compile& compile) {
    const uint64_t hash = launch.key.hash();
    std::unique_lock lock(mutex_);
    while (Known* const known = find(hash, launch.key)) {
      if (known->kernel) return *known->kernel;
      changed_.wait(lock);
    }
    Known& mine = *kernels_.emplace(hash, std::make_unique<Known>(launch.key))->second;
    lock.unlock();
    try {
      Kernel made = compile();
      lock.lock();
      mine.kernel.emplace(std::move(made));
    } catch (...) {
      if (!lock) lock.lock();
      std::erase_if(kernels_, [&](const auto& entry) { return entry.second.get() == &mine; });
      changed_.notify_all();
      throw;
    }
    changed_.notify_all();
    return *mine.kernel;
  }

 private:
  struct Known {
    ir::Program program;
    Key key;
    std::optional<Kernel> kernel;  // empty: a thread is compiling it
    explicit Known(const Key& k) : key(k) {
      if (!k.program) return;
      program = *k.program;
      key.program = &program;
    }
  };
  Known* find(uint64_t hash, const Key& key) {
    for (auto [at, end] = kernels_.equal_range(hash); at != end; ++at)
      if (at->second->key.same(key)) return at->second.get();
    return nullptr;
  }

  std::mutex mutex_;
  ConditionVariable changed_;
  std::unordered_multimap<uint64_t, std::unique_ptr<Known>> kernels_;
};

}  // namespace naru::render::c
