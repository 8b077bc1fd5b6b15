// Bindings of autograd: the engine's entry points, grad modes, hooks, saved tensors, anomaly mode, and functions whose backward is written in
// Python.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <optional>

#include "naru/autograd.h"
#include "naru/autograd/hooks.h"

#include <functional>

#include "autograd/engine/engine.h"
#include "autograd/engine/forward.h"
#include "autograd/graph/anomaly.h"
#include "autograd/history/function.h"
#include "autograd/nodes.h"
#include "object/tensor_object.h"
#include "ops/tensor/common.h"

namespace naru::py {
namespace {

using autograd::Node;
using List = std::vector<Tensor>;

// Converts a list or tuple of tensors and None (undefined). A None instead of the list: empty.
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

autograd::Hook hook_of(const std::shared_ptr<PyObject>& f) {
  return [f](const Tensor& g) -> Tensor {
    GilAcquire gil;
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
    GilAcquire gil;
    nb::object result = nb::steal(check(call_python(f.get(), {wrapped(leaf).ptr()})));
    if (!result.is_none()) throw RuntimeError("Tensor post accumulate grad hooks should return None.");
  };
  const auto& list = autograd::gradient_edge(t).node->ensure_extras().accumulated;
  nb::object handle = hook_handle({list->add(call, 0, name_of_callable(hook), f), list});
  track(static_cast<PyObject*>(t.impl()->python));
  return handle.release().ptr();
}

// References to the nodes that backward starts from. Take them while the GIL is held: see Owned in collect.cpp.
struct Roots {
  std::vector<autograd::Edge> edges;
  explicit Roots(const List& outputs) {
    for (const Tensor& t : outputs)
      if (t.requires_grad()) edges.push_back(autograd::gradient_edge(t));
  }
};

// The tensors that a function's node has saved, for ctx.saved_tensors.
struct SavedTensors {
  std::shared_ptr<autograd::SavedTensors> saved;
};

// Wraps a user-defined backward for the core. It maps a list of gradients (or None) to a list with one gradient for each input.
std::function<List(List, autograd::Needed)> backward_of(const std::shared_ptr<PyObject>& f, const std::string& name, size_t inputs) {
  return [f, name, inputs](List grads, autograd::Needed) {
    const GilAcquire gil;
    nb::object result = nb::steal(check(call_python(f.get(), {list_of(grads).ptr()})));
    List found = tensors_or_none(result.ptr(), name.c_str());
    found.resize(inputs);
    return found;
  };
}

void define_functions(nb::module_& m) {
  nb::class_<SavedTensors>(m, "_SavedTensors").def("get", [](const SavedTensors& s) { return tuple_of(s.saved->get()); });
  def(kFunction, "_record_function", "name, inputs, outputs, backward, dirty, fixed, saved, materialize",
      "Gives a function's outputs their history: the callable maps a list of gradients of the outputs to one of those of the inputs. "
      "Returns the "
      "outputs, of which those that are inputs as they were are views now, and a way to what was saved (None where nothing is "
      "differentiable).",
      [](std::string_view name, const List& inputs, const List& outputs, PyObject* f, PyObject* dirty, PyObject* fixed, PyObject* saved,
         bool materialize) -> PyObject* {
        const std::shared_ptr<PyObject> kept = keep(f);
        List results = outputs;
        autograd::FunctionCall call{.name = std::string(name),
                                    .inputs = inputs,
                                    .dirty = tensors_or_none(dirty, "mark_dirty"),
                                    .fixed = tensors_or_none(fixed, "mark_non_differentiable"),
                                    .saved = tensors_or_none(saved, "save_for_backward"),
                                    .materialize = materialize,
                                    .backward = backward_of(kept, std::string(name), inputs.size()),
                                    .object = kept};
        const auto held = autograd::record_function(std::move(call), results);
        const nb::object objects = tuple_of(results);
        for (const Tensor& out : results)
          if (held) track(static_cast<PyObject*>(out.impl()->python));
        return nb::make_tuple(objects, held ? nb::cast(SavedTensors{held}) : nb::none()).release().ptr();
      });
}

void define_anomaly() {
  def(kFunction, "_set_anomaly_mode", "mode, check_nan=True", "Switches anomaly mode on or off, for all threads.",
      [](bool on, bool check_nan) { set_detect_anomaly(on, check_nan); });
  def(kFunction, "is_anomaly_enabled", "", "Whether backward looks for anomalies.", [] { return anomaly_enabled(); });
  def(kFunction, "is_anomaly_check_nan_enabled", "", "Whether NaN is one.", [] { return anomaly_check_nan_enabled(); });
}

// The grad mode that the program sees. Disabling gradients while tangents are carried sets tangents_only, and keeps recording on. Bits: 1 recording,
// 2 tangents_only.
int64_t grad_mode_bits() { return grad_enabled() | autograd::tangents_only << 1; }
bool shows_grad_enabled() { return grad_enabled() && !autograd::tangents_only; }
void switch_grad_mode(bool on) {
  autograd::tangents_only = !on && autograd::tangents_carried && !is_inference_mode_enabled();
  set_grad_enabled(on || autograd::tangents_only);
}

// Gradient edges, tangent recording, and queries about the running backward pass, for naru.autograd.graph and others.
void define_edges() {
  def(kFunction, "_gradient_edge", "input", "(node, number of its input) that the tensor's gradient goes to.",
      [](const Tensor& t) -> PyObject* {
        const autograd::Edge edge = autograd::gradient_edge(t);
        return nb::make_tuple(node_object(edge.node), static_cast<int64_t>(edge.slot)).release().ptr();
      });
  def(kFunction, "_at_gradient_edge", "node, output_nr, like",
      "A tensor with the elements of `like` whose gradient goes to the node's input.",
      [](PyObject* node, int64_t slot, const Tensor& like) {
        const Ref<Node> target = node_from(node);
        if (!target) throw TypeError("expected a node of the graph, got {}", Py_TYPE(node)->tp_name);
        Tensor t = like.detach();
        autograd::Meta& m = autograd::ensure_meta(t);
        m.grad_fn = target;
        m.output = static_cast<uint32_t>(slot);
        return t;
      });
  def(kFunction, "_carry_tangents", "mode",
      "Whether tangents are carried on this thread: then what operators save outlives in-place writes, and what tangents flow through is "
      "recorded though gradients are switched off. Returns what _restore_grad_mode wants to know.",
      [](bool on) {
        const int64_t before = grad_mode_bits();
        if (std::exchange(autograd::tangents_carried, on) != on && !shows_grad_enabled()) switch_grad_mode(false);
        return before;
      });
  def(kFunction, "_mark_tangent", "input", "Says that a tangent flows from the tensor's history.", [](const Tensor& t) -> PyObject* {
    autograd::gradient_edge(t).node->carries_tangent = true;
    Py_RETURN_NONE;
  });
  def(kFunction, "_push_forward", "outputs, inputs, tangents, create_graph",
      "The tangents of the outputs, along the inputs' (None: where no input is part of one). create_graph None: as the tangents need it.",
      [](PyObject* outputs, PyObject* inputs, PyObject* tangents, std::optional<bool> create) -> PyObject* {
        const List outs = tensors_or_none(outputs, "push_forward"), ins = tensors_or_none(inputs, "push_forward"),
                   along = tensors_or_none(tangents, "push_forward");
        std::vector<autograd::Dual> duals;
        for (size_t i = 0; i < ins.size(); ++i) duals.push_back({autograd::gradient_edge(ins[i]), along.at(i)});
        List result;
        {
          GilRelease scope;
          result = autograd::push_forward(outs, duals, create).tangents;
        }
        return list_of(result).release().ptr();
      });
  def(kFunction, "_is_recorded", "tensors", "Whether what is done with the tensors is recorded now.",
      [](const List& tensors) { return autograd::recording(tensors); });
  def(kFunction, "_current_backward", "", "The number of the backward pass that runs on this thread; 0 outside.",
      [] { return static_cast<int64_t>(autograd::current_backward()); });
  def(kFunction, "_queue_callback", "callback", "Calls it when the backward pass that runs on this thread is over.",
      [](PyObject* call) -> PyObject* {
        if (!PyCallable_Check(call)) throw TypeError("queue_callback(): callback must be callable, got {}", Py_TYPE(call)->tp_name);
        queue_callback([f = keep(call)] {
          const GilAcquire gil;
          Py_DECREF(check(call_python(f.get(), {})));
        });
        Py_RETURN_NONE;
      });
  def(kFunction, "_backward_has_inputs", "", "Whether that pass gathers the gradients of named inputs only.",
      [] { return autograd::backward_has_inputs(); });
  def(kFunction, "_backward_keeps_graph", "", "Whether that pass keeps the graph.", [] { return autograd::backward_keeps_graph(); });
  def(kFunction, "_is_reached", "node, output_nr", "Whether the backward pass under way runs a node.", [](PyObject* node, int64_t) {
    const Ref<Node> n = node_from(node);
    if (!n) throw TypeError("expected a node of the graph, got {}", Py_TYPE(node)->tp_name);
    return autograd::backward_reaches(*n);
  });
  def(kFunction, "_increment_version", "input", "Counts as a write to the tensor.", [](const Tensor& t) -> PyObject* {
    if (t.is_inference()) throw RuntimeError("increment_version: inference tensors do not track version counter.");
    ops::bump_version(t);
    Py_RETURN_NONE;
  });
}

void define_engine() {
  def(kFunction, "_backward", "tensors, gradients, retain_graph, create_graph, inputs",
      "Adds the gradients of the tensors to the leaves' grad.",
      [](PyObject* tensors, PyObject* gradients, bool retain, bool create, PyObject* inputs) -> PyObject* {
        const List outputs = tensors_or_none(tensors, "backward"), start = tensors_or_none(gradients, "backward"),
                   leaves = tensors_or_none(inputs, "backward");
        const Roots roots(outputs);
        {
          GilRelease scope;
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
          GilRelease scope;
          result = grad(outs, ins, start, retain, create, unused);
        }
        return list_of(result).release().ptr();
      });
  def(kFunction, "is_grad_enabled", "", "Whether history is recorded on this thread.", [] { return shows_grad_enabled(); });
  def(kFunction, "is_inference_mode_enabled", "", "Whether this thread is within `inference_mode`.",
      [] { return is_inference_mode_enabled(); });
  def(kFunction, "is_inference", "input", "Whether the tensor was made within `inference_mode`.",
      [](const Tensor& t) { return t.is_inference(); });
  def(kMethod, "is_inference", "input", "Whether it was made within `inference_mode`.", [](const Tensor& t) { return t.is_inference(); });
  def(kFunction, "_set_grad_enabled", "mode",
      "Switches the recording of history on this thread on or off. Returns what _restore_grad_mode wants to know.", [](bool on) -> int64_t {
        const int64_t before = grad_mode_bits();
        switch_grad_mode(on);
        return before;
      });
  def(kFunction, "_restore_grad_mode", "before", "Undoes a _set_grad_enabled.", [](int64_t before) {
    autograd::tangents_only = (before & 2) && autograd::tangents_carried;
    set_grad_enabled((before & 1) && (autograd::tangents_only || !(before & 2)));
  });
  def(kFunction, "set_grad_enabled", "mode", "Switches the recording of history on this thread on or off.",
      [](bool on) { switch_grad_mode(on); });
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
          GilRelease scope;
          const Tensor start = gradient.value_or(Tensor());
          if (leaves.empty())
            t.backward(start, retain.value_or(create), create);
          else
            backward(outputs, {start}, retain.value_or(create), create, leaves);
        }
        Py_RETURN_NONE;
      });
}

