// Results whose derivatives are zero or missing, and gradients whose derivatives are.
#pragma once

#include "autograd/history/history.h"

namespace naru::autograd {

// Records `out` as such a result: the inputs get gradients of zeros, as in PyTorch.
Tensor record_constant(Tensor out, const char* name, std::initializer_list<const Tensor*> inputs);

// Records `out` as a result without derivatives, as in PyTorch: backward throws. `op`: PyTorch's name of the function. PyTorch has two kinds of
// them: functions without a row in its table of derivatives, and those whose row says so, which have a node of their own.
Tensor record_refused(const Tensor& out, std::initializer_list<const Tensor*> inputs, const char* op);
Tensor record_underived(const Tensor& out, const char* node, std::initializer_list<const Tensor*> inputs, const char* op);
// What backward of the two throws.
[[noreturn]] void throw_refused(const char* op);
[[noreturn]] void throw_underived(const char* op);

// Throws for an operand that counts as a constant, if it requires grad: its gradient would silently be missing.
void refuse_gradient(const Tensor& t, const char* function, const char* argument);

// `result`, which then also depends on those of `values` that require grad, with derivatives of zero.
Tensor depending_on(const Tensor& result, std::initializer_list<const Tensor*> values);

// Marks y's node: its gradients depend on its inputs, too, with derivatives of zero. PyTorch's gradient functions of such operators take the
// inputs, so that second derivatives exist, although the gradients' formulas only compare them, or do not read them.
Tensor reading_inputs(Tensor y);
// Marks y's node: its gradients have no derivatives, as PyTorch's. `op`: PyTorch's name of the gradient function.
Tensor refusing_second(Tensor y, const char* op);
// The gradients that a marked node returned, with the history that the mark says.
void mark_gradients(const Node& node, std::vector<Tensor>& gradients);

}  // namespace naru::autograd
