// Automatic differentiation: the engine's entry points, nodes as Python sees them, hooks, and operators whose
// derivative is written in Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "naru/autograd.h"

#include <algorithm>
#include <mutex>

#include "autograd/anomaly.h"
#include "nodes.h"
#include "tensor_object.h"

namespace naru::py {
namespace {

using autograd::Node;
using List = std::vector<Tensor>;

// A list that holds tensors and None, which counts as undefined.
List tensors_or_none(PyObject* o, const char* what) {
  List list;
  if (o == Py_None) return list;
  if (!PyList_Check(o) && !PyTuple_Check(o)) throw TypeError("{}: wanted a list of Tensors, got {}", what, Py_TYPE(o)->tp_name);
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(o, i);
    if (item != Py_None && !is_tensor(item)) throw TypeError("{}: wanted Tensor or None at {}, got {}", what, i, Py_TYPE(item)->tp_name);
    list.push_back(item == Py_None ? Tensor() : tensor_of(item));
  }
  return list;
}

nb::object list_of(const List& tensors) {
  nb::object list = nb::steal(check(PyList_New(static_cast<Py_ssize_t>(tensors.size()))));
  for (size_t i = 0; i < tensors.size(); ++i) PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), check(wrap(tensors[i])));
  return list;
}

// The tensors of save_for_backward, which the node and its context both know.
struct FunctionState {
  std::mutex mutex;
  std::vector<autograd::Saved> saved;
  const Node* node = nullptr;  // until it dies

  // Shares of the tensors. A result that was saved is one of the node, so that gradients have gradients.
  List tensors() {
    List list;
    Ref<Node> alive;  // let go without the lock
    const std::lock_guard lock(mutex);
    if (node && node->try_retain()) alive = Ref<Node>::adopt(const_cast<Node*>(node));
    for (const autograd::Saved& s : saved) list.push_back(s.get(alive.get()));
    return list;
  }
};

// What the user's backward gives is one gradient (or None) for each tensor the function was given.
class PythonNode final : public Node {
 public:
  PythonNode(std::string name, PyObject* f, const List& inputs, std::shared_ptr<FunctionState> state)
      : Node("PythonFunction"), text_(std::move(name)), function_(keep(f)), state_(std::move(state)) {
    for (const Tensor& t : inputs) wanted_.emplace_back(t);
    observe();
    state_->node = this;
  }
  ~PythonNode() override {
    const std::lock_guard lock(state_->mutex);
    state_->node = nullptr;
  }
  std::string name() const override { return text_; }
  void* python_object() const override { return function_.get(); }
  List apply(List grads) override {
    List found;
    {
      Locked gil;
      nb::object result = nb::steal(check(call_python(function_.get(), {list_of(grads).ptr()})));
      found = tensors_or_none(result.ptr(), text_.c_str());
    }
    found.resize(next().size());
    for (size_t i = 0; i < found.size(); ++i)
      if (next()[i].node) found[i] = autograd::fit_gradient(std::move(found[i]), wanted_[i], text_, i);
    return found;
  }
  void release_saved() override {
    const std::lock_guard lock(state_->mutex);
    for (autograd::Saved& s : state_->saved) s.release();
  }
  void each_saved(const autograd::TensorVisitor& f) const override {
    const std::lock_guard lock(state_->mutex);
    for (const autograd::Saved& s : state_->saved) s.visit(f);
  }

 private:
  std::string text_;
  std::shared_ptr<PyObject> function_;
  std::shared_ptr<FunctionState> state_;
  std::vector<autograd::GradientLike> wanted_;
};

autograd::Hook hook_of(const std::shared_ptr<PyObject>& f) {
  return [f](const Tensor& g) -> Tensor {
    Locked gil;
    nb::object result = nb::steal(check(call_python(f.get(), {wrapped(g).ptr()})));
    if (result.is_none()) return {};
    if (!is_tensor(result.ptr())) throw TypeError("expected Variable, but hook returned '{}'", Py_TYPE(result.ptr())->tp_name);
    return tensor_of(result.ptr());
  };
}

PyObject* register_hook(const Tensor& t, PyObject* hook) {
  if (!PyCallable_Check(hook)) throw TypeError("register_hook(): hook must be callable, got {}", Py_TYPE(hook)->tp_name);
  const std::shared_ptr<PyObject> f = keep(hook);
  nb::object handle = hook_handle(autograd::add_hook(t, hook_of(f), name_of_callable(hook), f));
  track(static_cast<PyObject*>(t.impl()->python));
  return handle.release().ptr();
}

