// What every file of the extension shares: the Python object that is a tensor, and errors on their way to Python.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <string_view>

#include "core/sizes.h"
#include "core/tensor_impl.h"
#include "naru/ops.h"
#include "naru/sparse.h"
#include "naru/tensor.h"

namespace naru::py {

namespace nb = nanobind;

// A Python tensor: one handle. The tensor's impl points back at it (TensorImpl::python), so that a tensor has one
// Python object at a time.
struct TensorObject {
  PyObject_HEAD Tensor tensor;
  PyObject* dict;
  PyObject* weakrefs;
  // Nothing in Python refers to the object: the tensor owns it, and `tensor` is not counted.
  bool owned_by_tensor;
};

extern PyTypeObject* tensor_type;  // naru.Tensor
extern PyTypeObject* size_type;    // torch.Size

inline bool is_tensor(PyObject* o) noexcept { return Py_TYPE(o) == tensor_type || PyType_IsSubtype(Py_TYPE(o), tensor_type); }
inline Tensor& tensor_of(PyObject* o) noexcept { return reinterpret_cast<TensorObject*>(o)->tensor; }

// A new reference to the Python object of `t`, made now if there is none; None for an undefined tensor.
PyObject* wrap(const Tensor& t);
// A new object of `type` (Tensor or a subclass) that is the Python object of `t` from now on.
PyObject* wrap_as(PyTypeObject* type, const Tensor& t);
inline nb::object wrapped(const Tensor& t) { return nb::steal(wrap(t)); }
// Shows a tensor's object to the garbage collector: it may own Python objects from now on.
void track(PyObject* tensor);
// The object becomes that of a tensor with the elements of `source`, which takes over its place in autograd (autograd::take_over).
void assign_data(PyObject* tensor, const Tensor& source);

// torch.Size of the dims.
PyObject* size_object(const Dims& dims);
// The interned objects torch.float32 ..., and torch.device(...). New references.
PyObject* dtype_object(DType t);
PyObject* device_object(Device d);
// Whether `o` is one, and which.
bool dtype_from(PyObject* o, DType& t);
bool device_from(PyObject* o, Device& d);
bool format_from(PyObject* o, MemoryFormat& f);
PyObject* layout_object(Layout l);
std::optional<Layout> layout_from(PyObject* o);
// A Python number.
PyObject* scalar_object(const Scalar& s);

// Sets the Python error that stands for the exception being handled, of which only naru's own are worded for users. `op`: the function
// called, where it is known. Call it in a catch (...) block.
void set_python_error(const char* op = nullptr) noexcept;
// Raises where Python has set an error.
inline PyObject* check(PyObject* o) {
  if (!o) nb::raise_python_error();
  return o;
}
inline void check(int status) {
  if (status < 0) nb::raise_python_error();
}
// Warns the user, from whichever thread, with or without the GIL. Throws where warnings are errors.
void warn_user(const std::string& text);
// Sets a Python error and throws.
[[noreturn]] void fail(PyObject* type, const std::string& text);
extern PyObject* out_of_memory_error;       // naru.OutOfMemoryError
extern PyObject* device_unavailable_error;  // naru.DeviceUnavailableError
extern PyObject* device_lost_error;         // naru.DeviceLostError
extern PyObject* linalg_error;              // naru.linalg.LinAlgError

// The text of a str, as UTF-8; it lives as long as the object. Raises UnicodeEncodeError where it holds lone surrogates.
std::string_view utf8(PyObject* str);
// For messages: what UTF-8 cannot say is escaped. Never raises.
std::string printable(PyObject* str);
// The tensor an object is; TypeError, with `what` in front, where it is none.
inline const Tensor& tensor_or_throw(PyObject* o, const char* what) {
  if (!is_tensor(o)) throw TypeError("{} must be Tensor, not {}", what, Py_TYPE(o)->tp_name);
  return tensor_of(o);
}

// A Python callable or object that C++ may let go on any thread: where the GIL is not held, the reference is given up
// later by the main thread.
std::shared_ptr<PyObject> keep(PyObject* o);
// Calls f(p) with the GIL: now where this thread holds it, else soon, on the main thread. Never waits for the GIL,
// whose holder may be waiting for this thread.
void with_gil_later(void (*f)(void*), void* p) noexcept;

// Lets other Python threads run for the length of a scope; the line of the program is noted first, for errors and
// origins.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;

 private:
  uint32_t line_before_;
  PyThreadState* state_;
};

// Whether this thread may use Python.
bool has_gil() noexcept;

// Takes the GIL on a thread that let it go, or that Python does not know.
class Locked {
 public:
  Locked();
  ~Locked() { PyGILState_Release(state_); }
  Locked(const Locked&) = delete;

 private:
  PyGILState_STATE state_;
};

// Calls a Python function from within the core, where destructors above may not run without the GIL: a thread that Python would end there rests
// instead (see Unlocked). A new reference, or null with Python's error set.
PyObject* call_python(PyObject* f, std::initializer_list<PyObject*> args);

// The bytes of numpy's answer: whether the module is loaded, and two of its types (null where it is not).
struct NumPy {
  PyTypeObject* array = nullptr;    // numpy.ndarray
  PyTypeObject* generic = nullptr;  // numpy.generic: its scalars
  PyTypeObject* boolean = nullptr;  // numpy.bool_
  PyTypeObject* complex = nullptr;  // numpy.complexfloating
  PyTypeObject* integer = nullptr;  // numpy.integer
};
// load: import it if it is not there yet.
const NumPy& numpy(bool load = false);
inline bool is_array(PyObject* o) {
  const NumPy& np = numpy();
  return np.array && PyObject_TypeCheck(o, np.array);
}

// Runs `f` and turns C++ exceptions into Python's. For C slots.
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
