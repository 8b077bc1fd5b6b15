// Saved values that outlive in-place writes. Forward derivatives are found after the function has run, where PyTorch finds each operator's as it
// runs; so what operators save while tangents are carried keeps its value: the first write to its memory copies it before (ops/history.h).
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "core/tensor_impl.h"
#include "naru/tensor.h"

namespace naru::autograd {

// Whether tangents are carried on this thread.
inline thread_local constinit bool tangents_carried = false;

// Whether the program has switched gradients off meanwhile, which does not stop tangents: what they flow through is recorded, nothing else.
inline thread_local constinit bool tangents_only = false;

struct Kept;
using KeptMap = std::multimap<const Storage*, std::weak_ptr<Kept>>;

struct Kept {
  explicit Kept(const Tensor& t) : tensor(t.detach()), version(t.version()) {}
  ~Kept();
  // See the mutex in kept.cpp. A tensor of the memory that was saved, of a copy once that is about to be written; and the version it had.
  Tensor tensor;
  uint32_t version;
  KeptMap::iterator place;
  bool placed = false;
};

// How many have no copy yet.
inline std::atomic<size_t> uncopied_count{0};

std::shared_ptr<Kept> keep(const Tensor& t);
// Those of a storage that have no copy yet; they leave the list.
std::vector<std::shared_ptr<Kept>> take_uncopied(const Storage* storage);
void give_copy(Kept& kept, Tensor copy);
// Undefined if the memory was written though nobody had copied it.
Tensor value_of(Kept& kept);

}  // namespace naru::autograd
