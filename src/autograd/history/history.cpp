#include "autograd/history/history.h"
#include "autograd/history/constant.h"

#include <fmt/format.h>

#include "autograd/history/accumulate.h"
#include "naru/ops.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/elementwise.h"
#include "ops/tensor/type_names.h"

namespace naru::autograd {

Edge gradient_edge(const Tensor& t) {
  Meta& m = ensure_meta(t);
  if (t.impl()->base) follow_base(t, m);
  if (m.grad_fn) return {m.grad_fn, m.output};
  if (!m.requires_grad) return {};
  return {Ref<Node>::share(&accumulator_of(m)), 0};
}

HookPlace add_hook(const Tensor& t, Hook hook, std::string name, std::shared_ptr<void> object) {
  if (!t.requires_grad()) throw RuntimeError("cannot register a hook on a tensor that doesn't require gradient");
  const Edge e = gradient_edge(t);
  Node::Extras& x = e.node->ensure_extras();
  const int64_t number = x.hooks->add(std::move(hook), e.slot, std::move(name), std::move(object));
  return {number, x.hooks};
}

namespace {

std::string type_name(const Tensor& t) {
  return fmt::format("torch.{}{}Tensor", t.device().is_cpu() ? "" : fmt::format("{}.", name_of(t.device().type)),
                     ops::torch_name(t.dtype()));
}

bool expands_to(const Dims& from, const Dims& to) {
  if (from.size() > to.size()) return false;
  const size_t shift = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1 && from[i] != to[i + shift]) return false;
  return true;
}

}  // namespace

Tensor record_constant(Tensor out, const char* name, std::initializer_list<const Tensor*> inputs) {
  if (!recording(inputs)) return out;
  std::vector<TensorLike> like;
  for (const Tensor* t : inputs) like.push_back(t->defined() ? TensorLike(*t) : TensorLike());
  return record(std::move(out), name, inputs, {}, [like](const std::vector<Tensor>&, const std::vector<Tensor>&) {
    std::vector<Tensor> zero;
    for (const TensorLike& l : like) zero.push_back(zeros(l.sizes, Options(l.dtype, l.device)));
    return zero;
  });
}

void throw_refused(const char* op) {
  throw RuntimeError("derivative for aten::{} is not implemented (take its detach(), or no_grad())", op);
}
void throw_underived(const char* op) {
  throw NotImplementedError("the derivative for '{}' is not implemented. (take its detach(), or no_grad())", op);
}

Tensor record_refused(const Tensor& out, std::initializer_list<const Tensor*> inputs, const char* op) {
  return record(out, operators::kNotImplemented, inputs, {},
                [op](const std::vector<Tensor>&, const std::vector<Tensor>&) -> std::vector<Tensor> { throw_refused(op); });
}
Tensor record_underived(const Tensor& out, const char* node, std::initializer_list<const Tensor*> inputs, const char* op) {
  return record(out, node, inputs, {},
                [op](const std::vector<Tensor>&, const std::vector<Tensor>&) -> std::vector<Tensor> { throw_underived(op); });
}

void refuse_gradient(const Tensor& t, const char* function, const char* argument) {
  if (recording({&t}))
    throw RuntimeError("The function '{}' is not differentiable with respect to argument '{}'. This input cannot have requires_grad True.",
                       function, argument);
}

namespace {

// `result` in a tensor of its own, whose node sends its gradient on, and zeros along the other edges.
Tensor with_zero_slopes(const Tensor& result, std::span<const Edge> edges, std::vector<TensorLike> like) {
  const auto backward = [like = std::move(like)](const std::vector<Tensor>& g, const std::vector<Tensor>&, Needed needed) {
    std::vector<Tensor> all{g[0]};
    for (const TensorLike& l : like) all.push_back(needed[all.size()] ? zeros(l.sizes, Options(l.dtype, l.device)) : Tensor());
    return all;
  };
  auto node = make_ref<FunctionNode<decltype(backward)>>("ZeroSlopeBackward0", backward);
  node->next().push_back(requires_grad(result) ? gradient_edge(result) : Edge{});
  for (const Edge& e : edges) node->next().push_back(e);
  Tensor out;
  {
    const NoGrad off;
    out = result.detach();
  }
  set_history(out, Ref<Node>(node));
  return out;
}

}  // namespace