// The core's own `with no_grad():`. The package's no_grad can also be used as a decorator.
struct NoGradScope {
  bool before = true;
};

// Entered once: the Python class makes a new one for each `with`.
struct InferenceScope {
  std::optional<InferenceMode> mode;
};

// The same for saved-tensor hooks.
struct SavedHooksScope {
  std::optional<SavedTensorHooks> hooks;
  void enter(nb::object pack, nb::object unpack) {
    hooks.emplace(
        [f = keep(pack.ptr())](const Tensor& t) -> std::shared_ptr<void> {
          const GilAcquire gil;
          const nb::object result = nb::steal(check(call_python(f.get(), {wrapped(t).ptr()})));
          return keep(result.ptr());
        },
        [f = keep(unpack.ptr())](const std::shared_ptr<void>& value) -> Tensor {
          const GilAcquire gil;
          const nb::object result = nb::steal(check(call_python(f.get(), {static_cast<PyObject*>(value.get())})));
          if (!is_tensor(result.ptr()))
            throw TypeError("Output of saved tensor unpack_hook expected to be a Tensor but got result of type {}",
                            Py_TYPE(result.ptr())->tp_name);
          return tensor_of(result.ptr());
        });
  }
};

// A tensor saved by a node, before it is unpacked.
struct SavedTensor {
  Ref<Node> node;
  std::string name;
  autograd::Saved* place() const { return node->saved_as(name).tensor; }
  // Returns a copy, for use without the guard: hooks may run arbitrary code.
  autograd::Saved kept() const {
    const Node::SavedGuard guard(*node);
    return *place();
  }
  Tensor get() const { return kept().get(node.get()); }
  void register_hooks(nb::object pack, nb::object unpack) const {
    for (const nb::object& f : {pack, unpack})
      if (!PyCallable_Check(f.ptr())) throw TypeError("register_hooks: hooks must be callable, got {}", Py_TYPE(f.ptr())->tp_name);
    autograd::Saved copy = kept();
    SavedHooksScope scope;
    scope.enter(pack, unpack);
    copy.pack_kept();
    const Node::SavedGuard guard(*node);
    *place() = std::move(copy);
  }
};

}  // namespace

