// naru.Tensor: the Python type, its lifetime, and the mapping from tensors to their Python objects.
#include "object/tensor_object.h"

#include <structmember.h>

#include <mutex>

#include "autograd/graph/cycles.h"
#include "autograd/history/accumulate.h"
#include "object/collect.h"

namespace naru::py {

PyTypeObject* tensor_type = nullptr;
PyObject* out_of_memory_error = nullptr;
PyObject* device_unavailable_error = nullptr;
PyObject* device_lost_error = nullptr;
PyObject* linalg_error = nullptr;
PyObject* no_batching_rule = nullptr;
PyObject* written_without_batch = nullptr;
PyObject* (*class_of_error)(const Error&) = nullptr;

namespace {

// Free list: memory of destroyed plain tensors, reused for new ones.
constexpr int kKept = 128;
PyObject* kept[kKept];
int kept_count = 0;

// The garbage collector tracks a plain tensor only once it has attributes, hooks, or anything else that may own Python objects; before that
// it can't be part of a reference cycle.
PyObject* new_plain() {
  if (kept_count > 0) return PyObject_Init(kept[--kept_count], tensor_type);
  return reinterpret_cast<PyObject*>(PyObject_GC_New(TensorObject, tensor_type));
}

PyObject* make(PyTypeObject* type, const Tensor& t) {
  PyObject* o = type == tensor_type ? new_plain() : type->tp_alloc(type, 0);
  auto* self = reinterpret_cast<TensorObject*>(check(o));
  new (&self->tensor) Tensor(t);
  self->dict = nullptr;
  self->weakrefs = nullptr;
  self->owned_by_tensor = false;
  t.impl()->python = o;
  return o;
}

// Reverses ownership. If an object has attributes and only C++ still references its tensor, the tensor keeps the object alive, so that it
// still has its attributes when it returns to Python: x.grad.tag = 1; x.grad.tag.
bool transfer_ownership_to_tensor(TensorObject* self) {
  TensorImpl* impl = self->tensor.impl();
  auto* o = reinterpret_cast<PyObject*>(self);
  const bool plain = Py_TYPE(o) == tensor_type && (!self->dict || PyDict_GET_SIZE(self->dict) == 0);
  if (plain || impl->python != o || impl->use_count() == 1) return false;
  Py_INCREF(o);
  self->owned_by_tensor = impl->owns_python = true;
  impl->release();
  return true;
}

void reclaim_ownership(TensorObject* self) {
  TensorImpl* impl = self->tensor.impl();
  impl->retain();
  self->owned_by_tensor = impl->owns_python = false;
}

void tensor_dealloc(PyObject* o) {
  auto* self = reinterpret_cast<TensorObject*>(o);
  PyTypeObject* type = Py_TYPE(o);
  if (self->tensor.defined()) {  // skipped for tensors without history or attributes
    if (self->tensor.impl()->autograd && !self->owned_by_tensor) autograd::free_isolated(self->tensor);
    if ((type != tensor_type || self->dict) && transfer_ownership_to_tensor(self)) return;
  }
  if (PyObject_GC_IsTracked(o)) PyObject_GC_UnTrack(o);
  if (self->tensor.defined() && self->tensor.impl()->python == o) self->tensor.impl()->python = nullptr;
  if (self->weakrefs) PyObject_ClearWeakRefs(o);
  Py_CLEAR(self->dict);
  self->tensor.~Tensor();
  if (type == tensor_type && kept_count < kKept)
    kept[kept_count++] = o;
  else
    type->tp_free(o);
  Py_DECREF(type);
}

int tensor_traverse(PyObject* o, visitproc visit, void* arg) {
  auto* self = reinterpret_cast<TensorObject*>(o);
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(self->dict);
  return self->owned_by_tensor ? 0 : visit_owned(self->tensor, visit, arg);
}

int tensor_clear(PyObject* o) {
  auto* self = reinterpret_cast<TensorObject*>(o);
  Py_CLEAR(self->dict);
  if (!self->owned_by_tensor) clear_owned(self->tensor);
  return 0;
}

int tensor_setattr(PyObject* o, PyObject* name, PyObject* value) {
  const int status = PyObject_GenericSetAttr(o, name, value);
  if (reinterpret_cast<TensorObject*>(o)->dict) track(o);
  return status;
}

PyObject* get_dict(PyObject* o, void* closure) {
  PyObject* dict = PyObject_GenericGetDict(o, closure);
  if (dict) track(o);
  return dict;
}

int set_dict(PyObject* o, PyObject* value, void* closure) {
  const int status = PyObject_GenericSetDict(o, value, closure);
  if (status == 0) track(o);
  return status;
}

PyMemberDef members[] = {{"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
                         {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weakrefs), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

// The legacy constructor, in the default dtype: Tensor(), Tensor(2, 3), Tensor([1, 2]), Tensor(other).
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    std::optional<Device> device;
    bool requires_grad = false;
    if (kwargs) {
      PyObject *key, *value;
      Py_ssize_t at = 0;
      while (PyDict_Next(kwargs, &at, &key, &value)) {
        Device d;
        if (PyUnicode_CompareWithASCIIString(key, "device") == 0 && (value == Py_None || device_from(value, d))) {
          if (value != Py_None) device = d;
        } else if (PyUnicode_CompareWithASCIIString(key, "requires_grad") == 0 && PyBool_Check(value)) {
          requires_grad = value == Py_True;
        } else {
          throw TypeError("new() got an unexpected keyword argument '{}'", printable(key));
        }
      }
    }
    Tensor t = legacy_tensor(default_dtype(), device, args);
    if (requires_grad) t.requires_grad_();
    return make(type, t);
  });
}

int tensor_init(PyObject*, PyObject*, PyObject*) { return 0; }

// Tensors are hashed by identity; as in PyTorch, the hash is id().
Py_hash_t tensor_hash(PyObject* o) {
  const auto h = static_cast<Py_hash_t>(reinterpret_cast<intptr_t>(o));
  return h == -1 ? -2 : h;
}

}  // namespace

