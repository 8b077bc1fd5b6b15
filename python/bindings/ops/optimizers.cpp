// Steps of further optimizers, and the building blocks of L-BFGS.
#include "naru/optim/steps.h"
#include "object/function.h"
#include "object/tensor_object.h"

namespace naru::py {
namespace {

using List = std::vector<Tensor>;

// Each updates one parameter; the gradient is already negated if maximizing, and includes weight decay unless noted.
void define_more_steps() {
  def(kFunction, "_radam_step", "param, grad, exp_avg, exp_avg_sq, step, lr, beta1, beta2, eps, weight_decay, decoupled",
      "One step of RAdam.",
      [](const Tensor& p, const Tensor& g, const Tensor& mean, const Tensor& square, int64_t step, double lr, double beta1, double beta2,
         double eps, double decay, bool decoupled) {
        optim::radam_step(p, g, mean, square, step, {lr, beta1, beta2, eps, decay, decoupled, false});
        return Self();
      });
  def(kFunction, "_rprop_step", "param, grad, prev, step_size, eta_minus, eta_plus, step_min, step_max", "One step of Rprop.",
      [](const Tensor& p, const Tensor& g, const Tensor& prev, const Tensor& size, double minus, double plus, double low, double high) {
        optim::rprop_step(p, g, prev, size, {.eta_minus = minus, .eta_plus = plus, .step_min = low, .step_max = high});
        return Self();
      });
  def(kFunction, "_asgd_step", "param, grad, ax, eta, mu, lambd", "One step of ASGD.",
      [](const Tensor& p, const Tensor& g, const Tensor& ax, double eta, double mu, double lambd) {
        optim::asgd_step(p, g, ax, eta, mu, {.lambd = lambd});
        return Self();
      });
  def(kFunction, "_asgd_eta", "step, lr, lambd, alpha", "ASGD's eta after a step.",
      [](int64_t step, double lr, double lambd, double alpha) {
        return optim::asgd_eta(step, {.lr = lr, .lambd = lambd, .alpha = alpha});
      });
  def(kFunction, "_asgd_mu", "step, t0", "ASGD's mu after a step.",
      [](int64_t step, double t0) { return optim::asgd_mu(step, {.t0 = t0}); });
  def(kFunction, "_adafactor_step", "param, grad, row_var, col_var, variance, step, lr, beta2_decay, eps1, eps2, d, weight_decay",
      "One step of Adafactor.",
      [](const Tensor& p, const Tensor& g, const OptTensor& row, const OptTensor& column, const OptTensor& variance, int64_t step,
         double lr, double beta2_decay, std::optional<double> eps1, double eps2, double d, double decay) {
        optim::AdafactorOptions o{.lr = lr, .beta2_decay = beta2_decay, .eps2 = eps2, .d = d, .weight_decay = decay};
        o.eps1 = eps1;
        optim::adafactor_step(p, g, or_undefined(row), or_undefined(column), or_undefined(variance), step, o);
        return Self();
      });
  def(kFunction, "_muon_step", "param, grad, buffer, lr, weight_decay, momentum, nesterov, a, b, c, eps, ns_steps, adjust_lr_fn",
      "One step of Muon.",
      [](const Tensor& p, const Tensor& g, const Tensor& buffer, double lr, double decay, double momentum, bool nesterov, double a,
         double b, double c, double eps, int64_t steps, std::string_view adjust) {
        optim::MuonOptions o{.lr = lr, .weight_decay = decay, .momentum = momentum, .a = a, .b = b, .c = c, .eps = eps};
        o.ns_steps = steps, o.nesterov = nesterov, o.adjust_lr_fn = adjust;
        optim::muon_step(p, g, buffer, o);
        return Self();
      });
}

// Calls Python's function at a step length; returns (loss, gradient).
std::pair<double, Tensor> evaluate(PyObject* at, double t) {
  const nb::object found = nb::steal(check(PyObject_CallFunction(at, "d", t)));
  if (!PyTuple_Check(found.ptr()) || PyTuple_GET_SIZE(found.ptr()) != 2 || !is_tensor(PyTuple_GET_ITEM(found.ptr(), 1)))
    throw TypeError("_strong_wolfe(): at must return a loss and a gradient");
  const double loss = PyFloat_AsDouble(PyTuple_GET_ITEM(found.ptr(), 0));
  if (loss == -1 && PyErr_Occurred()) throw nb::python_error();
  return {loss, tensor_of(PyTuple_GET_ITEM(found.ptr(), 1))};
}

void define_lbfgs() {
  def(kFunction, "_lbfgs_direction", "grad, changes, steps, inverse, diagonal", "Minus the inverse Hessian, as known, times the gradient.",
      [](const Tensor& grad, const List& changes, const List& steps, const Tensor& inverse, double diagonal) {
        return optim::LbfgsHistory{changes, steps, inverse.to_doubles(), diagonal}.direction(grad);
      });
  def(kFunction, "_strong_wolfe", "at, t, d, loss, grad, slope, tolerance_change, most",
      "A step length that meets Wolfe's conditions: (loss, gradient, length, evaluations).",
      [](PyObject* at, double t, const Tensor& d, double f, const Tensor& g, double slope, double tolerance, int64_t most) -> PyObject* {
        const optim::LineSearch found =
            optim::strong_wolfe([at](double length) { return evaluate(at, length); }, t, d, f, g, slope, tolerance, most);
        return check(Py_BuildValue("(dNdL)", found.loss, check(wrap(found.grad)), found.t, static_cast<long long>(found.evaluations)));
      });
}

}  // namespace

void define_optimizers() {
  define_more_steps();
  define_lbfgs();
}

}  // namespace naru::py
