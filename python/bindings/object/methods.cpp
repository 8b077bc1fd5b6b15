// Tensor's methods that belong to no other family: moving, converting, reading, and miscellaneous ones.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "autograd/graph/node.h"
#include "core/device_kinds.h"
#include "naru/autograd.h"
#include "naru/ops/functions.h"
#include "object/tensor_object.h"
#include "ops/elementwise/rules.h"
#include "ops/tensor/lending.h"
#include "runtime/device/registry.h"

namespace naru::py {
namespace {

using OptDevice = std::optional<Device>;
using OptFormat = std::optional<MemoryFormat>;
constexpr MemoryFormat kKeep = MemoryFormat::Preserve;

void define_moves() {
  def(kMethod, "to", "input, other, non_blocking=False, copy=False, *, memory_format=None", "On other's device and in its dtype.",
      [](const Tensor& t, const Tensor& o, bool non_blocking, bool copy, OptFormat format) {
        return t.to(o.device(), o.dtype(), non_blocking, copy, format.value_or(kKeep));
      });
  def(kMethod, "to", "input, dtype, non_blocking=False, copy=False, *, memory_format=None",
      "Converted; the tensor itself if it has the dtype.", [](const Tensor& t, DType type, bool non_blocking, bool copy, OptFormat format) {
        return t.to(OptDevice(), type, non_blocking, copy, format.value_or(kKeep));
      });
  def(kMethod, "to", "input, device=None, dtype=None, non_blocking=False, copy=False, *, memory_format=None",
      "On a device and in a dtype; the tensor itself where nothing changes, unless copy.",
      [](const Tensor& t, OptDevice device, OptType type, bool non_blocking, bool copy, OptFormat format) {
        return t.to(device, type, non_blocking, copy, format.value_or(kKeep));
      });
  def(kMethod, "cpu", "input, memory_format=None", "On the cpu; the tensor itself if it is there.",
      [](const Tensor& t, OptFormat format) { return t.to(Device(DeviceType::Cpu), {}, false, false, format.value_or(kKeep)); });
  const auto mover = [](DeviceType kind) {
    return [kind](const Tensor& t, OptDevice device, bool non_blocking, OptFormat format) {
      if (device && device->type != kind) throw RuntimeError("Invalid device, must be {} device, got {}", name_of(kind), device->str());
      return t.to(device ? *device : Device(kind), {}, non_blocking, false, format.value_or(kKeep));
    };
  };
  for (const DeviceKind& k : accelerator_kinds())
    if (k.python)
      def(kMethod, k.python, "input, device=None, non_blocking=False, memory_format=None",
          "On a device of this kind, the current one unless named.", mover(k.type));
  constexpr std::pair<const char*, DType> kTypes[] = {
      {"float", DType::F32}, {"double", DType::F64}, {"half", DType::F16},    {"bfloat16", DType::BF16}, {"int", DType::I32},
      {"long", DType::I64},  {"short", DType::I16},  {"char", DType::I8},     {"byte", DType::U8},       {"bool", DType::Bool},
      {"chalf", kComplex32}, {"cfloat", kComplex64}, {"cdouble", kComplex128}};
  for (auto [name, type] : kTypes)
    def(kMethod, name, "input, memory_format=None", "Converted to this dtype; the tensor itself if it has it.",
        [type = type](const Tensor& t, OptFormat format) { return t.to(OptDevice(), type, false, false, format.value_or(kKeep)); });
  def(kMethod, "type_as", "input, other", "On other's device and in its dtype.",
      [](const Tensor& t, const Tensor& o) { return t.to(o.device(), o.dtype(), false, false); });
  def(kBoth, "clone", "input, *, memory_format=None", "A copy, in memory as the tensor lies, or in a format.",
      [](const Tensor& t, OptFormat format) { return t.clone(format.value_or(kKeep)); });
  def(kMethod, "contiguous", "input, memory_format=None", "Dense in row-major order, or in a format: the tensor itself, or a copy.",
      [](const Tensor& t, OptFormat format) { return t.contiguous(format.value_or(MemoryFormat::Contiguous)); });
  def(kBoth, "detach", "input", "The same elements without history.", [](const Tensor& t) { return t.detach(); });
  def(kMethod, "_is_view", "input", "Whether it shares the elements of another tensor.",
      [](const Tensor& t) { return static_cast<bool>(t.impl()->base); });
  def(kMethod, "detach_", "input", "Cuts the tensor off from its history.", [](const Tensor& t) {
    if (t.impl()->base)
      throw RuntimeError(
          "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and "
          "gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on these "
          "gradients. (detach_: a view of shape {})",
          t.sizes().str());
    Tensor(t).detach_();
    return Self();
  });
}

void define_writes() {
  def(kMethod, "copy_", "input, src, non_blocking=False", "Writes src's elements, converted and broadcast; from any device.",
      [](const Tensor& t, const Tensor& src, bool non_blocking) {
        Tensor(t).copy_(src, non_blocking);
        return Self();
      });
  def(kMethod, "copy_", "input, other, non_blocking=False", "Writes a number.", [](const Tensor& t, const Operand& other, Ignored) {
    Tensor(t).fill_(other);
    return Self();
  });
  def(kBoth, "fill_", "input, value", "Writes one value everywhere.", [](const Tensor& t, const Operand& value) {
    Tensor(t).fill_(value);
    return Self();
  });
  def(kBoth, "fill", "input, value", "A copy with one value everywhere.",
      [](const Tensor& t, const Operand& value) { return fill(t, value); });
  def(kBoth, "zero_", "input", "Writes 0 everywhere.", [](const Tensor& t) {
    Tensor(t).zero_();
    return Self();
  });
  def(kMethod, "fill_diagonal_", "input, fill_value, wrap=False", "Writes a value to the diagonal.",
      [](const Tensor& t, const Operand& value, bool wrap) {
        fill_diagonal_(t, value, wrap);
        return Self();
      });
  def(kMethod, "tril_", "input, diagonal=0", "The lower triangle, in place.", [](const Tensor& t, int64_t k) {
    tril_(t, k);
    return Self();
  });
  def(kMethod, "triu_", "input, diagonal=0", "The upper triangle, in place.", [](const Tensor& t, int64_t k) {
    triu_(t, k);
    return Self();
  });
  def(kMethod, "cumsum_", "input, dim, *, dtype=None", "Cumulative sums, in place.",
      [](const Tensor& t, int64_t dim, std::optional<DType> dtype) {
        if (dtype && *dtype != t.dtype())
          throw RuntimeError("provided dtype must match dtype of self tensor in cumsum_. Got {} and {}.", name_of(t.dtype()),
                             name_of(*dtype));
        cumsum_(t, dim);
        return Self();
      });
  def(kMethod, "pin_memory", "input, device=None", "A copy in page-locked memory; the tensor itself if it is there.",
      [](const Tensor& t, Ignored) { return t.pin_memory(); });
  def(kMethod, "is_pinned", "input, device=None", "Whether it lies in page-locked memory.",
      [](const Tensor& t, Ignored) { return t.is_pinned(); });
}

void define_reads() {
  def(kMethod, "item", "input", "The one element as a Python number. RuntimeError unless there is exactly one.",
      [](const Tensor& t) -> PyObject* { return scalar_object(item_of(t)); });
  def(kMethod, "tolist", "input", "The elements as nested lists; a number where there are no dimensions.",
      [](const Tensor& t) -> PyObject* { return tolist(t); });
  const auto array = [](const Tensor& t) {
    if (grad_enabled() && t.requires_grad())
      throw RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
    return array_from(t);
  };
  def(kMethod, "numpy", "input, *, force=False",
      "An array over the same memory. TypeError unless the tensor is on the cpu; force copies what must be. Where the host uses the "
      "device's memory, the array is "
      "over it once the device has done its work; wait for later work (`synchronize`) before you read what it writes.",
      [array](const Tensor& t, bool force) -> PyObject* {
        if (!force) return array(t);
        Tensor shared;
        {
          const GilRelease no_gil;  // it waits for the device
          shared = ops::seen_by_host(t);
        }
        return array_from(shared.defined() ? shared : t.detach().cpu());
      });
  def(kMethod, "__array__", "input, dtype=None, copy=None", "An array, for NumPy.",
      [array](const Tensor& t, PyObject* dtype, PyObject* copy) -> PyObject* {
        nb::object a = nb::steal(array(t));
        if (dtype != Py_None)
          a = a.attr("astype")(nb::handle(dtype), nb::arg("copy") = copy == Py_True);
        else if (copy == Py_True)
          a = a.attr("copy")();
        return a.release().ptr();
      });
  def(kMethod, "__array_wrap__", "input, array, context=None, return_scalar=False", "A tensor of what NumPy computed.",
      [](const Tensor&, PyObject* array, Ignored, Ignored) -> PyObject* {
        return wrap(tensor_from(array, std::nullopt, Device(DeviceType::Cpu), true));
      });
  def(kMethod, "__reversed__", "input", "Along the first dimension, from the end.",
      [](const Tensor& t) { return t.dim() ? flip(t, {0}) : t; });
  def(kMethod, "data_ptr", "input", "The address of the first element, on its device.",
      [](const Tensor& t) { return static_cast<int64_t>(reinterpret_cast<uintptr_t>(ops::address_for_others(t))); });
  def(kFunction, "_address", "input", "data_ptr(), only to be compared with other addresses: pending work is not waited for.",
      [](const Tensor& t) { return t.device().is_meta() ? int64_t{0} : static_cast<int64_t>(reinterpret_cast<uintptr_t>(t.data_ptr())); });
  def(kBoth, "is_nonzero", "input", "Whether the one element is not 0.", [](const Tensor& t) { return is_nonzero(t); });
}

// Converts a Python function's result to an element, with the messages of Python's own conversions. Steals the reference.
PyObject* element_from(PyObject* made, DType type) {
  nb::object held = nb::steal(check(made));
  if (is_complex(type) || type == DType::Bool) return held.release().ptr();
  if (!is_floating(type)) return check(PyFloat_Check(made) ? PyNumber_Long(made) : PyNumber_Index(made));
  const double value = PyFloat_AsDouble(made);
  if (value == -1 && PyErr_Occurred()) nb::raise_python_error();
  return check(PyFloat_FromDouble(value));
}

// Applies a Python function to each element.
void map_elements(const char* name, const Tensor& t, PyObject* f, std::initializer_list<const Tensor*> others) {
  bool needs_grad = t.requires_grad();
  for (const Tensor* other : others) {
    needs_grad = needs_grad || other->requires_grad();
    if (other->device() != t.device())
      throw RuntimeError("Expected all tensors to be on the same device, but found at least two devices, {} and {}! ({})", t.device().str(),
                         other->device().str(), name);
    if (other->dtype() != t.dtype())
      throw TypeError("{}: expected tensors of dtype torch.{} (got torch.{}); convert them with .to()", name, name_of(t.dtype()),
                      name_of(other->dtype()));
  }
  if (needs_grad) throw RuntimeError("Can't call {0}() on Variable that requires grad. Use var.detach().{0}() instead.", name);
  if (t.device().is_meta()) return;
  if (!t.device().is_cpu()) throw TypeError("{} is only implemented on CPU tensors, got {}", name, t.device().str());
  std::vector<nb::object> lists;
  const auto add = [&](const Tensor& x) { lists.push_back(nb::steal(check(tolist(x.contiguous().reshape({-1}))))); };
  add(t);
  for (const Tensor* other : others) add(broadcast_to(*other, t.sizes()));
  PyObject* values = lists[0].ptr();
  std::vector<PyObject*> each(lists.size());
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values); ++i) {
    for (size_t k = 0; k < lists.size(); ++k) each[k] = PyList_GET_ITEM(lists[k].ptr(), i);
    PyList_SetItem(values, i, element_from(PyObject_Vectorcall(f, each.data(), each.size(), nullptr), t.dtype()));
  }
  Tensor(t).copy_(tensor_from(values, t.dtype(), Device(DeviceType::Cpu)).reshape(t.sizes()));
}

