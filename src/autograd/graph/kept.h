// Saved tensors that survive in-place writes. naru computes forward derivatives after the function has run, PyTorch during each operator. So tensors
// saved while tangents are carried must keep their values: the first write to their memory copies them beforehand (autograd/history/history.h).
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "core/tensor_impl.h"
#include "naru/tensor.h"

namespace naru::autograd {

// (Not inline: the Python extension, which sets them, and libnaru.so would each have their own.)
// True while forward-mode tangents are carried on this thread.
extern thread_local constinit bool tangents_carried;

// True if the program has disabled gradients meanwhile. That does not stop tangents: only operators that a tangent flows through are recorded.
extern thread_local constinit bool tangents_only;

struct Kept;
using KeptMap = std::multimap<const Storage*, std::weak_ptr<Kept>>;

struct Kept {
  explicit Kept(const Tensor& t) : tensor(t.detach()), version(t.version()) {}
  ~Kept();
  // The fields are guarded by the mutex in kept.cpp. `tensor` shares the saved memory; once that is about to be written, it is a copy. `version` is
  // the version of `tensor` when it was saved or copied.
  Tensor tensor;
  uint32_t version;
  KeptMap::iterator place;
  bool placed = false;
};

// Number of kept tensors without a copy.
extern std::atomic<size_t> uncopied_count;

std::shared_ptr<Kept> keep(const Tensor& t);
// Returns the kept tensors of a storage that have no copy yet, and removes them from the list.
std::vector<std::shared_ptr<Kept>> take_uncopied(const Storage* storage);
void give_copy(Kept& kept, Tensor copy);
// Returns the saved value; undefined if the memory was written without a copy.
Tensor value_of(Kept& kept);

}  // namespace naru::autograd