PyObject* register_leaf_hook(const Tensor& t, PyObject* hook) {
  if (!PyCallable_Check(hook))
    throw TypeError("register_post_accumulate_grad_hook(): hook must be callable, got {}", Py_TYPE(hook)->tp_name);
  if (!t.requires_grad()) throw RuntimeError("cannot register a hook on a tensor that doesn't require gradient");
  if (!t.is_leaf()) throw RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors");
  const std::shared_ptr<PyObject> f = keep(hook);
  const auto call = [f](const Tensor& leaf) {
    Locked gil;
    nb::object result = nb::steal(check(call_python(f.get(), {wrapped(leaf).ptr()})));
    if (!result.is_none()) throw RuntimeError("Tensor post accumulate grad hooks should return None.");
  };
  const auto& list = autograd::gradient_edge(t).node->ensure_extras().accumulated;
  nb::object handle = hook_handle({list->add(call, 0, name_of_callable(hook), f), list});
  track(static_cast<PyObject*>(t.impl()->python));
  return handle.release().ptr();
}

// Shares of the nodes that backward begins at, taken while the GIL is held: see Owned in collect.cpp.
struct Roots {
  std::vector<autograd::Edge> edges;
  explicit Roots(const List& outputs) {
    for (const Tensor& t : outputs)
      if (t.requires_grad()) edges.push_back(autograd::gradient_edge(t));
  }
};

// Makes `node` the history of a function's results. An input that forward wrote to and returned is rebased; a view of one can't be written
// to any more, for that would pass the function by.
void connect_results(const Ref<Node>& node, const List& inputs, const List& outputs) {
  autograd::connect(*node, inputs);
  node->outputs = static_cast<uint32_t>(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& out = outputs[i];
    if (std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& t) { return t.is(out); })) {
      autograd::check_in_place(out, "an autograd.Function");
      autograd::rebase_history(out, node);
    } else {
      autograd::set_history(out, node, static_cast<uint32_t>(i));
      if (out.impl()->base) out.impl()->view_kind = ViewKind::OfFunction;
    }
    if (out.impl()->python) track(static_cast<PyObject*>(out.impl()->python));
  }
}

// The context's view of what its node has saved.
struct SavedTensors {
  std::shared_ptr<FunctionState> state;
};

void define_functions(nb::module_& m) {
  nb::class_<SavedTensors>(m, "_SavedTensors").def("get", [](const SavedTensors& s) { return tuple_of(s.state->tensors()); });
  def(kFunction, "_make_function_node", "name, inputs, outputs, backward, saved, saved_output",
      "Gives the outputs a history: the callable maps a list of gradients of the outputs to gradients of the inputs. `saved`: tensors (or "
      "None) to be kept for it, with the number of the output that each is, or -1. Returns a way to them.",
      [](std::string_view name, const List& inputs, const List& outputs, PyObject* f, PyObject* saved,
         const Dims& saved_output) -> PyObject* {
        auto state = std::make_shared<FunctionState>();
        const Ref<Node> node = make_ref<PythonNode>(std::string(name), f, inputs, state);
        const List kept = tensors_or_none(saved, "save_for_backward");
        connect_results(node, inputs, outputs);
        for (size_t i = 0; i < kept.size(); ++i) {
          const int64_t output = saved_output[i];
          state->saved.emplace_back(kept[i], output >= 0, static_cast<uint32_t>(std::max<int64_t>(output, 0)));
        }
        return nb::cast(SavedTensors{std::move(state)}).release().ptr();
      });
}

// The program's stack, as traceback.format_stack() has it.
std::string python_stack() {
  Locked gil;
  try {
    nb::object lines = nb::module_::import_("traceback").attr("format_stack")();
    return nb::cast<std::string>(nb::str("").attr("join")(lines));
  } catch (nb::python_error&) {
    return "";
  }
}

void define_anomaly() {
  autograd::stack_text = python_stack;
  def(kFunction, "_set_anomaly_mode", "mode, check_nan=True", "Switches anomaly mode on or off, for all threads.",
      [](bool on, bool check_nan) {
        autograd::anomaly_mode = on;
        autograd::anomaly_checks_nan = check_nan;
      });
  def(kFunction, "is_anomaly_enabled", "", "Whether backward looks for anomalies.", [] { return autograd::anomaly_mode.load(); });
  def(kFunction, "is_anomaly_check_nan_enabled", "", "Whether NaN is one.", [] { return autograd::anomaly_checks_nan.load(); });
}