Tensor depending_on(const Tensor& result, std::initializer_list<const Tensor*> values) {
  if (!recording(values)) return result;
  std::vector<Edge> edges;
  std::vector<TensorLike> like;
  for (const Tensor* t : values)
    if (t->defined() && requires_grad(*t)) edges.push_back(gradient_edge(*t)), like.emplace_back(*t);
  return with_zero_slopes(result, edges, std::move(like));
}

Tensor reading_inputs(Tensor y) {
  if (y.defined() && requires_grad(y))
    if (const Edge e = gradient_edge(y); e.node) e.node->reads_inputs = true;
  return y;
}

Tensor keeping_saved(Tensor y) {
  if (y.defined() && requires_grad(y))
    if (const Edge e = gradient_edge(y); e.node) e.node->keep_saved();
  return y;
}

Tensor refusing_second(Tensor y, const char* op) {
  if (y.defined() && requires_grad(y))
    if (const Edge e = gradient_edge(y); e.node) e.node->refused_second = op;
  return y;
}

void mark_gradients(const Node& node, std::vector<Tensor>& gradients) {
  std::vector<Edge> edges;
  std::vector<TensorLike> like;
  for (size_t i = 0; i < gradients.size(); ++i)
    if (node.next()[i].node && gradients[i].defined()) edges.push_back(node.next()[i]), like.emplace_back(gradients[i]);
  for (Tensor& g : gradients) {
    if (!g.defined()) continue;
    g = with_zero_slopes(g, edges, like);
    if (node.refused_second) g = record_refused(g.detach(), {&g}, node.refused_second);
  }
}

Tensor fit_gradient(Tensor g, const TensorLike& like, const std::string& node, size_t index) {
  if (!g.defined()) return g;
  const auto wrong = [&](const std::string& what) {
    return RuntimeError("{} at index {} - {}",
                        node.empty() ? "invalid gradient" : fmt::format("Function {} returned an invalid gradient", node), index, what);
  };
  if (!(g.sizes() == like.sizes)) {
    if (!expands_to(like.sizes, g.sizes()))
      throw wrong(fmt::format("got {} but expected shape compatible with {}", g.sizes().str(), like.sizes.str()));
    g = ops::sum_to(g, like.sizes);
  }
  if (g.dtype() != like.dtype) g = ops::gradient_as(g, like.dtype);
  if (g.device() == like.device) return g;
  if (g.dim() != 0) throw wrong(fmt::format("expected device {} but got {}", like.device.str(), g.device().str()));
  return g.to(like.device);
}

void check_hook_result(const Tensor& before, const Tensor& after, const std::string& hook) {
  if (before.dtype() != after.dtype() || before.device() != after.device())
    throw RuntimeError("hook '{}' has changed the type of value (was {} got {})", hook, type_name(before), type_name(after));
  if (!(before.sizes() == after.sizes()))
    throw RuntimeError("hook '{}' has changed the size of value (was {}, got {})", hook, before.sizes().str(), after.sizes().str());
}

void copy_kept(const Tensor& target) {
  const NoGrad off;
  for (const auto& kept : take_uncopied(target.impl()->storage.get()))
    if (const Tensor value = value_of(*kept); value.defined()) give_copy(*kept, value.clone());
}

void connect(Node& node, std::initializer_list<const Tensor*> inputs) {
  for (const Tensor* t : inputs) node.next().push_back(requires_grad(*t) ? gradient_edge(*t) : Edge{});
}
void connect(Node& node, std::span<const Tensor> inputs) {
  for (const Tensor& t : inputs) node.next().push_back(requires_grad(t) ? gradient_edge(t) : Edge{});
}

}  // namespace naru::autograd
