// Derivatives of Python functions, and gradient checking by finite differences.
#include "naru/autograd/derivatives.h"

#include "autograd/nodes.h"
#include "object/tensor_object.h"

namespace naru::py {
namespace {

using autograd::Product;
using autograd::TensorFunction;
using List = std::vector<Tensor>;

// Wraps a callable that expects one tuple of tensors and returns a list of tensors.
TensorFunction function_of(PyObject* f) {
  return [kept = keep(f)](const List& inputs) {
    const GilAcquire gil;
    nb::object result = nb::steal(check(call_python(kept.get(), {tuple_of(inputs).ptr()})));
    List found;
    if (!tensors_from(result.ptr(), found)) throw TypeError("the function must return Tensors, but got {}", Py_TYPE(result.ptr())->tp_name);
    return found;
  };
}

template <class F>
auto unlocked(F f) {
  const GilRelease scope;
  return f();
}

nb::object rows_of(const std::vector<List>& rows) {
  nb::list list;
  for (const List& row : rows) list.append(tuple_of(row));
  return nb::tuple(list);
}

template <Product (*F)(const TensorFunction&, const List&, const List&, autograd::DerivativeOptions)>
void define_product(const char* name, const char* doc) {
  def(kFunction, name, "func, inputs, v, create_graph, strict", doc,
      [](PyObject* f, const List& inputs, const std::optional<List>& v, bool create_graph, bool strict) -> PyObject* {
        const TensorFunction function = function_of(f);
        const Product p = unlocked([&] { return F(function, inputs, v.value_or(List()), {create_graph, strict}); });
        return nb::make_tuple(tuple_of(p.outputs), tuple_of(p.product)).release().ptr();
      });
}

template <std::vector<List> (*F)(const TensorFunction&, const List&, autograd::DerivativeOptions)>
void define_matrix(const char* name, const char* doc) {
  def(kFunction, name, "func, inputs, create_graph, strict", doc,
      [](PyObject* f, const List& inputs, bool create_graph, bool strict) -> PyObject* {
        const TensorFunction function = function_of(f);
        return rows_of(unlocked([&] { return F(function, inputs, {create_graph, strict}); })).release().ptr();
      });
}

PyObject* failure(const std::optional<std::string>& text) {
  if (!text) Py_RETURN_NONE;
  return check(to_python(*text));
}

}  // namespace

void define_derivatives() {
  define_product<autograd::vjp>("_vjp", "(outputs, v times the Jacobian).");
  define_product<autograd::jvp>("_jvp", "(outputs, the Jacobian times v).");
  define_product<autograd::vhp>("_vhp", "(outputs, v times the Hessian).");
  define_product<autograd::hvp>("_hvp", "(outputs, the Hessian times v).");
  define_matrix<autograd::jacobian>("_jacobian", "For each output a tuple of its derivatives by the inputs.");
  define_matrix<autograd::hessian>("_hessian", "For each input a tuple of its derivatives by the inputs.");
  def(kFunction, "_gradcheck", "func, inputs, eps, atol, rtol, nondet_tol, check_grad_dtypes",
      "What is wrong with the gradients of func, or None.",
      [](PyObject* f, const List& inputs, double eps, double atol, double rtol, double nondet_tol, bool dtypes) -> PyObject* {
        const TensorFunction function = function_of(f);
        const autograd::GradcheckOptions options{eps, atol, rtol, nondet_tol, dtypes};
        return failure(unlocked([&] { return autograd::gradcheck_failure(function, inputs, options); }));
      });
  def(kFunction, "_gradgradcheck", "func, inputs, grad_outputs, eps, atol, rtol, nondet_tol, check_grad_dtypes",
      "What is wrong with the gradients of the gradients of func, or None.",
      [](PyObject* f, const List& inputs, const List& starts, double eps, double atol, double rtol, double nondet_tol,
         bool dtypes) -> PyObject* {
        const TensorFunction function = function_of(f);
        const autograd::GradcheckOptions options{eps, atol, rtol, nondet_tol, dtypes};
        return failure(unlocked([&] { return autograd::gradgradcheck_failure(function, inputs, starts, options); }));
      });
}

}  // namespace naru::py