void define_engine() {
  def(kFunction, "_backward", "tensors, gradients, retain_graph, create_graph, inputs",
      "Adds the gradients of the tensors to the leaves' grad.",
      [](PyObject* tensors, PyObject* gradients, bool retain, bool create, PyObject* inputs) -> PyObject* {
        const List outputs = tensors_or_none(tensors, "backward"), start = tensors_or_none(gradients, "backward"),
                   leaves = tensors_or_none(inputs, "backward");
        const Roots roots(outputs);
        {
          Unlocked scope;
          backward(outputs, start, retain, create, leaves);
        }
        Py_RETURN_NONE;
      });
  def(kFunction, "_grad", "outputs, inputs, gradients, retain_graph, create_graph, allow_unused",
      "The gradients of the outputs with respect to the inputs.",
      [](PyObject* outputs, PyObject* inputs, PyObject* gradients, bool retain, bool create, bool unused) -> PyObject* {
        const List outs = tensors_or_none(outputs, "grad"), ins = tensors_or_none(inputs, "grad"),
                   start = tensors_or_none(gradients, "grad");
        const Roots roots(outs);
        List result;
        {
          Unlocked scope;
          result = grad(outs, ins, start, retain, create, unused);
        }
        return list_of(result).release().ptr();
      });
  def(kFunction, "is_grad_enabled", "", "Whether history is recorded on this thread.", [] { return grad_enabled(); });
  def(kFunction, "_set_grad_enabled", "mode", "Switches the recording of history on this thread on or off.",
      [](bool on) { set_grad_enabled(on); });
  def(kFunction, "set_grad_enabled", "mode", "Switches the recording of history on this thread on or off.",
      [](bool on) { set_grad_enabled(on); });
  def(kMethod, "register_hook", "input, hook",
      "Calls hook(grad) when the gradient is known; what it returns replaces it. Returns a handle with remove().",
      [](const Tensor& t, PyObject* hook) -> PyObject* { return register_hook(t, hook); });
  def(kMethod, "register_post_accumulate_grad_hook", "input, hook",
      "Calls hook(tensor) when backward has added to the leaf's grad. Returns a handle with remove().",
      [](const Tensor& t, PyObject* hook) -> PyObject* { return register_leaf_hook(t, hook); });
  def(kMethod, "backward", "input, gradient=None, retain_graph=None, create_graph=False, inputs=None",
      "Adds the gradients of this tensor to the leaves' grad.",
      [](const Tensor& t, const std::optional<Tensor>& gradient, std::optional<bool> retain, bool create, PyObject* inputs) -> PyObject* {
        const List leaves = is_tensor(inputs) ? List{tensor_of(inputs)} : tensors_or_none(inputs, "backward");
        if (inputs != Py_None && leaves.empty()) throw RuntimeError("`inputs` argument to `backward()` cannot be empty.");
        const List outputs{t};
        const Roots roots(outputs);
        {
          Unlocked scope;
          backward(outputs, {gradient.value_or(Tensor())}, retain.value_or(create), create, leaves);
        }
        Py_RETURN_NONE;
      });
}

// `with no_grad():` of the core itself; the package has one that decorates, too.
struct NoGradScope {
  bool before = true;
};

}  // namespace

PyObject* grad_fn_of(const Tensor& t) {
  if (!t.requires_grad() || t.is_leaf()) Py_RETURN_NONE;
  autograd::gradient_edge(t);  // a view looks after its base's history first
  const autograd::Meta* meta = autograd::meta_of(t);
  return node_object(meta ? meta->grad_fn : Ref<Node>()).release().ptr();
}

void define_autograd(nb::module_& m) {
  define_nodes(m);
  define_functions(m);
  define_engine();
  define_anomaly();
  nb::class_<NoGradScope>(m, "no_grad", "Within it, no history is recorded.")
      .def(nb::init<>())
      .def("__enter__", [](NoGradScope& s) { s.before = set_grad_enabled(false); })
      .def("__exit__", [](NoGradScope& s, nb::args) { set_grad_enabled(s.before); });
}

}  // namespace naru::py
