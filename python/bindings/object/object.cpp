// Conversion of errors to Python, the GIL, lines of the user's program, and NumPy's types.
#include "object/object.h"

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <vector>

#include "object/lines.h"
#include "ops/batch/batch.h"
#include "runtime/os/interrupt.h"

namespace naru::py {

void set_python_error(const char* op) noexcept {
  const auto set = [](PyObject* type, const char* text) { PyErr_SetString(type, text); };
  try {
    throw;
  } catch (nb::python_error& e) {
    e.restore();
  } catch (const runtime::Interrupted& e) {
    // Raises what the program's signal handler raises, if anything.
    if (PyErr_CheckSignals() == 0) set(PyExc_RuntimeError, e.what());
  } catch (const DeviceLostError& e) {
    set(device_lost_error ? device_lost_error : PyExc_RuntimeError, e.what());
  } catch (const LinAlgError& e) {
    set(linalg_error ? linalg_error : PyExc_RuntimeError, e.what());
  } catch (const batching::NoBatchingRule& e) {
    set(no_batching_rule, e.what());
  } catch (const batching::WrittenWithoutBatch& e) {
    set(written_without_batch, e.what());
  } catch (const DeviceUnavailableError& e) {
    set(device_unavailable_error ? device_unavailable_error : PyExc_RuntimeError, e.what());
  } catch (const Error& e) {
    if (PyObject* const type = class_of_error ? class_of_error(e) : nullptr) return set(type, e.what());
    switch (e.kind()) {
      case ErrorKind::Type:
        return set(PyExc_TypeError, e.what());
      case ErrorKind::Value:
        return set(PyExc_ValueError, e.what());
      case ErrorKind::Index:
        return set(PyExc_IndexError, e.what());
      case ErrorKind::NotImplemented:
        return set(PyExc_NotImplementedError, e.what());
      case ErrorKind::OutOfMemory:
        return set(out_of_memory_error ? out_of_memory_error : PyExc_MemoryError, e.what());
      case ErrorKind::Import:
        return set(PyExc_ImportError, e.what());
      case ErrorKind::Buffer:
        return set(PyExc_BufferError, e.what());
      case ErrorKind::Key:
        return set(PyExc_KeyError, e.what());
      case ErrorKind::Runtime:
        break;
    }
    set(PyExc_RuntimeError, e.what());
  } catch (const std::bad_alloc&) {
    PyErr_Format(PyExc_MemoryError, "%s: the host has not enough memory for what was asked", op ? op : "naru");
  } catch (const std::length_error&) {
    PyErr_Format(PyExc_MemoryError, "%s: what was asked for is larger than any memory", op ? op : "naru");
  } catch (const std::system_error& e) {
    PyErr_Format(PyExc_OSError, "%s: %s", op ? op : "naru", e.code().message().c_str());
  } catch (const std::logic_error&) {
    PyErr_Format(PyExc_RuntimeError, "%s: an argument lies outside of what the function can handle", op ? op : "naru");
  } catch (const std::exception& e) {
    PyErr_Format(PyExc_RuntimeError, "%s: %s", op ? op : "naru", e.what());
  } catch (...) {
    set(PyExc_SystemError, "naru: an unknown C++ exception");
  }
}

void warn_user(const std::string& text) {
  const GilAcquire gil;  // functions on large tensors run without it
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0) throw nb::python_error();
}

std::string_view utf8(PyObject* str) {
  Py_ssize_t n = 0;
  const char* text = PyUnicode_AsUTF8AndSize(str, &n);
  if (!text) nb::raise_python_error();
  return {text, static_cast<size_t>(n)};
}