bool saved_attribute(const Ref<autograd::Node>& node, std::string_view name, PyObject** found) {
  const bool raw = name.starts_with("_raw_saved_");
  if (!raw && !name.starts_with("_saved_")) return false;
  name.remove_prefix(raw ? 11 : 7);
  const autograd::SavedValue value = node->saved_as(name);
  if (!value.tensor && (!value.number || raw)) return false;
  *found = guarded([&]() -> PyObject* {
    if (!value.tensor) return scalar_object(*value.number);
    const SavedTensor saved{node, std::string(name)};
    if (raw) return nb::cast(saved).release().ptr();
    const Tensor t = saved.get();
    if (!t.defined()) Py_RETURN_NONE;
    return wrap(t);
  });
  return true;
}

PyObject* grad_fn_of(const Tensor& t) {
  if (!t.requires_grad() || t.is_leaf()) Py_RETURN_NONE;
  autograd::gradient_edge(t);  // first updates a view's grad_fn from its base's
  const autograd::Meta* meta = autograd::meta_of(t);
  return node_object(meta ? meta->grad_fn : Ref<Node>()).release().ptr();
}

void define_autograd(nb::module_& m) {
  define_nodes(m);
  define_functions(m);
  define_engine();
  define_edges();
  define_anomaly();
  nb::class_<NoGradScope>(m, "no_grad", "Within it, no history is recorded.")
      .def(nb::init<>())
      .def("__enter__", [](NoGradScope& s) { s.before = set_grad_enabled(false); })
      .def("__exit__", [](NoGradScope& s, nb::args) { set_grad_enabled(s.before); });
  nb::class_<InferenceScope>(m, "_InferenceScope", "One stay within inference mode.")
      .def(nb::init<>())
      .def("enter", [](InferenceScope& s, bool on) { s.mode.emplace(on); })
      .def("leave", [](InferenceScope& s) { s.mode.reset(); });
  nb::class_<SavedTensor>(m, "_SavedTensor", "What a node has saved for backward: grad_fn._raw_saved_self and the like.")
      .def("__init__", [](SavedTensor*, const nb::args&,
                          const nb::kwargs&) { throw RuntimeError("Trying to create a SavedTensor object from Python is forbidden."); })
      .def_prop_ro(
          "data", [](const SavedTensor& s) { return wrapped(s.get()); }, "The tensor.")
      .def("register_hooks", &SavedTensor::register_hooks, nb::arg("pack_hook"), nb::arg("unpack_hook"),
           "Keeps pack_hook(tensor) in its place; backward gets the tensor back from unpack_hook of that.");
  nb::class_<SavedHooksScope>(m, "_SavedHooksScope", "One stay within hooks on saved tensors.")
      .def(nb::init<>())
      .def("enter", &SavedHooksScope::enter)
      .def("leave", [](SavedHooksScope& s) { s.hooks.reset(); });
}

}  // namespace naru::py
