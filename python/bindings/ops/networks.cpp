// Neural network functions, and optimizer steps.
#include "naru/ops/functions.h"
#include "naru/optim/steps.h"
#include "object/tensor_object.h"

namespace naru::py {
namespace {

using List = std::vector<Tensor>;

void define_losses() {
  def(kFunction, "mse_loss", "input, target, reduction='mean'", "The squared differences: their mean, sum, or all of them.",
      [](const Tensor& x, const Tensor& y, Reduction r) { return mse_loss(x, y, r); });
  def(kFunction, "l1_loss", "input, target, reduction='mean'", "The absolute differences.",
      [](const Tensor& x, const Tensor& y, Reduction r) { return l1_loss(x, y, r); });
  def(kFunction, "smooth_l1_loss", "input, target, reduction='mean', beta=1.0", "Squared below beta, absolute above.",
      [](const Tensor& x, const Tensor& y, Reduction r, double beta) { return smooth_l1_loss(x, y, r, beta); });
  def(kFunction, "nll_loss", "input, target, weight=None, reduction='mean', ignore_index=-100",
      "Minus the log-probabilities at the target classes.",
      [](const Tensor& x, const Tensor& y, const OptTensor& w, Reduction r, int64_t ignore) {
        return nll_loss(x, y, or_undefined(w), r, ignore);
      });
  def(kFunction, "cross_entropy", "input, target, weight=None, reduction='mean', ignore_index=-100, label_smoothing=0.0",
      "The cross entropy of logits (N, C), (C) or (N, C, d1...) against classes, or probabilities of the input's "
      "shape.",
      [](const Tensor& x, const Tensor& y, const OptTensor& w, Reduction r, int64_t ignore, double smoothing) {
        return cross_entropy(x, y, or_undefined(w), r, ignore, smoothing);
      });
  def(kFunction, "binary_cross_entropy", "input, target, weight=None, reduction='mean'",
      "The cross entropy of probabilities against 0 and 1.",
      [](const Tensor& x, const Tensor& y, const OptTensor& w, Reduction r) { return binary_cross_entropy(x, y, or_undefined(w), r); });
  def(kFunction, "binary_cross_entropy_with_logits", "input, target, weight=None, pos_weight=None, reduction='mean'",
      "The cross entropy of sigmoid(input) against 0 and 1.",
      [](const Tensor& x, const Tensor& y, const OptTensor& w, const OptTensor& p, Reduction r) {
        return binary_cross_entropy_with_logits(x, y, or_undefined(w), r, or_undefined(p));
      });
}

void define_composed_losses() {
  def(kFunction, "huber_loss", "input, target, reduction='mean', delta=1.0", "Squared up to delta, absolute above.",
      [](const Tensor& x, const Tensor& y, Reduction r, double delta) { return huber_loss(x, y, r, delta); });
  def(kFunction, "kl_div", "input, target, reduction='mean', *, log_target=False", "target (log(target) - input).",
      [](const Tensor& x, const Tensor& y, Reduction r, bool log_target) { return kl_div(x, y, r, log_target); });
  def(kFunction, "poisson_nll_loss", "input, target, log_input, full, eps, reduction", "exp(input) - target input.",
      [](const Tensor& x, const Tensor& y, bool log_input, bool full, double eps, Reduction r) {
        return poisson_nll_loss(x, y, log_input, full, eps, r);
      });
  def(kFunction, "cosine_embedding_loss", "input1, input2, target, margin=0.0, reduction='mean'",
      "1 - cos where target is 1, max(0, cos - margin) where it is -1.",
      [](const Tensor& a, const Tensor& b, const Tensor& y, double margin, Reduction r) {
        return cosine_embedding_loss(a, b, y, margin, r);
      });
  def(kFunction, "hinge_embedding_loss", "input, target, margin=1.0, reduction='mean'",
      "input where target is 1, max(0, margin - input) where it is -1.",
      [](const Tensor& x, const Tensor& y, double margin, Reduction r) { return hinge_embedding_loss(x, y, margin, r); });
  def(kFunction, "margin_ranking_loss", "input1, input2, target, margin=0.0, reduction='mean'",
      "max(0, -target (input1 - input2) + margin).", [](const Tensor& a, const Tensor& b, const Tensor& y, double margin, Reduction r) {
        return margin_ranking_loss(a, b, y, margin, r);
      });
  def(kFunction, "soft_margin_loss", "input, target, reduction='mean'", "log(1 + exp(-target input)).",
      [](const Tensor& x, const Tensor& y, Reduction r) { return soft_margin_loss(x, y, r); });
  def(kFunction, "triplet_margin_loss", "anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False, reduction='mean'",
      "max(0, |anchor - positive| - |anchor - negative| + margin).",
      [](const Tensor& a, const Tensor& b, const Tensor& c, double margin, double p, double eps, bool swap, Reduction r) {
        return triplet_margin_loss(a, b, c, margin, p, eps, swap, r);
      });
}

void define_layers() {
  def(kBoth, "softmax", "input, dim, dtype=None, *, out=None", "exp(input) / sum(exp(input)) along a dimension.",
      [](const Tensor& t, int64_t dim, std::optional<DType> dtype) { return softmax(t, dim, dtype); });
  def(kBoth, "log_softmax", "input, dim, dtype=None, *, out=None", "log(softmax(input)).",
      [](const Tensor& t, int64_t dim, std::optional<DType> dtype) { return log_softmax(t, dim, dtype); });
  def(kFunction, "linear", "input, weight, bias=None, *, out=None",
      "input (..., in) times the transpose of weight (out, in), plus bias (out).",
      [](const Tensor& x, const Tensor& w, const OptTensor& b) { return linear(x, w, or_undefined(b)); });
  def(kFunction, "embedding", "weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False",
      "The rows of weight that the indices name; no gradient flows to row padding_idx. sparse: the gradient is a sparse tensor.",
      [](const Tensor& w, const Tensor& i, int64_t padding, bool by_frequency, bool sparse) {
        return embedding(w, i, padding, by_frequency, sparse);
      });
  def(kFunction, "layer_norm", "input, normalized_shape, weight=None, bias=None, eps=1e-05",
      "Mean 0 and variance 1 over the last dimensions, then weight and bias.",
      [](const Tensor& x, const Dims& shape, const OptTensor& w, const OptTensor& b, double eps) {
        return layer_norm(x, shape, or_undefined(w), or_undefined(b), eps);
      });
  def(kFunction, "dropout", "input, p=0.5, train=True, *, generator=None",
      "Zeroes elements with probability p and scales the others by 1 / (1 - p).",
      [](const Tensor& x, double p, bool train, Generator* g) { return dropout(x, p, train, g); });
  def(kMethod, "dropout_", "input, p=0.5, train=True", "Dropout in place.", [](const Tensor& x, double p, bool train) {
    dropout_(x, p, train);
    return Self();
  });
  def(kBoth, "prelu", "input, weight", "input where positive, else weight * input; one weight, or one for each channel.",
      [](const Tensor& x, const Tensor& w) { return prelu(x, w); });
  def(kFunction, "bilinear", "input1, input2, weight, bias=None", "out[..., k] = input1 weight[k] input2 + bias[k].",
      [](const Tensor& a, const Tensor& b, const Tensor& w, const OptTensor& bias) { return bilinear(a, b, w, or_undefined(bias)); });
  def(kFunction, "_tensordot", "a, b, dims_a, dims_b", "Sums of products over dimensions of both, named in pairs.",
      [](const Tensor& a, const Tensor& b, const Dims& dims_a, const Dims& dims_b) { return tensordot(a, b, dims_a, dims_b); });
  def(kFunction, "_tensordot", "a, b, dims", "Sums of products over the last dimensions of a and the first of b.",
      [](const Tensor& a, const Tensor& b, int64_t dims) { return tensordot(a, b, dims); });
  def(kFunction, "one_hot", "input, num_classes=-1", "(..., classes) int64: 1 at each element's class.",
      [](const Tensor& t, int64_t classes) { return one_hot(t, classes); });
  def(kFunction, "cosine_similarity", "x1, x2, dim=1, eps=1e-08", "The products of unit vectors along a dimension.",
      [](const Tensor& a, const Tensor& b, int64_t dim, double eps) { return cosine_similarity(a, b, dim, eps); });
}

// (params, grads) for the parameters that have a gradient; (params, None) if C++ reads the gradients.
PyObject* with_gradients(PyObject* given, bool in_python) {
  static PyObject* const name = PyUnicode_InternFromString("grad");
  nb::object items = nb::steal(check(PySequence_Fast(given, "_with_gradients(): params must be a list")));
  if (!in_python) {
    const auto lacks = [](PyObject* p) { return !is_tensor(p) || !tensor_of(p).grad().defined(); };
    PyObject** const first = PySequence_Fast_ITEMS(items.ptr());
    PyObject** const end = first + PySequence_Fast_GET_SIZE(items.ptr());
    if (std::none_of(first, end, lacks)) return check(PyTuple_Pack(2, items.ptr(), Py_None));
  }
  nb::object params = nb::steal(check(PyList_New(0))), grads = nb::steal(check(PyList_New(0)));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i) {
    const nb::object item = nb::borrow(PySequence_Fast_GET_ITEM(items.ptr(), i));  // reading its grad may change the list
    const nb::object grad = nb::steal(check(PyObject_GetAttr(item.ptr(), name)));
    if (grad.is_none()) continue;
    if (PyList_Append(params.ptr(), item.ptr()) < 0 || PyList_Append(grads.ptr(), grad.ptr()) < 0) throw nb::python_error();
  }
  return check(PyTuple_Pack(2, params.ptr(), in_python ? grads.ptr() : Py_None));
}

List gradients_of(const List& params) {
  List grads(params.size());
  std::transform(params.begin(), params.end(), grads.begin(), [](const Tensor& p) { return p.grad(); });
  return grads;
}

void drop_gradients(PyObject* given) {
  static PyObject* const name = PyUnicode_InternFromString("grad");
  nb::object items = nb::steal(check(PySequence_Fast(given, "_drop_gradients(): params must be a list")));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.ptr()); ++i) {
    const nb::object item = nb::borrow(PySequence_Fast_GET_ITEM(items.ptr(), i));  // dropping a gradient may change the list
    if (PyObject_SetAttr(item.ptr(), name, Py_None) < 0) throw nb::python_error();
  }
}

