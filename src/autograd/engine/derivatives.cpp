#include "naru/autograd/derivatives.h"

#include <fmt/format.h>

#include <string_view>
#include <tuple>

#include "autograd/engine/forward.h"
#include "autograd/history/history.h"
#include "naru/ops.h"

namespace naru::autograd {
namespace {

using List = std::vector<Tensor>;

// Inputs whose history starts here; with create_graph they keep their existing history (as views).
List prepared(const List& inputs, bool create_graph, bool need_graph) {
  List list;
  for (const Tensor& t : inputs)
    if (create_graph && t.requires_grad())
      list.push_back(t.view(t.sizes()));
    else
      list.push_back(t.detach().requires_grad_(need_graph));
  return list;
}
List finished(List list, bool create_graph) {
  if (!create_graph)
    for (Tensor& t : list) t = t.detach();
  return list;
}

// grad() of the outputs that have a history; undefined for inputs that no output depends on.
List gradients(const List& outputs, const List& inputs, const List& starts, bool create_graph) {
  List used, given;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].defined() && outputs[i].requires_grad()) {
      used.push_back(outputs[i]);
      given.push_back(i < starts.size() ? starts[i] : Tensor());
    }
  if (used.empty()) return List(inputs.size());
  return grad(used, inputs, given, create_graph, create_graph, true);
}

constexpr const char* kMissing[] = {
    "The output of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the double backward trick to compute "
    "forward mode gradients. This is not allowed in strict mode.",
    "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "The hessian of the user-provided function is independent of entry {} in the grad_jacobian. This is not allowed in strict mode as it "
    "prevents from using the double backward trick to replace forward mode AD.",
};
enum Stage { Back, BackTrick, DoubleBack, DoubleBackTrick };

// Replaces undefined gradients by zeros.
List filled(List grads, const List& like, const DerivativeOptions& options, Stage stage) {
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) {
      if (options.strict) throw RuntimeError(fmt::format(fmt::runtime(kMissing[stage]), i));
      grads[i] = zeros_like(like[i]);
    } else if (options.strict && options.create_graph && !grads[i].requires_grad()) {
      throw RuntimeError(
          "The {} of the user-provided function is independent of input {}. This is not allowed in strict mode when create_graph=True.",
          stage >= DoubleBack ? "hessian" : "jacobian", i);
    }
  }
  return grads;
}

void check_recorded(const List& list, bool strict, const char* text, const char* missing = kMissing[Back]) {
  if (!strict) return;
  for (size_t i = 0; i < list.size(); ++i) {
    if (!list[i].defined()) throw RuntimeError(fmt::format(fmt::runtime(missing), i));
    if (!list[i].requires_grad()) throw RuntimeError(fmt::format(fmt::runtime(text), i));
  }
}
constexpr const char* kOutputFixed =
    "Output {} of the user-provided function does not require gradients. The outputs must be computed in a differentiable manner from the "
    "input when running in strict mode.";
constexpr const char* kJacobianFixed =
    "The jacobian of the user-provided function with respect to input {} is independent of the input. This is not allowed in strict mode.";

// v as a constant; checks it against the tensors it is multiplied with.
List checked(const List& v, const List& like, const DerivativeOptions& options, const char* otherwise) {
  if (v.empty()) {
    if (like.size() != 1 || like[0].numel() != 1) throw RuntimeError("The vector v can only be None if {}", otherwise);
    return {ones_like(like[0].detach())};
  }
  if (like.size() == 1 && v.size() > 1) throw RuntimeError("The given v should contain a single Tensor. (v has {})", v.size());
  if (v.size() != like.size()) throw RuntimeError("v is a tuple of invalid length: should be {} but got {}.", like.size(), v.size());
  for (size_t i = 0; i < v.size(); ++i)
    if (!(v[i].sizes() == like[i].sizes()))
      throw RuntimeError("{}v has invalid size: should be torch.Size({}) but got torch.Size({}).",
                         v.size() > 1 ? fmt::format("Entry {} in ", i) : "", like[i].sizes().str(), v[i].sizes().str());
  return prepared(v, options.create_graph, false);
}

// The results of f at x, and their derivatives along `direction` (undefined: zero).
template <class F>
std::pair<List, List> forward(const F& f, const List& x, const List& direction, const DerivativeOptions& options) {
  std::vector<Dual> duals;
  for (size_t i = 0; i < x.size(); ++i) {
    duals.push_back({gradient_edge(x[i]), direction[i]});
    duals[i].edge.node->carries_tangent = true;
  }
  const List y = [&] {
    const CarryTangents carried;
    return f();
  }();
  Pushed pushed = push_forward(y, duals, options.create_graph);
  for (size_t i = 0; options.strict && i < x.size(); ++i)
    if (!pushed.reached[i]) throw RuntimeError(fmt::format(fmt::runtime(kMissing[Back]), i));
  return {y, std::move(pushed.tangents)};
}

Tensor single_element(const TensorFunction& f, const List& x, const char* name) {
  const List out = f(x);
  if (out.size() != 1) throw RuntimeError("The function given to {} should return a single Tensor", name);
  if (out[0].numel() != 1) throw RuntimeError("The Tensor returned by the function given to {} should contain a single element", name);
  return out[0].squeeze();
}