void define_maps() {
  def(kMethod, "apply_", "input, callable", "Replaces each element by what a Python function makes of it. Slow.",
      [](const Tensor& t, PyObject* f) {
        map_elements("apply_", t, f, {});
        return Self();
      });
  def(kMethod, "map_", "input, tensor, callable",
      "Replaces each element by what a Python function makes of it and of another tensor's. Slow.",
      [](const Tensor& t, const Tensor& other, PyObject* f) {
        map_elements("map_", t, f, {&other});
        return Self();
      });
  def(kMethod, "map2_", "input, x, y, callable",
      "Replaces each element by what a Python function makes of it and of the elements of x and y. Slow.",
      [](const Tensor& t, const Tensor& x, const Tensor& y, PyObject* f) {
        map_elements("map2_", t, f, {&x, &y});
        return Self();
      });
}

void define_geometry() {
  def(kMethod, "size", "input, dim=None", "The sizes, or that of one dimension.",
      [](const Tensor& t, OptInt dim) -> PyObject* { return dim ? PyLong_FromLongLong(t.size(*dim)) : size_object(t.sizes()); });
  def(kMethod, "stride", "input, dim=None", "The strides in elements, or that of one dimension.",
      [](const Tensor& t, OptInt dim) -> PyObject* {
        const Dims& s = t.strides();
        if (dim) return PyLong_FromLongLong(s[static_cast<size_t>(wrap_dim(*dim, t.dim()))]);
        PyObject* tuple = check(PyTuple_New(static_cast<Py_ssize_t>(s.size())));
        for (size_t i = 0; i < s.size(); ++i) PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(s[i]));
        return tuple;
      });
  for (const char* name : {"dim", "ndimension"})
    def(kMethod, name, "input", "The number of dimensions.", [](const Tensor& t) { return t.dim(); });
  def(kBoth, "numel", "input", "The number of elements.", [](const Tensor& t) { return t.numel(); });
  def(kMethod, "nelement", "input", "The number of elements.", [](const Tensor& t) { return t.numel(); });
  def(kMethod, "storage_offset", "input", "Where in its storage the tensor begins, in elements.",
      [](const Tensor& t) { return t.storage_offset(); });
  def(kMethod, "element_size", "input", "Bytes of one element.", [](const Tensor& t) { return static_cast<int64_t>(t.element_size()); });
  def(kMethod, "is_contiguous", "input, memory_format=None", "Whether it is dense in row-major order, or in a format.",
      [](const Tensor& t, OptFormat format) { return t.is_contiguous(format.value_or(MemoryFormat::Contiguous)); });
  def(kBoth, "is_floating_point", "input", "Whether the dtype is floating point.", [](const Tensor& t) { return is_floating(t.dtype()); });
  def(kBoth, "is_complex", "input", "Whether the dtype is complex.", [](const Tensor& t) { return is_complex(t.dtype()); });
  def(kBoth, "is_signed", "input", "Whether the dtype has negative numbers.", [](const Tensor& t) { return is_signed(t.dtype()); });
  def(kBoth, "is_same_size", "input, other", "Whether the shapes are equal.",
      [](const Tensor& a, const Tensor& b) { return a.sizes() == b.sizes(); });
  def(kMethod, "is_set_to", "input, tensor", "Whether both are the same view of the same storage.", [](const Tensor& a, const Tensor& b) {
    return a.impl()->storage == b.impl()->storage && a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() &&
           a.strides() == b.strides();
  });
  def(kMethod, "get_device", "input", "The device's index; -1 on the cpu and on meta.",
      [](const Tensor& t) { return int64_t{t.device().is_cpu() || t.device().is_meta() ? -1 : t.device().index}; });
  for (const char* name : {"coalesce", "to_dense"}) def(kMethod, name, "input", "The tensor itself.", [](const Tensor&) { return Self(); });
  def(kFunction, "result_type", "tensor1, tensor2", "The type that an operator over both gives.", [](const Operand& a, const Operand& b) {
    const Operand operands[] = {a, b};
    return ops::result_type(operands);
  });
}

