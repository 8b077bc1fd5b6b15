// Derivatives of functions of tensors, as torch.autograd.functional has them, and their comparison with finite differences.
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

// A function of tensors: any callable of one to four tensors, or of a vector of them, that returns a tensor or a vector of them.
class TensorFunction {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, TensorFunction>) TensorFunction(F f) : call_(adapt(std::move(f))) {}
  // RuntimeError where the function takes another number of tensors.
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

// create_graph: results may be differentiated. strict: RuntimeError where a result does not depend on an input, in place of zeros.
struct DerivativeOptions {
  bool create_graph = false, strict = false;
};
// What the function gives, and a product with its derivatives.
struct Product {
  std::vector<Tensor> outputs, product;
};

// v times the Jacobian: v is like the outputs (empty: the output is one element), the product like the inputs. RuntimeError for another v.
Product vjp(const TensorFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v = {}, DerivativeOptions options = {});
// The Jacobian times v: v is like the inputs (empty: the input is one element), the product like the outputs.
Product jvp(const TensorFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v = {}, DerivativeOptions options = {});
// [i][j]: of output i by input j, of the output's shape followed by the input's.
std::vector<std::vector<Tensor>> jacobian(const TensorFunction& f, const std::vector<Tensor>& inputs, DerivativeOptions options = {});
// Of a function with one output. RuntimeError for others.
Tensor jacobian(const TensorFunction& f, const Tensor& input, DerivativeOptions options = {});
// [i][j]: second derivatives by inputs i and j of a function that gives one element (RuntimeError otherwise).
std::vector<std::vector<Tensor>> hessian(const TensorFunction& f, const std::vector<Tensor>& inputs, DerivativeOptions options = {});
Tensor hessian(const TensorFunction& f, const Tensor& input, DerivativeOptions options = {});
// v times the Hessian, and the Hessian times v (v and the product are like the inputs).
Product vhp(const TensorFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v = {}, DerivativeOptions options = {});
Product hvp(const TensorFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v = {}, DerivativeOptions options = {});

// --- finite differences

// A gradient differs from its finite difference.
class GradcheckError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

struct GradcheckOptions {
  double eps = 1e-6, atol = 1e-5, rtol = 1e-3;
  double nondet_tol = 0;           // how far two backward passes may differ
  bool check_grad_dtypes = false;  // gradients have their inputs' types
};
// What is wrong with the gradients of f; nothing if they agree with central differences, for every input that requires grad. Inputs are float64 and
// contiguous. ValueError where none requires grad, or one is not contiguous.
std::optional<std::string> gradcheck_failure(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                             const GradcheckOptions& options = {});
// True, or GradcheckError; of the gradients' gradients, which begin with grad_outputs (random ones, if empty).
bool gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});
std::optional<std::string> gradgradcheck_failure(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                                 const std::vector<Tensor>& grad_outputs = {}, const GradcheckOptions& options = {});
bool gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& grad_outputs = {},
                   const GradcheckOptions& options = {});

}  // namespace naru::autograd
