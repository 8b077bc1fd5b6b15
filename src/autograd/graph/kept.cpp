#include "autograd/graph/kept.h"

#include <mutex>
#include <utility>

namespace naru::autograd {

thread_local constinit bool tangents_carried = false;
thread_local constinit bool tangents_only = false;
std::atomic<size_t> uncopied_count{0};

namespace {

// Guards `uncopied` and the fields of Kept. Never release a tensor while holding it: destructors may run arbitrary code.
std::mutex& kept_mutex = *new std::mutex;
KeptMap& uncopied = *new KeptMap;

}  // namespace

std::shared_ptr<Kept> keep(const Tensor& t) {
  auto kept = std::make_shared<Kept>(t);
  const std::lock_guard lock(kept_mutex);
  kept->place = uncopied.emplace(t.impl()->storage.get(), kept);
  kept->placed = true;
  uncopied_count.store(uncopied.size(), std::memory_order_relaxed);
  return kept;
}

Kept::~Kept() {
  const std::lock_guard lock(kept_mutex);
  if (placed) uncopied.erase(place);
  uncopied_count.store(uncopied.size(), std::memory_order_relaxed);
}

std::vector<std::shared_ptr<Kept>> take_uncopied(const Storage* storage) {
  std::vector<std::shared_ptr<Kept>> taken;
  const std::lock_guard lock(kept_mutex);
  auto [at, end] = uncopied.equal_range(storage);
  while (at != end) {
    std::shared_ptr<Kept> kept = at->second.lock();  // null: ~Kept is running and waits for the mutex
    if (!kept) {
      ++at;
      continue;
    }
    kept->placed = false;
    at = uncopied.erase(at);
    taken.push_back(std::move(kept));
  }
  uncopied_count.store(uncopied.size(), std::memory_order_relaxed);
  return taken;
}

void give_copy(Kept& kept, Tensor copy) {
  const std::lock_guard lock(kept_mutex);
  kept.version = copy.version();
  std::swap(kept.tensor, copy);
}

Tensor value_of(Kept& kept) {
  const std::lock_guard lock(kept_mutex);
  return kept.tensor.version() == kept.version ? kept.tensor : Tensor();
}

}  // namespace naru::autograd