void give_up(void* object) noexcept {
  call_with_gil(
      [](void* p) {
        auto* self = static_cast<TensorObject*>(p);
        new (&self->tensor) Tensor();
        self->owned_by_tensor = false;
        Py_DECREF(static_cast<PyObject*>(p));
      },
      object);
}

PyObject* wrap(const Tensor& t) {
  if (!t.defined()) Py_RETURN_NONE;
  if (auto* known = static_cast<PyObject*>(t.impl()->python)) {
    if (!t.impl()->owns_python) [[likely]]
      return Py_NewRef(known);
    reclaim_ownership(reinterpret_cast<TensorObject*>(known));
    return known;  // with the reference that the tensor held
  }
  return make(tensor_type, t);
}

PyObject* wrap_as(PyTypeObject* type, const Tensor& t) { return make(type, t); }

void track(PyObject* tensor) {
  if (!PyObject_GC_IsTracked(tensor)) PyObject_GC_Track(tensor);
}

void assign_data(PyObject* o, const Tensor& source) {
  nb::object keep = nb::borrow(o);
  auto* self = reinterpret_cast<TensorObject*>(o);
  if (self->owned_by_tensor) {
    reclaim_ownership(self);
    Py_DECREF(o);
  }
  Tensor made = autograd::take_over(self->tensor, source);
  self->tensor.impl()->python = nullptr;
  made.impl()->python = o;
  std::swap(self->tensor, made);
}

void make_tensor_type(nb::module_& m) {
  static std::vector<PyGetSetDef> getset;
  getset.push_back({"__dict__", get_dict, set_dict, nullptr, nullptr});
  add_attributes(getset);
  getset.push_back({nullptr, nullptr, nullptr, nullptr, nullptr});

  std::vector<PyType_Slot> slots = {
      {Py_tp_dealloc, reinterpret_cast<void*>(tensor_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(tensor_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(tensor_clear)},
      {Py_tp_new, reinterpret_cast<void*>(tensor_new)},
      {Py_tp_init, reinterpret_cast<void*>(tensor_init)},
      {Py_tp_setattro, reinterpret_cast<void*>(tensor_setattr)},
      {Py_tp_members, members},
      {Py_tp_getset, getset.data()},
      {Py_tp_hash, reinterpret_cast<void*>(tensor_hash)},
      {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
      {Py_tp_doc, const_cast<char*>("An n-dimensional array of one dtype that lives on exactly one device.")}};
  add_number_slots(slots);
  add_index_slots(slots);
  add_print_slots(slots);
  slots.push_back({0, nullptr});
  PyType_Spec spec = {"naru.Tensor", sizeof(TensorObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
  tensor_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
  tensor_type->tp_name = "Tensor";  // for messages; __module__ and __qualname__ are already set
  m.attr("Tensor") = nb::handle(reinterpret_cast<PyObject*>(tensor_type));
}

Tensor legacy_tensor(DType dtype, std::optional<Device> device, PyObject* args) {
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  const Options options = [&] {
    Options o(dtype);
    o.device = device;
    return o;
  }();
  if (n == 0) return empty({0}, options);
  PyObject* first = PyTuple_GET_ITEM(args, 0);
  if (n == 1 && is_tensor(first)) {
    const Tensor& t = tensor_of(first);
    if (t.dtype() != dtype)
      throw TypeError("expected {} (got {}); convert the tensor with .to(torch.{})", name_of(dtype), name_of(t.dtype()), name_of(dtype));
    return t.detach();
  }
  if (n == 1 && Py_TYPE(first) == size_type) {
    Dims sizes;
    dims_from(first, sizes);
    return empty(sizes, options);
  }
  Dims sizes;
  if (dims_from(args, sizes)) return empty(sizes, options);
  if (n > 1) {
    std::string got;
    for (Py_ssize_t i = 0; i < n; ++i) got += fmt::format("{}{}", i ? ", " : "", Py_TYPE(PyTuple_GET_ITEM(args, i))->tp_name);
    throw TypeError("new() received an invalid combination of arguments - got ({}); wanted sizes, a sequence, a tensor or a storage", got);
  }
  if (PyUnicode_Check(first)) throw TypeError("new(): invalid data type 'str'");
  if (PySequence_Check(first) || is_array(first) || PyObject_HasAttrString(first, "_untyped_storage"))
    return tensor_from(first, dtype, device);
  throw TypeError("new(): data must be a sequence (got {})", Py_TYPE(first)->tp_name);
}

}  // namespace naru::py