// True if each parameter has a state, with moments on its device.
bool states_fit(PyObject* states, PyObject* params) {
  static PyObject* const key = PyUnicode_InternFromString("exp_avg");
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(states); ++i) {
    PyObject* const state = PyList_GET_ITEM(states, i);
    PyObject* const mean = PyDict_Check(state) ? PyDict_GetItemWithError(state, key) : nullptr;
    if (!mean && PyErr_Occurred()) throw nb::python_error();
    if (!mean || !is_tensor(mean) || !(tensor_of(mean).device() == tensor_of(PyList_GET_ITEM(params, i)).device())) return false;
  }
  return true;
}

// Increments the step count of each state (a dict); returns the new counts. A count is a one-element tensor; in files from before PyTorch
// 1.12 a number, which becomes a tensor. Returns None, and changes nothing, if a state does not exist yet or must be moved.
PyObject* count_steps(PyObject* states, PyObject* params) {
  static PyObject* const key = PyUnicode_InternFromString("step");
  if (!PyList_Check(states) || !PyList_Check(params) || PyList_GET_SIZE(states) != PyList_GET_SIZE(params))
    throw TypeError("_count_steps(): states must be a list of dicts, one for each of params");
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(params); ++i)
    if (!is_tensor(PyList_GET_ITEM(params, i))) throw TypeError("_count_steps(): params must be a list of tensors");
  if (!states_fit(states, params)) Py_RETURN_NONE;
  const nb::object numbers = nb::steal(check(PyList_New(0)));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(states); ++i) {
    const nb::object state = nb::borrow(PyList_GET_ITEM(states, i));
    nb::object step = nb::steal(check(PyObject_GetItem(state.ptr(), key)));
    if (!is_tensor(step.ptr())) {
      const double before = PyFloat_AsDouble(step.ptr());
      if (before == -1 && PyErr_Occurred()) throw nb::python_error();
      step = nb::steal(check(wrap(full({}, before, Options(DType::F32, Device(DeviceType::Cpu))))));
      if (PyObject_SetItem(state.ptr(), key, step.ptr()) < 0) throw nb::python_error();
    }
    Tensor count = tensor_of(step.ptr());
    const nb::object now = nb::steal(check(PyLong_FromDouble(count.add_(1).item().to_double())));
    if (PyList_Append(numbers.ptr(), now.ptr()) < 0) throw nb::python_error();
  }
  return numbers.inc_ref().ptr();
}

