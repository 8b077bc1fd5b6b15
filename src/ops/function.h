// Functions with a derivative of the user's own, for both languages: what their nodes keep, and how their results get a history.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "ops/history.h"

namespace naru::autograd {

// The tensors of save_for_backward, which the node and its context both know.
class SavedTensors {
 public:
  // Shares of the tensors. A result that was saved is one of the node, so that gradients have gradients.
  std::vector<Tensor> get();
  void add(const Tensor& t, bool output, uint32_t number);
  void release();
  void visit(const TensorVisitor& f);
  // Who has saved them; null when it dies.
  void belong_to(const Node* node);

 private:
  std::mutex mutex_;
  std::vector<Saved> saved_;
  const Node* node_ = nullptr;
};

struct FunctionCall {
  std::string name;                         // "CubeBackward"
  std::vector<Tensor> inputs;               // the tensors among forward's arguments; undefined ones take no part
  std::vector<Tensor> dirty, fixed, saved;  // mark_dirty, mark_non_differentiable, save_for_backward
  bool materialize = true;                  // gradients that are missing are zeros
  // From the gradients of all outputs to those of the inputs: one each.
  std::function<std::vector<Tensor>(std::vector<Tensor>)> backward;
  std::shared_ptr<void> object;  // the Python object that `backward` calls, if it is one
};

// Gives forward's results (undefined ones are left out) their history; a result that is an argument as it was is replaced by a view of it.
// Returns what was saved, or null where no result is differentiable.
std::shared_ptr<SavedTensors> record_function(FunctionCall call, std::span<Tensor> outputs);

}  // namespace naru::autograd
