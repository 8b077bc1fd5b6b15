// NumPy arrays: tensors that share their memory, and arrays that share a tensor's.

#include <array>

#include "object/tensor_object.h"
#include "ops/sparse/sparse.h"
#include "runtime/os/system.h"

namespace naru::py {
namespace {

std::string array_type(PyObject* array) {
  nb::object name = nb::borrow(array).attr("dtype").attr("type").attr("__name__");
  return "numpy." + std::string(nb::str(name).c_str());
}

[[noreturn]] void fail_array_type(PyObject* array) {
  fail(PyExc_TypeError, "can't convert np.ndarray of type " + array_type(array) +
                            ". The only supported types are: float64, float32, float16, complex64, complex128, int64, int32, int16, int8, "
                            "uint64, uint32, uint16, uint8, and bool.");
}

DType type_of_format(PyObject* array, const Py_buffer& view) {
  const char* f = view.format ? view.format : "B";
  if (*f == '<' || *f == '=' || *f == '@')
    ++f;
  else if (*f == '>' || *f == '!')
    fail(PyExc_ValueError,
         "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
         "currently not supported.");
  if (f[0] == 'Z' && f[1] != '\0' && f[2] == '\0') {
    if (f[1] == 'f') return kComplex64;
    if (f[1] == 'd') return kComplex128;
  }
  if (f[0] == '\0' || f[1] != '\0') fail_array_type(array);
  switch (*f) {
    case '?':
      return DType::Bool;
    case 'B':
      return DType::U8;
    case 'b':
      return DType::I8;
    case 'h':
      return DType::I16;
    case 'i':
      return DType::I32;
    case 'l':
    case 'q':
      return view.itemsize == 8 ? DType::I64 : DType::I32;
    case 'H':
      return kUInt16;
    case 'I':
      return kUInt32;
    case 'L':
    case 'Q':
      return view.itemsize == 8 ? kUInt64 : kUInt32;
    case 'e':
      return DType::F16;
    case 'f':
      return DType::F32;
    case 'd':
      return DType::F64;
    default:
      fail_array_type(array);
  }
}

// A buffer that stays exported as long as a tensor uses it. Released on a thread that holds the GIL.
struct Exported {
  Py_buffer view{};
};
void give_back(void* p) {
  auto* e = static_cast<Exported*>(p);
  PyBuffer_Release(&e->view);
  delete e;
}

Tensor tensor_over(PyObject* array, bool shared) {
  auto exported = std::make_unique<Exported>();
  Py_buffer& view = exported->view;
  if (PyObject_GetBuffer(array, &view, PyBUF_FULL_RO) != 0) {
    PyErr_Clear();
    fail_array_type(array);
  }
  const auto fail_released = [&](auto&& raise) {
    PyBuffer_Release(&view);
    raise();
  };
  DType type{};
  try {
    type = type_of_format(array, view);
  } catch (...) {
    PyBuffer_Release(&view);
    throw;
  }
  Dims sizes, strides;
  for (int i = 0; i < view.ndim; ++i) {
    const int64_t step = view.strides[i];
    if (step < 0)
      fail_released([] {
        fail(PyExc_ValueError,
             "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
             "currently "
             "supported. (You can probably work around this by making a copy of your array  with array.copy().) ");
      });
    if (step % view.itemsize != 0)
      fail_released([] {
        fail(PyExc_ValueError,
             "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate "
             "the memory.");
      });
    sizes.push_back(view.shape[i]);
    strides.push_back(step / view.itemsize);
  }
  if (shared && view.readonly &&
      PyErr_WarnEx(PyExc_UserWarning,
                   "The given NumPy array is not writable, and PyTorch does not support non-writable "
                   "tensors. This means writing to this tensor "
                   "will result in undefined behavior. You may want to copy the array to protect its "
                   "data or make it writable before converting "
                   "it to a tensor.",
                   1) != 0)
    fail_released([] { throw nb::python_error(); });
  Exported* e = exported.release();
  return from_blob(e->view.buf, sizes, strides, type, [e] { call_with_gil(give_back, e); });
}

// --- arrays over tensors ------------------------------------------------------------------------------------------------------------

constexpr int kMostDims = 64;  // Py_buffer's limit

// Exports a tensor's memory by the buffer protocol; numpy.asarray keeps it alive.
struct BufferObject {
  PyObject_HEAD Tensor tensor;
  Py_ssize_t shape[kMostDims], strides[kMostDims];
};
PyTypeObject* buffer_type = nullptr;

int buffer_get(PyObject* o, Py_buffer* view, int flags) {
  auto* b = reinterpret_cast<BufferObject*>(o);
  const Tensor& t = b->tensor;
  constexpr std::array<const char*, kElementTypes> kFormats{"?", "B",  "b",  "h", "i", sizeof(long) == 8 ? "l" : "q", "e", "", "f", "d",
                                                            "",  "Zf", "Zd", "H", "I", sizeof(long) == 8 ? "L" : "Q", "",  "", "",  "",
                                                            ""};
  static char nothing[8];
  const bool any_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
  const bool dense = (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS || (flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS;
  const bool columns = (flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && t.dim() > 1;
  if ((!t.is_contiguous() && (!any_strides || dense)) || columns) {
    PyErr_SetString(PyExc_BufferError, "the tensor's memory is not laid out as asked for; use tensor.contiguous() first");
    return -1;
  }
  void* data = t.data_ptr();
  view->obj = Py_NewRef(o);
  view->buf = data ? data : nothing;
  view->itemsize = static_cast<Py_ssize_t>(t.element_size());
  view->len = static_cast<Py_ssize_t>(t.numel()) * view->itemsize;
  view->readonly = 0;
  view->ndim = static_cast<int>(t.dim());
  view->format = flags & PyBUF_FORMAT ? const_cast<char*>(kFormats[static_cast<size_t>(t.dtype())]) : nullptr;
  view->shape = flags & PyBUF_ND ? b->shape : nullptr;
  view->strides = any_strides ? b->strides : nullptr;
  view->suboffsets = nullptr;
  view->internal = nullptr;
  return 0;
}
void buffer_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  Tensor& t = reinterpret_cast<BufferObject*>(o)->tensor;
  --t.impl()->storage->externally_aliased;
  t.~Tensor();
  type->tp_free(o);
  Py_DECREF(type);
}

void make_buffer_type() {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(buffer_dealloc)}, {Py_bf_getbuffer, reinterpret_cast<void*>(buffer_get)}, {0, nullptr}};
  PyType_Spec spec = {"naru._C.Buffer", sizeof(BufferObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  buffer_type = reinterpret_cast<PyTypeObject*>(check(PyType_FromSpec(&spec)));
}

// An object that exports `t` by the buffer protocol.
nb::object exported(const Tensor& t) {
  if (t.dim() > kMostDims) throw ValueError("maximum supported dimension for an ndarray is {}, found {}", kMostDims, t.dim());
  if (t.numel() >= detail::kLongWork) {
    // Wait here, without the GIL; the buffer then finds the memory ready.
    const Tensor held = t;
    GilRelease scope;
    held.data_ptr();
  }
  auto* b = reinterpret_cast<BufferObject*>(check(buffer_type->tp_alloc(buffer_type, 0)));
  nb::object held = nb::steal(reinterpret_cast<PyObject*>(b));
  new (&b->tensor) Tensor(t.detach());
  ++t.impl()->storage->externally_aliased;
  t.impl()->storage->resizable = false;
  for (int64_t i = 0; i < t.dim(); ++i) {
    b->shape[i] = t.sizes()[static_cast<size_t>(i)];
    b->strides[i] = t.strides()[static_cast<size_t>(i)] * static_cast<int64_t>(t.element_size());
  }
  return held;
}

// The number of elements from the first to the last, inclusive.
int64_t extent(const Dims& sizes, const Dims& strides) {
  if (product(sizes) == 0) return 0;
  int64_t span = 1;
  for (size_t i = 0; i < sizes.size() && i < strides.size(); ++i) span = plus(span, times(sizes[i] - 1, strides[i]));
  return span;
}

// The memory that a cpu tensor spans, as bytes.
nb::object buffer_of(const Tensor& t) {
  ops::refuse_parts(t, "storage");
  Tensor bytes(new TensorImpl(t.impl()->storage, DType::U8));
  const auto item = static_cast<int64_t>(t.element_size());
  bytes.impl()->set_geometry({extent(t.sizes(), t.strides()) * item}, {1}, t.impl()->offset * item);
  return exported(bytes);
}

// A tensor over a buffer that has no other user as long as the tensor lives.
Tensor tensor_on(PyObject* buffer, DType type, const Dims& sizes, const Dims& strides) {
  auto held = std::make_unique<Exported>();
  Py_buffer& view = held->view;
  if (PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
  const int64_t wanted = times(extent(sizes, strides), static_cast<int64_t>(size_of(type)));
  if (sizes.size() != strides.size() || view.len < wanted) {
    const Py_ssize_t got = view.len;
    PyBuffer_Release(&view);
    throw ValueError("a tensor of {} bytes does not fit into a buffer of {}", wanted, got);
  }
  Exported* e = held.release();
  Tensor t = from_blob(e->view.buf, sizes, strides, type, [e] { call_with_gil(give_back, e); });
  --t.impl()->storage->externally_aliased;
  return t;
}

}  // namespace

Tensor from_array(PyObject* array, bool shared) {
  const NumPy& np = numpy(true);
  if (!PyObject_TypeCheck(array, np.array)) throw TypeError("expected np.ndarray (got {})", Py_TYPE(array)->tp_name);
  return tensor_over(array, shared);
}

DType type_of_buffer(PyObject* buffer) {
  Py_buffer view;
  check(PyObject_GetBuffer(buffer, &view, PyBUF_FULL_RO));
  try {
    const DType type = type_of_format(buffer, view);
    PyBuffer_Release(&view);
    return type;
  } catch (...) {
    PyBuffer_Release(&view);
    throw;
  }
}

Tensor from_buffer(PyObject* buffer, DType type, int64_t count, int64_t offset) {
  auto held = std::make_unique<Exported>();
  Py_buffer& view = held->view;
  if (!PyObject_CheckBuffer(buffer))
    throw ValueError("object does not implement Python buffer protocol. (frombuffer: got {})", Py_TYPE(buffer)->tp_name);
  if (PyObject_GetBuffer(buffer, &view, PyBUF_WRITABLE) != 0) {
    PyErr_Clear();
    check(PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE));
  }
  Exported* const e = held.release();
  const std::shared_ptr<Exported> kept(e, [](Exported* p) { call_with_gil(give_back, p); });
  const auto item = static_cast<int64_t>(size_of(type));
  const int64_t bytes = view.len;
  if (bytes <= 0 || count == 0) throw ValueError("both buffer length ({}) and count ({}) must not be 0", bytes, count);
  if (offset < 0 || offset >= bytes)
    throw ValueError("offset ({} bytes) must be non-negative and no greater than buffer length ({} bytes) - 1", offset, bytes);
  if (count < 0) {
    if ((bytes - offset) % item != 0)
      throw ValueError("buffer length ({} bytes) after offset ({} bytes) must be a multiple of element size ({})", bytes - offset, offset,
                       item);
    count = (bytes - offset) / item;
  }
  if (count > (bytes - offset) / item)
    throw ValueError(
        "requested buffer length ({} * {} bytes) after offset ({} bytes) must not be greater than actual buffer length ({} bytes)", count,
        item, offset, bytes);
  if (view.readonly)
    check(
        PyErr_WarnEx(PyExc_UserWarning,
                     "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you can write to the "
                     "underlying (supposedly non-writable) buffer using the tensor. You may want to copy the buffer to protect its data or "
                     "make it writable before converting it to a tensor.",
                     1));
  return from_blob(static_cast<char*>(view.buf) + offset, {count}, {1}, type, [kept] {});
}

PyObject* array_from(const Tensor& t) {
  if (!t.device().is_cpu())
    throw TypeError("can't convert {} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.",
                    t.device().str());
  if (layout(t) != Layout::Strided)
    throw TypeError("can't convert {} layout tensor to numpy. Use Tensor.to_dense() first.", ops::torch_layout(layout(t)));
  if (t.dtype() == DType::BF16 || t.dtype() == kComplex32 || is_float8(t.dtype()))
    throw TypeError("Got unsupported ScalarType {}", traits_of(t.dtype()).scalar_type);
  nb::object held = exported(t);
  numpy(true);
  static PyObject* asarray = PyObject_GetAttrString(nb::module_::import_("numpy").ptr(), "asarray");
  return check(PyObject_CallOneArg(check(asarray), held.ptr()));
}

int get_buffer(PyObject* o, Py_buffer* view, int flags) {
  const auto refuse = [](const std::string& text) {
    PyErr_SetString(PyExc_BufferError, text.c_str());
    return -1;
  };
  const Tensor& t = tensor_of(o);
  if (!t.device().is_cpu())
    return refuse("a buffer needs memory of the host; the tensor is on " + t.device().str() + ". Use tensor.cpu() first");
  if (layout(t) != Layout::Strided) return refuse("a sparse tensor has no buffer; use tensor.to_dense() first");
  if (t.requires_grad()) return refuse("a tensor that requires grad has no buffer; use tensor.detach() first");
  if (t.dtype() == DType::BF16 || is_float8(t.dtype()))
    return refuse("the buffer protocol has no " + std::string(name_of(t.dtype())) + "; use tensor.float() first");
  if (t.dtype() == kComplex32) return refuse("the buffer protocol has no complex32; use tensor.cfloat() first");
  try {
    return PyObject_GetBuffer(exported(t).ptr(), view, flags);
  } catch (const nb::python_error&) {
    return refuse("the tensor's memory could not be exported");
  } catch (const std::exception& e) {
    return refuse(e.what());
  }
}

void define_arrays() {
  make_buffer_type();
  // Transport of batches from worker processes (utils/data).
  def(kFunction, "_map_file", "file, size", "The bytes of an open file, shared with whoever else maps it.",
      [](int64_t file, int64_t size) -> PyObject* {
        void* const data = runtime::system::map_shared(static_cast<int>(file), static_cast<size_t>(size));
        if (!data) {
          PyErr_SetFromErrno(PyExc_OSError);
          throw nb::python_error();
        }
        return wrap(
            from_blob(data, {size}, {1}, DType::U8, [data, size] { runtime::system::unmap_shared(data, static_cast<size_t>(size)); }));
      });
  def(kFunction, "_bytes_of", "input", "The memory that a tensor on cpu spans, as a buffer of bytes.",
      [](const Tensor& t) -> PyObject* { return buffer_of(t).release().ptr(); });
  def(kFunction, "_tensor_on", "buffer, dtype, size, stride",
      "A tensor over a buffer of bytes that nobody else looks at as long as the tensor lives.",
      [](PyObject* buffer, DType dtype, const Dims& size, const Dims& stride) -> PyObject* {
        return wrap(tensor_on(buffer, dtype, size, stride));
      });
}

}  // namespace naru::py
