// libtorch's loops on several threads.
#pragma once

#include <algorithm>
#include <mutex>

#include "naru/device/threads.h"
#include "naru/torch/registry.h"
#include "naru/torch/tensor.h"

namespace torch {

using naru::get_num_threads;
using naru::set_num_threads;
using naru::library::in_parallel_region;
inline int get_thread_num() { return naru::library::piece_number(); }
namespace internal {
inline constexpr int64_t GRAIN_SIZE = 32768;
}

// f(first, last) for pieces of [begin, end) of at least `grain_size`, on the threads for computation.
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain_size, const F& f) {
  naru::library::parallel_for(begin, end, grain_size, [&f](int64_t first, int64_t last) { f(first, last); });
}

// Combines f(first, last, identity) of the pieces with `combine`, in their order.
template <class T, class F, class C>
T parallel_reduce(int64_t begin, int64_t end, int64_t grain_size, T identity, const F& f, const C& combine) {
  std::mutex lock;
  std::vector<std::pair<int64_t, T>> parts;
  naru::library::parallel_for(begin, end, grain_size, [&](int64_t first, int64_t last) {
    T part = f(first, last, identity);
    const std::lock_guard held(lock);
    parts.emplace_back(first, std::move(part));
  });
  std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  T result = identity;
  for (auto& [first, part] : parts) result = combine(result, part);
  return result;
}

}  // namespace torch