// Evaluates f, which must return a single element, and returns that element and its gradients with a graph.
std::pair<Tensor, List> recorded_gradient(const TensorFunction& f, const List& x, const DerivativeOptions& options, const char* name) {
  const Tensor y = single_element(f, x, name);
  check_recorded({y}, options.strict, kOutputFixed);
  List g = gradients({y}, x, {}, true);
  check_recorded(g, options.strict, kJacobianFixed, std::string_view(name) == "hessian" ? kJacobianFixed : kMissing[Back]);
  return {y, std::move(g)};
}

constexpr const char* kOneOutput = "the user-provided function returns a single Tensor with a single element.";
constexpr const char* kOneInput = "the input to the user-provided function is a single Tensor with a single element.";

}  // namespace

void TensorFunction::check_count(size_t wanted, size_t given) {
  if (wanted != given) throw RuntimeError("a function of {} tensor(s) was given {}", wanted, given);
}

Product vjp(const TensorFunction& f, const List& inputs, const List& v, DerivativeOptions options) {
  const EnableGrad on;
  const List x = prepared(inputs, options.create_graph, true), y = f(x);
  check_recorded(y, options.strict, kOutputFixed);
  const List start = checked(v, y, options, kOneOutput);
  List g = filled(gradients(y, x, start, options.create_graph), x, options, Back);
  return {finished(y, options.create_graph), finished(std::move(g), options.create_graph)};
}

Product jvp(const TensorFunction& f, const List& inputs, const List& v, DerivativeOptions options) {
  const EnableGrad on;
  const List x = prepared(inputs, options.create_graph, true);
  const List direction = checked(v, x, options, kOneInput);
  const auto outputs = [&] {
    List y = f(x);
    check_recorded(y, options.strict, kOutputFixed);
    return y;
  };
  auto [y, product] = forward(outputs, x, direction, options);
  return {finished(y, options.create_graph), finished(filled(std::move(product), y, options, BackTrick), options.create_graph)};
}

std::vector<List> jacobian(const TensorFunction& f, const List& inputs, DerivativeOptions options) {
  const EnableGrad on;
  const List x = prepared(inputs, options.create_graph, true), y = f(x);
  check_recorded(y, options.strict, kOutputFixed);
  std::vector<List> result;
  for (const Tensor& out : y) {
    std::vector<List> rows(x.size());
    const Tensor flat = out.reshape({-1});
    for (int64_t j = 0; j < out.numel(); ++j) {
      List g = out.requires_grad() ? grad({flat[j]}, x, {}, true, options.create_graph, true) : List(x.size());
      for (size_t k = 0; options.strict && k < x.size(); ++k)
        if (!g[k].defined())
          throw RuntimeError("Output {} of the user-provided function is independent of input {}. This is not allowed in strict mode.",
                             result.size(), k);
      g = filled(std::move(g), x, options, Back);
      for (size_t k = 0; k < x.size(); ++k) rows[k].push_back(g[k]);
    }
    List& blocks = result.emplace_back();
    for (size_t k = 0; k < x.size(); ++k) {
      Dims shape = out.sizes();
      for (const int64_t d : x[k].sizes()) shape.push_back(d);
      blocks.push_back(rows[k].empty() ? zeros(shape, Options(x[k].dtype(), x[k].device())) : stack(rows[k]).view(shape));
    }
    blocks = finished(std::move(blocks), options.create_graph);
  }
  return result;
}

Tensor jacobian(const TensorFunction& f, const Tensor& input, DerivativeOptions options) {
  const auto all = jacobian(f, List{input}, options);
  if (all.size() != 1)
    throw RuntimeError("jacobian: the function gave {} tensors; pass the input as a list to get one Jacobian each", all.size());
  return all[0][0];
}

std::vector<List> hessian(const TensorFunction& f, const List& inputs, DerivativeOptions options) {
  const TensorFunction gradient = [&](const List& x) {
    auto [y, g] = recorded_gradient(f, x, options, "hessian");
    for (size_t i = 0; i < g.size(); ++i)
      if (!g[i].defined()) g[i] = zeros_like(x[i]);
    return g;
  };
  return jacobian(gradient, inputs, options);
}

Tensor hessian(const TensorFunction& f, const Tensor& input, DerivativeOptions options) { return hessian(f, List{input}, options)[0][0]; }

Product vhp(const TensorFunction& f, const List& inputs, const List& v, DerivativeOptions options) {
  const EnableGrad on;
  const List x = prepared(inputs, options.create_graph, true);
  const List start = checked(v, x, options, kOneInput);
  auto [y, g] = recorded_gradient(f, x, options, "vhp");
  List product = filled(gradients(g, x, start, options.create_graph), x, options, DoubleBack);
  return {finished({y}, options.create_graph), finished(std::move(product), options.create_graph)};
}

Product hvp(const TensorFunction& f, const List& inputs, const List& v, DerivativeOptions options) {
  const EnableGrad on;
  const List x = prepared(inputs, options.create_graph, true);
  const List direction = checked(v, x, options, kOneInput);
  Tensor y;
  const auto gradient = [&] {
    List g;
    std::tie(y, g) = recorded_gradient(f, x, options, "hvp");
    return g;
  };
  List product = filled(forward(gradient, x, direction, options).second, x, options, DoubleBackTrick);
  return {finished({y}, options.create_graph), finished(std::move(product), options.create_graph)};
}

}  // namespace naru::autograd
