// User-defined autograd functions, for C++ and Python: what their nodes store, and how their results get a history.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "autograd/history/history.h"

namespace naru::autograd {

// The tensors of save_for_backward, shared by the node and its context.
class SavedTensors {
 public:
  // The saved tensors. A saved result gets the node as its history, so that double backward works.
  std::vector<Tensor> get();
  void add(const Tensor& t, bool output, uint32_t number);
  void release();
  void visit(const TensorVisitor& f);
  // Sets the node that saved them; null when the node is destroyed.
  void belong_to(const Node* node);

 private:
  std::mutex mutex_;
  std::vector<Saved> saved_;
  const Node* node_ = nullptr;
};

struct FunctionCall {
  std::string name;                         // "CubeBackward"
  std::vector<Tensor> inputs;               // the tensors among forward's arguments; undefined ones are ignored
  std::vector<Tensor> dirty, fixed, saved;  // mark_dirty, mark_non_differentiable, save_for_backward
  bool materialize = true;                  // replace missing gradients by zeros
  // Maps the gradients of all outputs to those of all inputs, one each.
  std::function<std::vector<Tensor>(std::vector<Tensor>, Needed)> backward;
  std::shared_ptr<void> object;  // the Python object that `backward` calls, if any
};

// Gives forward's results (undefined ones are skipped) their history. A result that is an unmodified argument is replaced by a view of it.
// Returns the saved tensors, or null if no result is differentiable.
std::shared_ptr<SavedTensors> record_function(FunctionCall call, std::span<Tensor> outputs);

}  // namespace naru::autograd
