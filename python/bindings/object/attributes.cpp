// Tensor's attributes.
#include <fmt/format.h>

#include <array>

#include "autograd/graph/batch.h"
#include "autograd/history/accumulate.h"
#include "autograd/history/history.h"
#include "core/device_kinds.h"
#include "naru/autograd.h"
#include "naru/ops/complex.h"
#include "naru/ops/functions.h"
#include "naru/ops/sparse.h"
#include "object/overrides.h"
#include "object/tensor_object.h"

namespace naru::py {

PyObject* grad_fn_of(const Tensor& t);  // autograd.cpp

namespace {

template <auto F>
PyObject* get(PyObject* self, void*) {
  return guarded([&]() -> PyObject* { return check(to_python(F(tensor_of(self)))); });
}

// An attribute that is a tensor. Subclasses of Tensor are asked first, as before a call: `__torch_function__` gets the attribute's __get__.
template <auto F>
PyObject* get_tensor(PyObject* self, void* name) {
  return guarded([&]() -> PyObject* {
    if (overrides_watched && Py_TYPE(self) != tensor_type) {
      PyObject* const attribute = PyDict_GetItemString(tensor_type->tp_dict, static_cast<const char*>(name));
      const nb::object getter = nb::steal(check(PyObject_GetAttrString(check(attribute), "__get__")));
      if (PyObject* result = dispatch_torch_function(getter.ptr(), &self, 1, nullptr, false)) return result;
    }
    return check(to_python(F(tensor_of(self))));
  });
}

template <auto F>
int set(PyObject* self, PyObject* value, void*) {
  try {
    F(tensor_of(self), value);
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

PyObject* is_on(PyObject* self, void* kind) {
  return guarded([&] { return PyBool_FromLong(tensor_of(self).device().type == static_cast<const DeviceKind*>(kind)->type); });
}
// is_cpu, is_cuda ...
void add_kinds(std::vector<PyGetSetDef>& list) {
  struct Words {
    std::string name, doc;
  };
  static std::array<Words, kDeviceTypes> words;  // the type keeps pointers into them
  for (const DeviceKind& k : device_kinds()) {
    if (!k.python) continue;
    Words& w = words[static_cast<size_t>(k.type)];
    w = {fmt::format("is_{}", k.python), fmt::format("Whether it lives on a device of kind '{}'.", k.name)};
    list.push_back({w.name.c_str(), is_on, nullptr, attribute_text(w.name.c_str(), w.doc.c_str()), const_cast<DeviceKind*>(&k)});
  }
}
// The tensor itself, or of a tensor of a vmap the value of all entries.
const Tensor& with_history(const Tensor& t) { return is_batched(t) ? with_history(batch_parts(t).value) : t; }
bool never(const Tensor&) { return false; }
Tensor base_of(const Tensor& t) {
  TensorImpl* base = t.impl()->base.get();
  if (base) base->retain();
  return Tensor(base);
}
bool retains(const Tensor& t) {
  const autograd::Meta* m = autograd::meta_of(t);
  return m && m->retains_grad;
}

// Another thread's backward may be accumulating into the grad, and need the GIL to finish. So this must not wait for it while holding the
// GIL.
template <class F>
auto without_waiting(const Tensor& t, F f) {
  const autograd::Meta* m = autograd::meta_of(t);
  const auto* a = m ? static_cast<const autograd::AccumulateGrad*>(m->accumulator.load(std::memory_order_acquire)) : nullptr;
  if (!a || single_threaded()) return f(t);
  if (a->mutex.try_lock()) {
    a->mutex.unlock();
    return f(t);
  }
  const Tensor held = t;
  GilRelease scope;
  return f(held);
}
void set_grad(Tensor& t, PyObject* value) {
  if (!value || value == Py_None) return without_waiting(t, [](Tensor held) { held.set_grad({}); });
  if (!is_tensor(value)) throw TypeError("assigned grad expected to be a Tensor or None but got grad of type {}", Py_TYPE(value)->tp_name);
  if (tensor_of(value).is(t)) throw RuntimeError("can't assign Variable as its own grad");
  without_waiting(t, [g = Tensor(tensor_of(value))](Tensor held) { held.set_grad(g); });
}
void set_requires_grad(Tensor& t, PyObject* value) {
  if (!value || !PyBool_Check(value)) throw RuntimeError("requires_grad must be a bool");
  t.requires_grad_(value == Py_True);
}
// Makes the tensor refer to the other tensor's elements; its history and grad stay. Existing graphs keep the old elements.
int set_data(PyObject* self, PyObject* value, void*) {
  try {
    if (!value) throw RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!");
    if (!is_tensor(value)) throw TypeError("Variable data has to be a tensor, but got {}", Py_TYPE(value)->tp_name);
    if (tensor_of(self).requires_grad() && !is_inexact(tensor_of(value).dtype()))
      throw RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype");
    assign_data(self, Tensor(tensor_of(value)));
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}
// Tracks the tensor, because the grad's Python object may come to refer to it.
PyObject* get_grad(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    if (is_batched(tensor_of(self))) Py_RETURN_NONE;
    const Tensor g = without_waiting(tensor_of(self), [](const Tensor& t) { return t.grad(); });
    if (g.defined())
      track(self);
    else if (const Tensor& t = tensor_of(self); t.requires_grad() && !t.is_leaf() && !retains(t))
      warn_user(
          "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated during "
          "autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the "
          "non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead.");
    return wrap(g);
  });
}
// Tracks the tensor, because a hook on the node may come to refer to it.
PyObject* get_grad_fn(PyObject* self, void*) {
  return guarded([&] {
    PyObject* node = grad_fn_of(with_history(tensor_of(self)));
    if (node != Py_None) track(self);
    return node;
  });
}
int64_t version_of(const Tensor& t) {
  if (t.is_inference()) throw RuntimeError("Inference tensors do not track version counter.");
  return t.version();
}
int64_t output_number(const Tensor& t) {
  if (!t.requires_grad() || t.is_leaf()) return 0;
  return autograd::gradient_edge(t).slot;
}
int64_t bytes_of(const Tensor& t) {
  if (is_sparse(t))
    throw RuntimeError(
        "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add the nbytes of the indices and "
        "values.  If you want the size of the  equivalent dense tensor, multiply numel() by element_size()");
  return t.numel() * static_cast<int64_t>(t.element_size());
}
PyObject* layout_of(const Tensor& t) { return layout_object(layout(t)); }
template <Tensor (*F)(const Tensor&)>
void set_part(Tensor& t, PyObject* value) {
  Arg<Operand> v;
  if (!value || !v.load(&value))
    throw TypeError("the parts of a tensor are assigned tensors or numbers, not {}", value ? Py_TYPE(value)->tp_name : "nothing");
  Tensor part = F(t);
  if (v.get().is_tensor())
    part.copy_(v.get().tensor());
  else
    part.fill_(v.get());
}
PyObject* none(const Tensor&) { return Py_NewRef(Py_None); }

}  // namespace

void add_attributes(std::vector<PyGetSetDef>& list) {
  const auto add = [&](const char* name, getter g, const char* doc, setter s = nullptr) {
    list.push_back({name, g, s, attribute_text(name, doc), const_cast<char*>(name)});
  };
  add("shape", get<[](const Tensor& t) -> const Dims& { return t.sizes(); }>, "The sizes.");
  add("dtype", get<[](const Tensor& t) { return t.dtype(); }>, "The type of the elements.");
  add("device", get<[](const Tensor& t) { return t.device(); }>, "Where the tensor lives.");
  add("ndim", get<[](const Tensor& t) { return t.dim(); }>, "The number of dimensions.");
  add("itemsize", get<[](const Tensor& t) { return static_cast<int64_t>(t.element_size()); }>, "Bytes of one element.");
  add("nbytes", get<bytes_of>, "Bytes of all elements.");
  add("grad", get_grad, "The gradient that backward has added up, or None.", set<set_grad>);
  add("_grad", get_grad, "The same as grad.", set<set_grad>);
  add("requires_grad", get<[](const Tensor& t) { return t.requires_grad(); }>, "Whether history is recorded for it.",
      set<set_requires_grad>);
  add("is_leaf", get<[](const Tensor& t) { return t.is_leaf(); }>, "Whether it is no operator's result with a history.");
  add("grad_fn", get_grad_fn, "The operator it came from, or None.");
  add("retains_grad", get<retains>, "Whether retain_grad() was called.");
  add("data", get_tensor<[](const Tensor& t) { return t.data(); }>,
      "The same elements without history; assigning takes over another tensor's elements.", set_data);
  add("T", get_tensor<numpy_T>, "The dimensions in reverse order.");
  add("mT", get_tensor<mT>, "The last two dimensions exchanged.");
  add("H", get_tensor<matrix_H>, "The transpose of a matrix.");
  add("mH", get_tensor<mH>, "The last two dimensions exchanged, and the elements conjugated.");
  add("real", get_tensor<[](const Tensor& t) { return real(t); }>, "The real parts, a view; of a real tensor itself.",
      set<set_part<&naru::real>>);
  add("imag", get_tensor<[](const Tensor& t) { return imag(t); }>, "The imaginary parts, a view. RuntimeError for a real tensor.",
      set<set_part<&naru::imag>>);
  add_kinds(list);
  for (const char* name : {"is_quantized", "is_nested", "is_mkldnn", "is_hpu", "is_vulkan", "is_ipu", "is_xla"})
    add(name, get<never>, "False.");
  add("is_sparse", get<[](const Tensor& t) { return is_sparse(t); }>, "Whether it is a sparse COO tensor.");
  add("is_sparse_csr", get<[](const Tensor& t) { return is_sparse_csr(t); }>, "Whether it is a sparse CSR tensor.");
  add("layout", get<layout_of>,
      "torch.strided, torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr or torch.sparse_bsc.");
  add("is_meta", get<[](const Tensor& t) { return t.device().is_meta(); }>, "Whether it has a shape and a type but no elements.");
  add("_version", get<version_of>, "How many times the storage was written in place.");
  add("_base", get<base_of>, "The tensor it is a view of, or None.");
  add("output_nr", get<output_number>, "Which output of grad_fn it is.");
  add("name", get<none>, "None.");
  add("_cdata", get<[](const Tensor& t) { return static_cast<int64_t>(reinterpret_cast<intptr_t>(t.impl())); }>,
      "A number of the tensor itself, which Tensor objects may exchange.");
  add("_storage_id", get<[](const Tensor& t) { return static_cast<int64_t>(reinterpret_cast<intptr_t>(t.impl()->storage.get())); }>,
      "A number of the storage, the same for all tensors that share it while it lives.");
  add("_backward_hooks", get<none>, "None.");
}

}  // namespace naru::py
