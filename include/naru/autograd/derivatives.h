// Derivatives of functions of tensors, after torch.autograd.functional, and gradient checking by finite differences.
//
//   Tensor h = autograd::hessian([](const Tensor& x) { return x.pow(3).sum(); }, x);
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "naru/autograd.h"
#include "naru/standard.h"

namespace naru::autograd {

// A function of tensors: wraps a callable that accepts one to four tensors, or a vector of tensors, and returns a tensor or a vector of
// tensors.
class TensorFunction {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, TensorFunction>) TensorFunction(F f) : call_(adapt(std::move(f))) {}
  // Throws RuntimeError if the callable expects a different number of tensors.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const { return call_(inputs); }

 private:
  using Call = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  static std::vector<Tensor> listed(Tensor t) { return {std::move(t)}; }
  static std::vector<Tensor> listed(std::vector<Tensor> list) { return list; }
  static void check_count(size_t wanted, size_t given);
  template <class F, size_t... I>
  static Call spread(F f, std::index_sequence<I...>) {
    return [f = std::move(f)](const std::vector<Tensor>& x) mutable {
      check_count(sizeof...(I), x.size());
      return listed(f(x[I]...));
    };
  }
  template <class F>
  static Call adapt(F f) {
    using T = const Tensor&;
    if constexpr (std::is_invocable_v<F&, T>)
      return spread(std::move(f), std::make_index_sequence<1>{});
    else if constexpr (std::is_invocable_v<F&, T, T>)
      return spread(std::move(f), std::make_index_sequence<2>{});
    else if constexpr (std::is_invocable_v<F&, T, T, T>)
      return spread(std::move(f), std::make_index_sequence<3>{});
    else if constexpr (std::is_invocable_v<F&, T, T, T, T>)
      return spread(std::move(f), std::make_index_sequence<4>{});
    else
      return [f = std::move(f)](const std::vector<Tensor>& x) mutable { return listed(f(x)); };
  }
  Call call_;
};

// create_graph: the results can be differentiated. strict: throw RuntimeError if a result does not depend on an input, instead of returning
// zeros.
struct DerivativeOptions {
  bool create_graph = false, strict = false;
};
// The function's outputs, and the product with its derivatives.
struct Product {
  std::vector<Tensor> outputs, product;
};

// Vector-Jacobian product. v has the shapes of the outputs (may be empty if the output is one element), the product those of the inputs.
// Throws RuntimeError if v doesn't fit.
Product vjp(const TensorFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v = {}, DerivativeOptions options = {});
// Jacobian-vector product. v has the shapes of the inputs (may be empty if the input is one element), the product those of the outputs.
Product jvp(const TensorFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v = {}, DerivativeOptions options = {});
// [i][j]: the derivative of output i with respect to input j; its shape is the output's followed by the input's.
std::vector<std::vector<Tensor>> jacobian(const TensorFunction& f, const std::vector<Tensor>& inputs, DerivativeOptions options = {});
// For a function with one output. Throws RuntimeError otherwise.
Tensor jacobian(const TensorFunction& f, const Tensor& input, DerivativeOptions options = {});
// [i][j]: second derivatives with respect to inputs i and j. Throws RuntimeError if the function does not return one element.
std::vector<std::vector<Tensor>> hessian(const TensorFunction& f, const std::vector<Tensor>& inputs, DerivativeOptions options = {});
Tensor hessian(const TensorFunction& f, const Tensor& input, DerivativeOptions options = {});
// vhp: v times the Hessian; hvp: the Hessian times v. v and the product have the shapes of the inputs.
Product vhp(const TensorFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v = {}, DerivativeOptions options = {});
Product hvp(const TensorFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v = {}, DerivativeOptions options = {});

// --- finite differences

// Thrown when a gradient differs from its finite difference.
class GradcheckError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

struct GradcheckOptions {
  double eps = 1e-6, atol = 1e-5, rtol = 1e-3;
  double nondet_tol = 0;           // greatest allowed difference of two backward passes
  bool check_grad_dtypes = false;  // also check that gradients have their inputs' dtypes
};
// Describes what is wrong with f's gradients; empty if they agree with central differences for every input that requires grad. Inputs must
// be float64 and contiguous. Throws ValueError if none requires grad or one is not contiguous.
std::optional<std::string> gradcheck_failure(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                             const GradcheckOptions& options = {});
// gradcheck returns true or throws GradcheckError. gradgradcheck checks second derivatives, with these grad_outputs (random ones if empty).
bool gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});
std::optional<std::string> gradgradcheck_failure(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                                 const std::vector<Tensor>& grad_outputs = {}, const GradcheckOptions& options = {});
bool gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& grad_outputs = {},
                   const GradcheckOptions& options = {});

}  // namespace naru::autograd
