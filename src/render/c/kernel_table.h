// KernelTable: the kernels that a device has compiled so far, by what decides their text.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>

#include "render/c/launch.h"

namespace naru::render::c {

// Not thread-safe. A kernel stays where it is.
template <class Kernel>
class KernelTable {
 public:
  // The launch's kernel; `compile()` makes one that has not been asked for before.
  template <class Compile>
  Kernel& of(const Launch& launch, const Compile& compile) {
    const uint64_t hash = launch.key.hash();
    for (auto [at, end] = kernels_.equal_range(hash); at != end; ++at)
      if (at->second->key.same(launch.key)) return at->second->kernel;
    auto known = std::make_unique<Known>(ir::Program{}, launch.key, compile());
    if (launch.key.program) {
      known->program = *launch.key.program;
      known->key.program = &known->program;
    }
    return kernels_.emplace(hash, std::move(known))->second->kernel;
  }

 private:
  struct Known {
    ir::Program program;
    Key key;
    Kernel kernel;
    Known(ir::Program p, const Key& k, Kernel made) : program(std::move(p)), key(k), kernel(std::move(made)) {}
  };
  std::unordered_multimap<uint64_t, std::unique_ptr<Known>> kernels_;
};

}  // namespace naru::render::c