std::string printable(PyObject* str) {
  nb::object bytes = nb::steal(PyUnicode_AsEncodedString(str, "utf-8", "backslashreplace"));
  if (bytes.is_valid()) return {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
  PyErr_Clear();
  return "?";
}

void fail(PyObject* type, const std::string& text) {
  PyErr_SetString(type, text.c_str());
  throw nb::python_error();
}

// --- releasing objects without the GIL ----------------------------------------------------------------------------------------------

namespace {

struct Waiting {
  std::mutex mutex;
  std::vector<std::pair<void (*)(void*), void*>> calls;
  bool scheduled = false;
};
Waiting& waiting() {
  static auto* w = new Waiting;  // never destroyed: worker threads may outlive static objects
  return *w;
}

int run_waiting(void*) {
  Waiting& w = waiting();
  std::vector<std::pair<void (*)(void*), void*>> calls;
  {
    std::lock_guard lock(w.mutex);
    calls.swap(w.calls);
    w.scheduled = false;
  }
  for (auto [f, p] : calls) f(p);
  return 0;
}

}  // namespace

// True if this thread may use Python. The order matters: after the interpreter has ended, PyGILState_Check returns true on every thread,
// but Py_IsInitialized has turned false before that.
bool has_gil() noexcept { return PyGILState_Check() && Py_IsInitialized(); }

void call_with_gil(void (*f)(void*), void* p) noexcept {
  const bool ours = has_gil();
  if (!Py_IsInitialized()) return;
  if (ours) return f(p);
  Waiting& w = waiting();
  std::lock_guard lock(w.mutex);
  w.calls.emplace_back(f, p);
  // If Python's list of pending calls is full, the next call tries again.
  if (!w.scheduled) w.scheduled = Py_AddPendingCall(run_waiting, nullptr) == 0;
}

std::shared_ptr<PyObject> keep(PyObject* o) {
  return {Py_NewRef(o), [](PyObject* held) { call_with_gil([](void* p) { Py_DECREF(static_cast<PyObject*>(p)); }, held); }};
}

// --- lines of the program -----------------------------------------------------------------------------------------------------------

namespace {

// A source location is (block << 12) | (line % 4096), where a block is 4096 lines of a file: a million blocks serve notebooks and programs
// that compile code all the time.
constexpr int kLineBits = 12, kLineMask = (1 << kLineBits) - 1;
constexpr uint32_t kMaxBlocks = 1u << (32 - kLineBits);
constexpr size_t kMaxNameObjects = 4096;

struct Block {
  const std::string* path;
  int first_line;
};
struct Files {
  // The first block of a file by the object of its name, for speed: equal names may be many objects. 0 for files of this package.
  std::unordered_map<PyObject*, uint32_t> known;            // holds references; emptied when it is full
  std::mutex mutex;                                         // of what follows
  std::map<std::pair<std::string, int>, uint32_t> numbers;  // (path, line >> kLineBits) -> block
  std::vector<Block> blocks{{nullptr, 0}};
};
Files& files() {
  static auto* f = new Files;
  return *f;
}
std::string package_folder;  // with a trailing slash

// The block of a file that has the lines from `high` << kLineBits on; 0 when a million are in use.
uint32_t block_number(const std::string& path, int high) {
  Files& f = files();
  std::lock_guard lock(f.mutex);
  if (const auto it = f.numbers.find({path, high}); it != f.numbers.end()) return it->second;
  if (f.blocks.size() >= kMaxBlocks) return 0;
  const auto number = static_cast<uint32_t>(f.blocks.size());
  const auto it = f.numbers.emplace(std::pair(path, high), number).first;
  f.blocks.push_back({&it->first.first, high << kLineBits});
  return number;
}

void forget_name_objects() {
  for (auto& [name, number] : files().known) Py_DECREF(name);
  files().known.clear();
}

// The file's first block; 0 for files of this package.
uint32_t file_number(PyObject* name) {
  Files& f = files();
  if (const auto it = f.known.find(name); it != f.known.end()) return it->second;
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) {
    PyErr_Clear();
    return 0;
  }
  const std::string path(text);
  const bool ours = !package_folder.empty() && path.starts_with(package_folder);
  const uint32_t number = ours || path.starts_with("<frozen") ? 0 : block_number(path, 0);
  if (f.known.size() >= kMaxNameObjects) forget_name_objects();
  f.known.emplace(Py_NewRef(name), number);
  return number;
}

// The line recorded before the GIL was released.
thread_local uint32_t noted_line = 0;

}  // namespace

