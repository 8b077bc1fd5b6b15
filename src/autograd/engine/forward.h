// Forward derivatives: tangents of what was computed of tensors that have one, found by walking the recorded graph from those tensors on. Each
// node maps the tangents of its inputs to those of its results by its own rule (Node::jvp), so that a walk costs about as much as the function
// itself; a node without a rule takes the derivative of its backward by the gradient, two backwards of that node alone.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "autograd/graph/node.h"

namespace naru::autograd {

// A tensor with a tangent: the edge that its gradient follows (gradient_edge), and the tangent, of its shape.
struct Dual {
  Edge edge;
  Tensor tangent;
};

// While it lives, this thread carries tangents: nodes behind marked ones know their results' shapes, and what operators save survives in-place
// writes (kept.h).
class CarryTangents {
 public:
  CarryTangents() : before_(tangents_carried) { tangents_carried = true; }
  ~CarryTangents() { tangents_carried = before_; }
  CarryTangents(const CarryTangents&) = delete;

 private:
  bool before_;
};

struct Pushed {
  std::vector<Tensor> tangents;  // of the outputs; undefined where no dual is part of it
  std::vector<bool> reached;     // whether an output depends on dual i
};
// The tangents of `outputs`, which must have been computed while tangents were carried, from marked tensors (Node::carries_tangent). Of several
// duals at one edge the last counts. create_graph: the tangents get a history themselves; without a value where the tangents require grad or
// the outputs depend on other tensors that do. The graph is kept.
Pushed push_forward(std::span<const Tensor> outputs, std::span<const Dual> duals, std::optional<bool> create_graph);

}  // namespace naru::autograd
