#include "autograd/nodes.h"

#include <structmember.h>

#include <unordered_map>

#include "autograd/history/accumulate.h"
#include "object/collect.h"
#include "object/convert.h"

namespace naru::py {
namespace {

using autograd::Node;
using List = std::vector<Tensor>;

struct NodeObject {
  PyObject_HEAD Ref<Node> node;
  PyObject* dict;
  PyObject* weakrefs;
};

PyTypeObject* node_type = nullptr;

Ref<Node>& node_of(PyObject* o) { return reinterpret_cast<NodeObject*>(o)->node; }

void node_dealloc(PyObject* o) {
  auto* self = reinterpret_cast<NodeObject*>(o);
  PyTypeObject* type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  if (self->node && self->node->python == o) self->node->python = nullptr;
  if (self->weakrefs) PyObject_ClearWeakRefs(o);
  Py_CLEAR(self->dict);
  self->node.~Ref();
  type->tp_free(o);
  Py_DECREF(type);
}

int node_traverse(PyObject* o, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<NodeObject*>(o);
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(self->dict);
  return self->node ? visit_owned(*self->node, visit, arg) : 0;
}

int node_clear(PyObject* o) {
  auto* self = reinterpret_cast<NodeObject*>(o);
  Py_CLEAR(self->dict);
  if (self->node) clear_owned(*self->node);
  return 0;
}

// --- attributes

// PyTorch's name() has a prefix for some nodes implemented in C++.
std::string full_name(const Node& node) {
  const std::string name = node.name();
  for (const char* own : {"AccumulateGrad", "CopySlices", "CopyBackwards"})
    if (name == own) return "torch::autograd::" + name;
  return name;
}

PyObject* get_name(PyObject* o, PyObject*) {
  return guarded([&]() -> PyObject* { return check(PyUnicode_FromString(full_name(*node_of(o)).c_str())); });
}

PyObject* sequence_number(PyObject* o, PyObject*) { return PyLong_FromUnsignedLongLong(node_of(o)->sequence()); }

PyObject* next_functions(PyObject* o, void*) {
  return guarded([&]() -> PyObject* {
    const Node& node = *node_of(o);
    nb::list list;
    for (size_t i = 0; i < node.next().size(); ++i)
      if (i >= 64 || (node.shown_edges() >> i & 1))
        list.append(nb::make_tuple(node_object(node.next()[i].node), static_cast<int64_t>(node.next()[i].slot)));
    return nb::tuple(list).release().ptr();
  });
}

PyObject* get_metadata(PyObject* o, void*) {
  nb::object dict = nb::steal(PyObject_GenericGetDict(o, nullptr));
  if (!dict.is_valid()) return nullptr;
  PyObject* key = PyUnicode_InternFromString("_metadata");
  PyObject* made = PyDict_New();
  PyObject* found = key && made ? PyDict_SetDefault(dict.ptr(), key, made) : nullptr;
  Py_XINCREF(found);
  Py_XDECREF(key);
  Py_XDECREF(made);
  return found;
}

PyObject* always(PyObject*, void*) { Py_RETURN_TRUE; }

// Attributes of specific nodes: AccumulateGrad's variable, operators' saved tensors, and a function node's context.
PyObject* get_attribute(PyObject* o, PyObject* name) {
  if (PyObject* found = PyObject_GenericGetAttr(o, name)) return found;
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return nullptr;
  const Ref<Node>& node = node_of(o);
  if (auto* leaf = dynamic_cast<autograd::AccumulateGrad*>(node.get()); leaf && PyUnicode_CompareWithASCIIString(name, "variable") == 0) {
    PyErr_Clear();
    return guarded([&] { return wrap(leaf->variable()); });
  }
  if (const char* const text = PyUnicode_AsUTF8(name)) {
    PyErr_Clear();
    PyObject* found = nullptr;
    if (saved_attribute(node, text, &found)) return found;
    PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute '%s'", node->name().c_str(), text);
  }
  if (auto* function = static_cast<PyObject*>(node->python_object())) {
    PyErr_Clear();
    nb::object context = nb::steal(PyObject_GetAttrString(function, "ctx"));
    return context.is_valid() ? PyObject_GetAttr(context.ptr(), name) : nullptr;
  }
  return nullptr;
}

// --- hooks on nodes

// Calls the user's hook with a node's gradients. The hook may return a tuple of the same length, which replaces them.
void call_node_hook(PyObject* f, const std::string& name, List& grads, const List* others) {
  const GilAcquire gil;
  nb::object given = tuple_of(grads);
  nb::object result = nb::steal(check(others ? call_python(f, {given.ptr(), tuple_of(*others).ptr()}) : call_python(f, {given.ptr()})));
  if (result.is_none()) return;
  if (is_tensor(result.ptr()) && grads.size() == 1) result = nb::make_tuple(result);
  if (!PyTuple_Check(result.ptr())) throw TypeError("expected tuple, but hook returned '{}'", Py_TYPE(result.ptr())->tp_name);
  const auto count = static_cast<size_t>(PyTuple_GET_SIZE(result.ptr()));
  if (count != grads.size())
    throw RuntimeError("hook '{}' has returned an incorrect number of values (got {}, but expected {})", name, count, grads.size());
  for (size_t i = 0; i < count; ++i) {
    PyObject* item = PyTuple_GET_ITEM(result.ptr(), static_cast<Py_ssize_t>(i));
    if (item != Py_None && !is_tensor(item)) throw TypeError("expected Variable, but hook returned '{}'", Py_TYPE(item)->tp_name);
    if (item == Py_None) {
      grads[i] = Tensor();
      continue;
    }
    const Tensor& changed = tensor_of(item);
    if (!grads[i].defined()) throw RuntimeError("can't replace a None gradient with a non-None value");
    autograd::check_hook_result(grads[i], changed, name);
    grads[i] = changed;
  }
}

template <auto Member>
PyObject* add_node_hook(PyObject* o, PyObject* f) {
  return guarded([&]() -> PyObject* {
    if (!PyCallable_Check(f)) throw TypeError("a hook must be callable, got {}", Py_TYPE(f)->tp_name);
    auto& list = node_of(o)->ensure_extras().*Member;
    const std::shared_ptr<PyObject> kept = keep(f);
    std::string name = name_of_callable(f);
    int64_t number = 0;
    if constexpr (std::is_same_v<decltype(Member), decltype(&Node::Extras::before)>)
      number = list->add([kept, name](List& grads) { call_node_hook(kept.get(), name, grads, nullptr); }, 0, name, kept);
    else
      number =
          list->add([kept, name](List& results, const List& grads) { call_node_hook(kept.get(), name, results, &grads); }, 0, name, kept);
    return hook_handle({number, list}).release().ptr();
  });
}

PyMethodDef methods[] = {
    {"name", get_name, METH_NOARGS, "The operator's name, as PyTorch has it."},
    {"_sequence_nr", sequence_number, METH_NOARGS, "A number that grows from node to node."},
    {"register_hook", add_node_hook<&Node::Extras::after>, METH_O,
     "Calls hook(grad_inputs, grad_outputs) after the node has run in backward; a tuple that it returns replaces grad_inputs."},
    {"register_prehook", add_node_hook<&Node::Extras::before>, METH_O,
     "Calls hook(grad_outputs) before the node runs in backward; a tuple that it returns replaces them."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef attributes[] = {{"next_functions", next_functions, nullptr, "The nodes that the gradients of its inputs go to.", nullptr},
                            {"metadata", get_metadata, nullptr, "A dict for whatever the program wants to note.", nullptr},
                            {"requires_grad", always, nullptr, "True.", nullptr},
                            {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(NodeObject, dict), READONLY, nullptr},
                         {"__weaklistoffset__", T_PYSSIZET, offsetof(NodeObject, weakrefs), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

PyObject* node_repr(PyObject* o) {
  return guarded([&]() -> PyObject* {
    return check(PyUnicode_FromFormat("<%s object at %p>", node_of(o)->name().c_str(), static_cast<const void*>(node_of(o).get())));
  });
}

// The Python class for nodes of this name, created at first use.
PyTypeObject* class_of(const std::string& name) {
  static auto* classes = new std::unordered_map<std::string, PyTypeObject*>;
  PyTypeObject*& known = (*classes)[name];
  if (!known) {
    nb::dict body;
    body["__slots__"] = nb::tuple();
    body["__module__"] = "builtins";
    known = reinterpret_cast<PyTypeObject*>(
        check(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "s(O)O", name.c_str(), node_type, body.ptr())));
  }
  return known;
}

// Removes a hook. Does not keep the tensor alive.
struct HookHandle {
  autograd::HookPlace place;
  void remove() {
    if (const auto list = place.list.lock()) list->remove(place.number);
  }
};

}  // namespace

nb::object node_object(const Ref<Node>& node) {
  if (!node) return nb::none();
  if (node->python) return nb::borrow(static_cast<PyObject*>(node->python));
  PyTypeObject* type = class_of(node->name());
  auto* o = reinterpret_cast<NodeObject*>(check(type->tp_alloc(type, 0)));
  new (&o->node) Ref<Node>(node);
  o->dict = o->weakrefs = nullptr;
  node->python = o;
  return nb::steal(reinterpret_cast<PyObject*>(o));
}

Ref<Node> node_from(PyObject* o) { return PyObject_TypeCheck(o, node_type) ? node_of(o) : Ref<Node>(); }

nb::object hook_handle(autograd::HookPlace place) { return nb::cast(HookHandle{std::move(place)}); }

std::string name_of_callable(PyObject* f) {
  nb::object name = nb::steal(PyObject_GetAttrString(f, "__name__"));
  const char* text = name.is_valid() && PyUnicode_Check(name.ptr()) ? PyUnicode_AsUTF8(name.ptr()) : nullptr;
  if (!text) PyErr_Clear();
  return text ? text : "<unknown>";
}

nb::object tuple_of(const List& grads) {
  nb::object tuple = nb::steal(check(PyTuple_New(static_cast<Py_ssize_t>(grads.size()))));
  for (size_t i = 0; i < grads.size(); ++i) PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), check(wrap(grads[i])));
  return tuple;
}

void define_nodes(nb::module_& m) {
  PyType_Slot slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
                         {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
                         {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
                         {Py_tp_getattro, reinterpret_cast<void*>(get_attribute)},
                         {Py_tp_repr, reinterpret_cast<void*>(node_repr)},
                         {Py_tp_methods, methods},
                         {Py_tp_getset, attributes},
                         {Py_tp_members, members},
                         {Py_tp_doc, const_cast<char*>("An operator in the graph that backward walks.")},
                         {0, nullptr}};
  PyType_Spec spec = {"naru._C.Node", sizeof(NodeObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  node_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
  m.attr("Node") = nb::handle(reinterpret_cast<PyObject*>(node_type));
  nb::class_<HookHandle>(m, "HookHandle", "Takes a hook out again.")
      .def("remove", &HookHandle::remove)
      .def_prop_ro("id", [](const HookHandle& h) { return h.place.number; })
      .def("__enter__", [](nb::object self) { return self; })
      .def("__exit__", [](HookHandle& h, nb::args) { h.remove(); });
}

}  // namespace naru::py
