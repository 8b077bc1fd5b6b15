// Updates of many tensors by the same program: one instruction on devices that have ir::MapEach.
#pragma once

#include <span>
#include <vector>

#include "ir/instruction.h"
#include "naru/tensor.h"

namespace naru::ops {

// Collects updates until finish(), which has the effects of doing them in the order in which they were added. The tensors must outlive it. Updates that
// were added and not finished, because of an exception, are not done.
class UpdateBatch {
 public:
  // True if the device of the tensor has the instruction.
  bool takes(const Tensor& tensor);
  // Adds program(tensors), where output i overwrites the i-th of the `written` tensors, a bit each. Tensors of one element that the program marks scalar
  // must not be written meanwhile; all others are of the first one's size. Updates with equal types of tensors and equal `variant` must have equal
  // programs and params. False: it can't be done with others, and is for the caller to do.
  bool add(const ir::Program& program, std::span<const uint64_t> params, std::span<const Tensor* const> tensors, unsigned written,
           int variant);
  // Adds an update with the program of an earlier one; false if there is none.
  bool add_like_others(std::span<const Tensor* const> tensors, int variant);
  // Does them.
  void finish();

 private:
  struct Same {
    Device device;
    int variant;
    unsigned written;
    ir::MapEach work;
    std::vector<const Tensor*> tensors;  // the inputs of each list
    size_t done = 0;
  };
  struct Range {
    uintptr_t begin, end;
    bool written;
  };
  bool put(Same& same, std::span<const Tensor* const> tensors);
  bool are_apart();
  void submit_together(Same& same);
  void submit_next(Same& same);

  Device known_;
  bool known_takes_ = false, knows_ = false;
  std::vector<Same> all_;
  std::vector<size_t> order_;  // for each update, its place in all_
  std::vector<Range> ranges_;  // the bytes of all tensors that are not scalar
};

// t.mul_(factor.to(t.device())) for each of the tensors; factor has one element. Records nothing for autograd.
void multiply_each(std::span<const Tensor> tensors, const Tensor& factor);

}  // namespace naru::ops