void define_steps() {
  def(kFunction, "_sparse_adam_step", "param, grad, exp_avg, exp_avg_sq, step, lr, beta1, beta2, eps", "One step of SparseAdam.",
      [](const Tensor& p, const Tensor& g, const Tensor& first, const Tensor& second, int64_t step, double lr, double beta1, double beta2,
         double eps) { optim::sparse_adam_step(p, g, first, second, step, {.lr = lr, .beta1 = beta1, .beta2 = beta2, .eps = eps}); });
  def(kFunction, "_with_gradients", "params, lists=True", "The parameters that have a gradient, and these (None unless lists).",
      [](PyObject* params, bool lists) { return with_gradients(params, lists); });
  def(kFunction, "_drop_gradients", "params", "Sets the gradients of parameters to None.", [](PyObject* params) -> PyObject* {
    drop_gradients(params);
    Py_RETURN_NONE;
  });
  def(kFunction, "_count_steps", "states, params",
      "Adds 1 to each state's count of steps, and returns what they are then; None, and no more, where a state is to be made or moved "
      "first.",
      [](PyObject* states, PyObject* params) { return count_steps(states, params); });
  def(kFunction, "_sgd_step", "params, momenta, lr, momentum, dampening, weight_decay, nesterov, maximize",
      "One step of SGD in place, with the parameters' gradients. Returns the momenta, those made now among them.",
      [](const List& params, PyObject* given, double lr, double momentum, double dampening, double weight_decay, bool nesterov,
         bool maximize) -> PyObject* {
        List momenta;
        if (!PyList_Check(given) && !PyTuple_Check(given)) throw TypeError("_sgd_step(): momenta must be a list");
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(given); ++i) {
          PyObject* item = PySequence_Fast_GET_ITEM(given, i);
          momenta.push_back(is_tensor(item) ? tensor_of(item) : Tensor());
        }
        {
          GilRelease scope;
          sgd_step(params, gradients_of(params), momenta, {lr, momentum, dampening, weight_decay, nesterov, maximize});
        }
        nb::object list = nb::steal(check(PyList_New(static_cast<Py_ssize_t>(momenta.size()))));
        for (size_t i = 0; i < momenta.size(); ++i) PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), check(wrap(momenta[i])));
        return list.release().ptr();
      });
  def(kFunction, "_adam_step_on_device",
      "params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, step, lr, beta1, beta2, eps, weight_decay, decoupled, "
      "amsgrad, maximize",
      "One step of Adam in place, whose number is counted on the device.",
      [](const List& params, const List& mean, const List& square, const List& largest, const Tensor& step, const Operand& lr, double beta1,
         double beta2, double eps, double weight_decay, bool decoupled, bool amsgrad, bool maximize) -> PyObject* {
        {
          GilRelease scope;
          Tensor count = step;
          adam_step(params, gradients_of(params), mean, square, largest, count, lr,
                    {0, beta1, beta2, eps, weight_decay, decoupled, amsgrad, maximize});
        }
        Py_RETURN_NONE;
      });
  def(kFunction, "_adam_step",
      "params, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, step, lr, beta1, beta2, eps, weight_decay, decoupled, "
      "amsgrad, maximize",
      "One step of Adam (or AdamW, decoupled) in place.",
      [](const List& params, const List& mean, const List& square, const List& largest, int64_t step, double lr, double beta1, double beta2,
         double eps, double weight_decay, bool decoupled, bool amsgrad, bool maximize) -> PyObject* {
        {
          GilRelease scope;
          adam_step(params, gradients_of(params), mean, square, largest, step,
                    {lr, beta1, beta2, eps, weight_decay, decoupled, amsgrad, maximize});
        }
        Py_RETURN_NONE;
      });
}

}  // namespace

void define_networks() {
  define_losses();
  define_composed_losses();
  define_layers();
  define_steps();
}

}  // namespace naru::py
