// Python's storage classes: the memory that a tensor and its views share, as bytes (UntypedStorage) or as elements (TypedStorage).
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "naru/ops/functions.h"
#include "object/tensor_object.h"
#include "ops/tensor/common.h"
#include "ops/tensor/lending.h"
#include "ops/tensor/type_names.h"

namespace naru::py {
namespace {

struct Untyped {
  Tensor bytes;
  Tensor own;  // the same memory with the dtype of the tensor it came from
};
struct Typed {
  Tensor elements;
};
const Tensor& vector_of(const Untyped& s) { return s.bytes; }
const Tensor& vector_of(const Typed& s) { return s.elements; }
const Tensor& own_of(const Untyped& s) { return s.own; }
const Tensor& own_of(const Typed& s) { return s.elements; }
Untyped untyped_of(const Tensor& t) { return {ops::whole_storage(t, DType::U8), ops::whole_storage(t, t.dtype())}; }

Untyped make_again(const Untyped& s) { return {ops::whole_storage(s.bytes, DType::U8), ops::whole_storage(s.own, s.own.dtype())}; }
Typed make_again(const Typed& s) { return {ops::whole_storage(s.elements, s.elements.dtype())}; }

// Shrinking is refused, because tensors that use the storage would extend past its end.
void resize_storage(const Tensor& vector, int64_t size) {
  if (size < 0) throw RuntimeError("resize_: wanted a size of at least 0, got {}", size);
  if (size < vector.numel() && !vector.device().is_meta())
    throw NotImplementedError("resize_: a storage does not become smaller (wanted {} elements, it has {}); clone() the part that is needed",
                              size, vector.numel());
  if (vector.device().is_meta())
    vector.impl()->storage->bytes = static_cast<size_t>(size) * size_of(vector.dtype());
  else
    ops::grow_storage(vector, size);
}

// --- the classes

int64_t place_of(int64_t i, int64_t n) {
  if (i < -n || i >= n) throw IndexError("index {} is out of range for a storage of size {}", i, n);
  return i < 0 ? i + n : i;
}

template <class S>
void define_class(nb::class_<S>& c, S (*make)(const Tensor&), const char* reader) {
  const auto vector = [](const S& s) -> const Tensor& { return vector_of(s); };
  // Python parses the arguments and makes a vector of them.
  c.def("__init__",
        [make, reader](S* self, const nb::args& args, const nb::kwargs& options) {
          const nb::object made = nb::module_::import_("naru._storage_methods").attr(reader)(*args, **options);
          new (self) S(make(tensor_of(made.ptr())));
        })
      .def("data_ptr",
           [vector](const S& s) -> uintptr_t {
             const Tensor& t = vector(s);
             if (t.device().is_meta()) return 0;
             GilRelease scope;
             return reinterpret_cast<uintptr_t>(t.device().is_cpu() ? t.data_ptr() : ops::address_for_others(t));
           })
      .def("nbytes", [vector](const S& s) { return vector(s).impl()->storage->bytes; })
      .def("size", [vector](const S& s) { return vector(s).numel(); })
      .def("__len__", [vector](const S& s) { return vector(s).numel(); })
      .def("element_size", [vector](const S& s) { return vector(s).element_size(); })
      .def("__iter__", [vector](const S& s) { return nb::iter(nb::steal(tolist(vector(s)))); })
      .def("__getitem__",
           [vector](const S& s, int64_t i) { return nb::steal(scalar_object(item_of(vector(s)[place_of(i, vector(s).numel())]))); })
      .def("__setitem__",
           [vector](const S& s, int64_t i, nb::object value) {
             Scalar number;
             if (!scalar_from(value.ptr(), number)) throw TypeError("a storage holds numbers, not {}", Py_TYPE(value.ptr())->tp_name);
             vector(s)[place_of(i, vector(s).numel())].fill_(Operand(number));
           })
      .def("_tensor", [](const S& s) { return wrapped(own_of(s)); })  // the source of copies in python/naru/_tensor.py
      .def("__sizeof__", [vector](const S& s) { return sizeof(S) + vector(s).impl()->storage->bytes; })
      .def("resizable", [vector](const S& s) { return vector(s).impl()->storage->resizable; })
      .def("is_shared", [vector](const S& s) { return ops::is_in_shared_memory(vector(s)); })
      .def("share_memory_",
           [vector](nb::object self) {
             share_memory_(vector(nb::cast<const S&>(self)));
             return self;
           })
      .def(
          "resize_",
          [vector](nb::object self, int64_t size) {
            S& s = nb::cast<S&>(self);
            resize_storage(vector(s), size);
            s = make_again(s);
            return self;
          },
          nb::arg("size"))
      .def_prop_ro("device", [vector](const S& s) { return nb::steal(device_object(vector(s).device())); });
}

}  // namespace

template <>
struct Arg<Untyped> {
  static constexpr const char* kName = "Storage";
  static constexpr const char* kHint = "UntypedStorage | TypedStorage";
  std::optional<Tensor> bytes;
  bool typed = false;
  bool load(PyObject* const* o) {
    if (nb::isinstance<Untyped>(nb::handle(*o)))
      bytes = nb::cast<const Untyped&>(nb::handle(*o)).bytes;
    else if (nb::isinstance<Typed>(nb::handle(*o)))
      bytes = nb::cast<const Typed&>(nb::handle(*o)).elements, typed = true;
    return bytes.has_value();
  }
  Untyped get() { return {*bytes, typed ? Tensor() : *bytes}; }  // a TypedStorage fits only its own dtype
};

namespace {

void define_set() {
  def(kMethod, "set_", "input, source", "Takes over another tensor's elements.", [](const Tensor& t, const Tensor& from) {
    set_(t, from);
    return Self();
  });
  def(kMethod, "set_", "input, source, storage_offset=0, size=None, stride=None",
      "A view of a storage: of all of it, or by sizes and strides.",
      [](const Tensor& t, const Untyped& source, int64_t offset, const std::optional<Dims>& size, const std::optional<Dims>& stride) {
        if (!source.own.defined() && source.bytes.dtype() != t.dtype())
          throw RuntimeError("Expected a Storage of type {} or an UntypedStorage, but got type {} for argument 1 'storage'",
                             ops::torch_name(t.dtype()), ops::torch_name(source.bytes.dtype()));
        const Tensor all = ops::whole_storage(source.bytes, t.dtype());
        if (!size && offset < 0) throw RuntimeError("Tensor: invalid storage offset {}", offset);
        const Dims sizes = size.value_or(Dims{std::max<int64_t>(all.numel() - offset, 0)});
        set_(t, all.as_strided(sizes, stride.value_or(contiguous_strides(sizes)), offset));
        return Self();
      });
  def(kMethod, "set_", "input", "Takes over no elements.", [](const Tensor& t) {
    set_(t, empty({0}, Options(t.dtype(), t.device())));
    return Self();
  });
}

}  // namespace

void define_storage(nb::module_& m) {
  nb::class_<Untyped> untyped(m, "UntypedStorage", "The memory that a tensor and its views share, as bytes.", nb::dynamic_attr(),
                              nb::is_weak_referenceable());
  define_class<Untyped>(untyped, untyped_of, "untyped_vector");
  untyped.def("untyped", [](nb::object self) { return self; });
  nb::class_<Typed> typed(m, "TypedStorage", "The memory that a tensor and its views share, as elements.", nb::dynamic_attr(),
                          nb::is_weak_referenceable());
  define_class<Typed>(
      typed, [](const Tensor& t) { return Typed{ops::whole_storage(t, t.dtype())}; }, "typed_vector");
  typed.def("untyped", [](const Typed& s) { return untyped_of(s.elements); }).def_prop_ro("dtype", [](const Typed& s) {
    return nb::steal(dtype_object(s.elements.dtype()));
  });
  def(kMethod, "untyped_storage", "input", "The storage, with data_ptr() and nbytes(), in bytes.",
      [](const Tensor& t) -> PyObject* { return nb::cast(untyped_of(t)).release().ptr(); });
  def(kMethod, "storage", "input", "The storage, with data_ptr() and nbytes(), its size in elements.",
      [](const Tensor& t) -> PyObject* { return nb::cast(Typed{ops::whole_storage(t, t.dtype())}).release().ptr(); });
  def(kMethod, "share_memory_", "input", "Moves the elements into memory that processes forked from here on share.", [](const Tensor& t) {
    share_memory_(t);
    return Self();
  });
  def(kFunction, "_shared_file", "input", "The open file behind shared memory; -1 where there is none.",
      [](const Tensor& t) { return static_cast<int64_t>(shared_file(t)); });
  def(kFunction, "_tensor_of_shared_file", "file, size", "Bytes over an open file, which the tensor owns from now on.",
      [](int64_t file, int64_t size) { return tensor_of_shared_file(static_cast<int>(file), size); });
  def(kMethod, "is_shared", "input", "Whether forked processes share the memory: after share_memory_(), and always on devices.",
      [](const Tensor& t) { return is_shared(t); });
  define_set();
}

}  // namespace naru::py
