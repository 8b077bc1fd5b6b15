// Automatic differentiation: the engine's entry points, nodes as Python sees them, hooks, and operators whose
// derivative is written in Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "naru/autograd.h"

#include "autograd/node.h"
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

// What the user's backward gives is one gradient (or None) for each tensor the function was given.
class PythonNode final : public Node {
 public:
  PythonNode(std::string name, PyObject* f) : Node("PythonFunction"), text_(std::move(name)), function_(keep(f)) {}
  std::string name() const override { return text_; }
  List apply(List grads) override {
    if (!function_)
      throw RuntimeError(
          "Trying to backward through the graph a second time (or directly access saved tensors after they have "
          "already been freed). "
          "Specify retain_graph=True for the first backward. (in {})",
          text_);
    Locked gil;
    nb::object result = nb::steal(check(call_python(function_.get(), {list_of(grads).ptr()})));
    return tensors_or_none(result.ptr(), text_.c_str());
  }
  void release_saved() override { function_.reset(); }

 private:
  std::string text_;
  std::shared_ptr<PyObject> function_;
};

// A node as Python sees it.
struct PyNode {
  Ref<Node> node;
};

nb::object node_object(Ref<Node> node) { return node ? nb::cast(PyNode{std::move(node)}) : nb::none(); }

autograd::Hook hook_of(PyObject* f) {
  return [f = keep(f)](const Tensor& g) -> Tensor {
    Locked gil;
    nb::object result = nb::steal(check(call_python(f.get(), {wrapped(g).ptr()})));
    if (result.is_none()) return {};
    if (!is_tensor(result.ptr())) throw TypeError("hook must return None or a Tensor, got {}", Py_TYPE(result.ptr())->tp_name);
    return tensor_of(result.ptr());
  };
}

// The handle register_hook gives. Holds the tensor without keeping it alive would need a weak count; hooks are few, so
// it keeps it.
struct HookHandle {
  Tensor tensor;
  int64_t number;
  void remove() {
    if (tensor.defined()) tensor.remove_hook(number);
    tensor = {};
  }
};

void define_nodes(nb::module_& m) {
  nb::class_<PyNode>(m, "Node", "An operator in the graph that backward walks.")
      .def("name", [](const PyNode& n) { return n.node->name(); })
      .def("__repr__",
           [](const PyNode& n) { return fmt::format("<{} object at {}>", n.node->name(), static_cast<const void*>(n.node.get())); })
      .def("__eq__", [](const PyNode& a, nb::object b) { return nb::isinstance<PyNode>(b) && nb::cast<PyNode>(b).node == a.node; })
      .def("__hash__", [](const PyNode& n) { return static_cast<int64_t>(reinterpret_cast<intptr_t>(n.node.get()) >> 4); })
      .def_prop_ro("next_functions", [](const PyNode& n) {
        nb::list list;
        for (const autograd::Edge& e : n.node->next()) list.append(nb::make_tuple(node_object(e.node), static_cast<int64_t>(e.slot)));
        return nb::tuple(list);
      });
  nb::class_<HookHandle>(m, "HookHandle", "Takes a hook out again.")
      .def("remove", &HookHandle::remove)
      .def_prop_ro("id", [](const HookHandle& h) { return h.number; })
      .def("__enter__", [](nb::object self) { return self; })
      .def("__exit__", [](HookHandle& h, nb::args) { h.remove(); });
}

void define_engine() {
  def(kFunction, "_backward", "tensors, gradients, retain_graph, create_graph, inputs",
      "Adds the gradients of the tensors to the leaves' grad.",
      [](PyObject* tensors, PyObject* gradients, bool retain, bool create, PyObject* inputs) -> PyObject* {
        const List outputs = tensors_or_none(tensors, "backward"), start = tensors_or_none(gradients, "backward"),
                   leaves = tensors_or_none(inputs, "backward");
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
  def(kFunction, "_make_function_node", "name, inputs, outputs, backward",
      "Gives the outputs a history: the callable, which maps a list of gradients of "
      "the outputs to gradients of the inputs. Returns the outputs.",
      [](std::string_view name, const List& inputs, const List& outputs, PyObject* f) {
        Ref<Node> node = make_ref<PythonNode>(std::string(name), f);
        autograd::connect(*node, inputs);
        node->outputs = static_cast<uint32_t>(outputs.size());
        for (size_t i = 0; i < outputs.size(); ++i) {
          // An input that forward wrote to and returned.
          const bool written = std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& t) { return t.is(outputs[i]); });
          if (written) {
            autograd::check_in_place(outputs[i], "an autograd.Function");
            autograd::rebase_history(outputs[i], node);
          } else {
            autograd::set_history(outputs[i], node, static_cast<uint32_t>(i));
          }
        }
        return outputs;
      });
  def(kMethod, "register_hook", "input, hook",
      "Calls hook(grad) when the gradient is known; what it returns replaces it. Returns a handle with remove().",
      [](const Tensor& t, PyObject* hook) -> PyObject* {
        if (!PyCallable_Check(hook)) throw TypeError("register_hook(): hook must be callable, got {}", Py_TYPE(hook)->tp_name);
        return nb::cast(HookHandle{t, t.register_hook(hook_of(hook))}).release().ptr();
      });
  def(kMethod, "backward", "input, gradient=None, retain_graph=None, create_graph=False, inputs=None",
      "Adds the gradients of this tensor to the leaves' grad.",
      [](const Tensor& t, const std::optional<Tensor>& gradient, std::optional<bool> retain, bool create, PyObject* inputs) -> PyObject* {
        const List leaves = is_tensor(inputs) ? List{tensor_of(inputs)} : tensors_or_none(inputs, "backward");
        if (inputs != Py_None && leaves.empty()) throw RuntimeError("'inputs' argument to backward cannot be empty.");
        {
          Unlocked scope;
          backward({t}, {gradient.value_or(Tensor())}, retain.value_or(create), create, leaves);
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
  define_engine();
  nb::class_<NoGradScope>(m, "no_grad", "Within it, no history is recorded.")
      .def(nb::init<>())
      .def("__enter__", [](NoGradScope& s) { s.before = set_grad_enabled(false); })
      .def("__exit__", [](NoGradScope& s, nb::args) { set_grad_enabled(s.before); });
}

}  // namespace naru::py