void define_gradients() {
  def(kMethod, "requires_grad_", "input, requires_grad=True", "Says whether history is recorded for it.", [](const Tensor& t, bool on) {
    Tensor(t).requires_grad_(on);
    return Self();
  });
  def(kMethod, "retain_grad", "input", "Keeps the gradient although it is no leaf.", [](const Tensor& t) { t.retain_grad(); });
  def(kStatic, "_make_subclass", "cls, data, require_grad=False",
      "An object of a subclass of Tensor over data's elements, without its history.",
      [](PyObject* cls, const Tensor& data, bool requires_grad) -> PyObject* {
        if (!PyType_Check(cls) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), tensor_type))
          throw TypeError("cls must be a subclass of Tensor, got {}", Py_TYPE(cls)->tp_name);
        Tensor t = data.detach();
        if (requires_grad) {
          if (!is_inexact(t.dtype())) throw RuntimeError("Only Tensors of floating point and complex dtype can require gradients");
          t.requires_grad_();
        }
        return wrap_as(reinterpret_cast<PyTypeObject*>(cls), t);
      });
  def(kMethod, "_use_count", "input", "How many refer to the tensor: its object, what saved it, and a graph that leads to it.",
      [](PyObject* o) {
        if (!is_tensor(o)) throw TypeError("_use_count(): expected a Tensor, got {}", Py_TYPE(o)->tp_name);
        const Tensor& t = tensor_of(o);
        const autograd::Meta* m = autograd::meta_of(t);
        const autograd::LeafNode* accumulator = m ? m->accumulator.load(std::memory_order_acquire) : nullptr;
        return static_cast<int64_t>(t.impl()->use_count()) + (accumulator && accumulator->use_count() > 1);
      });
  def(kFunction, "_swap_tensor_impl", "t1, t2", "Exchanges the tensors that two objects stand for: elements, gradient and history.",
      [](PyObject* a, PyObject* b) -> PyObject* {
        if (!is_tensor(a) || !is_tensor(b))
          throw TypeError("swap_tensors(): expected two tensors, got {} and {}", Py_TYPE(a)->tp_name, Py_TYPE(b)->tp_name);
        auto &x = reinterpret_cast<TensorObject*>(a)->tensor, &y = reinterpret_cast<TensorObject*>(b)->tensor;
        std::swap(x, y);
        x.impl()->python = a;
        y.impl()->python = b;
        for (PyObject* o : {a, b}) track(o);
        Py_RETURN_NONE;
      });
  def(kMethod, "as_subclass", "input, cls", "The same elements as an object of a subclass.",
      [](const Tensor& t, PyObject* cls) -> PyObject* {
        if (!PyType_Check(cls) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), tensor_type))
          throw TypeError("as_subclass(): cls must be a subclass of Tensor");
        return wrap_as(reinterpret_cast<PyTypeObject*>(cls), t.view(t.sizes()));
      });
}

}  // namespace

void define_methods() {
  define_moves();
  define_writes();
  define_reads();
  define_maps();
  define_geometry();
  define_gradients();
  nb::object type = nb::borrow(reinterpret_cast<PyObject*>(tensor_type));
  check(PyObject_SetAttrString(type.ptr(), "__array_priority__", nb::int_(1000).ptr()));
}

}  // namespace naru::py
