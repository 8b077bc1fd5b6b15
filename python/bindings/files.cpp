// Files that are written whole or not at all. python/naru/_serialization/atomic_file.py is the face of it.
#include <nanobind/stl/string.h>

#include "object.h"
#include "runtime/atomic_file.h"

namespace naru::py {
namespace {

using runtime::AtomicFile;
using runtime::FileError;

template <class F>
auto with_os_error(F&& f) {
  try {
    return f();
  } catch (const FileError& e) {
    nb::object path = nb::steal(PyUnicode_DecodeFSDefaultAndSize(e.path().data(), static_cast<Py_ssize_t>(e.path().size())));
    errno = e.number();
    PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path.ptr());
    throw nb::python_error();
  }
}

}  // namespace

void define_files(nb::module_& m) {
  nb::class_<AtomicFile>(m, "_AtomicFile", "A file that takes its name only when it is complete.")
      .def("__init__", [](AtomicFile* self,
                          const nb::bytes& path) { with_os_error([&] { new (self) AtomicFile(std::string(path.c_str(), path.size())); }); })
      .def("fileno", [](const AtomicFile& f) { return f.file(); })
      .def("commit",
           [](AtomicFile& f) {
             with_os_error([&] {
               const Unlocked scope;
               f.commit();
             });
           })
      .def("discard", [](AtomicFile& f) { f.discard(); });
}

}  // namespace naru::py