uint32_t line_of(PyFrameObject* frame) {
  PyCodeObject* code = PyFrame_GetCode(frame);
  uint32_t block = file_number(code->co_filename);
  int line = 0;
  if (block) {  // finding a line reads the code's table of lines
    line = PyFrame_GetLineNumber(frame);
    if (line > kLineMask) block = block_number(std::string(utf8(code->co_filename)), line >> kLineBits);
  }
  Py_DECREF(code);
  return block ? block << kLineBits | (static_cast<uint32_t>(line) & kLineMask) : 0;
}

uint32_t program_line() noexcept {
  if (!has_gil()) return noted_line;
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  uint32_t place = 0;
  while (frame && !place) {
    place = line_of(frame);
    PyFrameObject* back = place ? nullptr : PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  return place;
}

std::string program_line_text(uint32_t place) {
  Files& f = files();
  std::lock_guard lock(f.mutex);
  const uint32_t number = place >> kLineBits;
  if (number == 0 || number >= f.blocks.size()) return "";
  const Block& block = f.blocks[number];
  return *block.path + ":" + std::to_string(block.first_line + static_cast<int>(place & kLineMask));
}

std::string program_stack() {
  GilAcquire gil;
  try {
    nb::object lines = nb::module_::import_("traceback").attr("format_stack")();
    return nb::cast<std::string>(nb::str("").attr("join")(lines));
  } catch (nb::python_error&) {
    return "";
  }
}

void set_package_folder(std::string folder) {
  package_folder = std::move(folder);
  forget_name_objects();
}

namespace {

// Runs `take`, which acquires the GIL. During interpreter shutdown, Python ends threads that request the GIL by unwinding their stacks.
// That would run destructors without the GIL, or terminate the program at the first noexcept function. So such a thread blocks here until
// the process exits. (Python 3.14 and later do the same.) The unwinding has no exception type to catch; `take` itself is C and does not
// throw.
template <class F>
void block_if_finalizing(F&& take) {
  try {
    take();
  } catch (...) {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(24));
  }
}

}  // namespace

GilRelease::GilRelease() : line_before_(noted_line) {
  noted_line = program_line();
  program_calls();  // notes them for what is computed without the GIL
  state_ = PyEval_SaveThread();
}
GilRelease::~GilRelease() {
  block_if_finalizing([&] { PyEval_RestoreThread(state_); });
  noted_line = line_before_;
}
PyObject* call_python(PyObject* f, std::initializer_list<PyObject*> args) {
  PyObject* result = nullptr;
  block_if_finalizing([&] { result = PyObject_Vectorcall(f, args.begin(), args.size(), nullptr); });
  return result;
}
GilAcquire::GilAcquire() {
  block_if_finalizing([&] { state_ = PyGILState_Ensure(); });
}

// --- NumPy --------------------------------------------------------------------------------------------------------------------------

const NumPy& numpy(bool load) {
  static NumPy np;
  if (np.array) return np;
  PyObject* module = load ? PyImport_ImportModule("numpy") : PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");
  if (!module) {
    if (load) throw RuntimeError("Numpy is not available; `pip install numpy`");
    return np;
  }
  if (!load) Py_INCREF(module);
  nb::object held = nb::steal(module);
  // While NumPy is being imported, its types do not exist yet.
  const auto type = [&](const char* name) -> PyTypeObject* {
    PyObject* t = PyObject_GetAttrString(module, name);
    if (!t) PyErr_Clear();
    return reinterpret_cast<PyTypeObject*>(t);
  };
  NumPy found{type("ndarray"), type("generic"), type("bool_"), type("complexfloating"), type("integer")};
  if (found.array && found.generic && found.boolean && found.complex && found.integer) np = found;
  return np;
}

}  // namespace naru::py
