// Common declarations of the extension: the Python object of a tensor, conversion of errors, the GIL, NumPy.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

#include "core/sizes.h"
#include "core/tensor_impl.h"
#include "naru/ops.h"
#include "naru/ops/sparse.h"
#include "naru/tensor.h"

namespace naru::py {

namespace nb = nanobind;

// A Python tensor holds one handle. The tensor's impl points back at it (TensorImpl::python), so a tensor has at most one Python object at
// a time.
struct TensorObject {
  PyObject_HEAD Tensor tensor;
  PyObject* dict;
  PyObject* weakrefs;
  // No Python reference to the object exists: the tensor owns it, and `tensor` does not hold a reference count.
  bool owned_by_tensor;
};

extern PyTypeObject* tensor_type;  // naru.Tensor
extern PyTypeObject* size_type;    // torch.Size

inline bool is_tensor(PyObject* o) noexcept { return Py_TYPE(o) == tensor_type || PyType_IsSubtype(Py_TYPE(o), tensor_type); }
inline Tensor& tensor_of(PyObject* o) noexcept { return reinterpret_cast<TensorObject*>(o)->tensor; }

// A new reference to the Python object of `t`, created if there is none; None for an undefined tensor.
PyObject* wrap(const Tensor& t);
// A new object of `type` (Tensor or a subclass), which becomes the Python object of `t`.
PyObject* wrap_as(PyTypeObject* type, const Tensor& t);
inline nb::object wrapped(const Tensor& t) { return nb::steal(wrap(t)); }
// Registers a tensor's object with the garbage collector, because it may own Python objects from now on.
void track(PyObject* tensor);
// Makes the object refer to a tensor with the elements of `source`, which takes its place in autograd (autograd::take_over).
void assign_data(PyObject* tensor, const Tensor& source);

// The dims as a torch.Size.
PyObject* size_object(const Dims& dims);
// The interned objects torch.float32 ..., and torch.device(...). New references.
PyObject* dtype_object(DType t);
PyObject* device_object(Device d);
// Return true, and store the value, if `o` has the type.
bool dtype_from(PyObject* o, DType& t);
bool device_from(PyObject* o, Device& d);
bool format_from(PyObject* o, MemoryFormat& f);
PyObject* layout_object(Layout l);
std::optional<Layout> layout_from(PyObject* o);
// A Python number.
PyObject* scalar_object(const Scalar& s);

// Sets the Python error for the exception being handled; call it in a catch (...) block. Only naru's own exceptions have messages written
// for users. `op`: the function that was called, if known.
void set_python_error(const char* op = nullptr) noexcept;
// Throws if Python has set an error.
inline PyObject* check(PyObject* o) {
  if (!o) nb::raise_python_error();
  return o;
}
inline void check(int status) {
  if (status < 0) nb::raise_python_error();
}
// Issues a Python warning, from any thread, with or without the GIL. Throws if warnings are errors.
void warn_user(const std::string& text);
// Sets a Python error and throws.
[[noreturn]] void fail(PyObject* type, const std::string& text);
extern PyObject* out_of_memory_error;       // naru.OutOfMemoryError
extern PyObject* device_unavailable_error;  // naru.DeviceUnavailableError
extern PyObject* device_lost_error;         // naru.DeviceLostError
extern PyObject* linalg_error;              // naru.linalg.LinAlgError
extern PyObject* no_batching_rule;          // naru.func: these two
extern PyObject* written_without_batch;
extern PyObject* (*class_of_error)(const Error&);  // the classes of errors between processes; null for others

// The UTF-8 text of a str, valid as long as the object. Raises UnicodeEncodeError for lone surrogates.
std::string_view utf8(PyObject* str);
// For messages: escapes what UTF-8 can't represent. Never raises.
std::string printable(PyObject* str);
// The tensor of an object. Throws TypeError, with `what` first, if it is not a tensor.
inline const Tensor& tensor_or_throw(PyObject* o, const char* what) {
  if (!is_tensor(o)) throw TypeError("{} must be Tensor, not {}", what, Py_TYPE(o)->tp_name);
  return tensor_of(o);
}

// Keeps a Python object alive from C++. It may be released on any thread: without the GIL, the main thread drops the reference later.
std::shared_ptr<PyObject> keep(PyObject* o);
// Calls f(p) with the GIL: immediately if this thread holds it, else soon on the main thread. Never waits for the GIL, because its holder
// may be waiting for this thread.
void call_with_gil(void (*f)(void*), void* p) noexcept;

// Releases the GIL within a scope. First records the current line of the program, for errors and origins.
class GilRelease {
 public:
  GilRelease();
  ~GilRelease();
  GilRelease(const GilRelease&) = delete;

 private:
  uint32_t line_before_;
  PyThreadState* state_;
};

// True if this thread may use Python.
bool has_gil() noexcept;

// Acquires the GIL, on a thread that released it or that Python does not know.
class GilAcquire {
 public:
  GilAcquire();
  ~GilAcquire() { PyGILState_Release(state_); }
  GilAcquire(const GilAcquire&) = delete;

 private:
  PyGILState_STATE state_;
};

// Calls a Python function from within the core, where destructors further up the stack must not run without the GIL: a thread that Python
// would end there blocks forever instead (see block_if_finalizing in object.cpp). Returns a new reference, or null with Python's error set.
PyObject* call_python(PyObject* f, std::initializer_list<PyObject*> args);

// NumPy's array type and some of its scalar types; null if the module is not loaded.
struct NumPy {
  PyTypeObject* array = nullptr;    // numpy.ndarray
  PyTypeObject* generic = nullptr;  // numpy.generic: its scalars
  PyTypeObject* boolean = nullptr;  // numpy.bool_
  PyTypeObject* complex = nullptr;  // numpy.complexfloating
  PyTypeObject* integer = nullptr;  // numpy.integer
};
// load: import NumPy if necessary.
const NumPy& numpy(bool load = false);
inline bool is_array(PyObject* o) {
  const NumPy& np = numpy();
  return np.array && PyObject_TypeCheck(o, np.array);
}

// Runs `f` and converts C++ exceptions to Python errors. For C slots.
template <class F>
PyObject* guarded(F&& f, const char* op = nullptr) noexcept {
  try {
    return f();
  } catch (...) {
    set_python_error(op);
    return nullptr;
  }
}

}  // namespace naru::py
