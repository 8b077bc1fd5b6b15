// Atomic file writes, and zip archives; python/naru/_serialization/atomic_file.py and archive.py have the public API.
#include <nanobind/stl/string.h>

#include "data/zip.h"
#include "object/object.h"
#include "runtime/os/atomic_file.h"

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

// An archive written to a Python file: small pieces are combined, large records are passed as their objects.
class ZipOut {
 public:
  explicit ZipOut(nb::callable write) : write_(std::move(write)), zip_([this](std::string_view piece) { take(piece); }) {}
  ZipOut(const ZipOut&) = delete;
  ZipOut& operator=(const ZipOut&) = delete;
  void add(const nb::bytes& name, const nb::bytes& record) {
    record_ = record;
    zip_.add(std::string(name.c_str(), name.size()), {record.c_str(), record.size()});
    record_.reset();
  }
  void finish() {
    zip_.finish();
    flush();
  }

 private:
  static constexpr size_t kLarge = size_t{1} << 18;
  void take(std::string_view piece) {
    if (piece.size() < kLarge) {
      pending_ += piece;
      if (pending_.size() >= kLarge) flush();
      return;
    }
    flush();
    write_(record_);  // only the record is this large
  }
  void flush() {
    if (!pending_.empty()) write_(nb::bytes(pending_.data(), pending_.size()));
    pending_.clear();
  }
  nb::callable write_;
  nb::object record_;
  std::string pending_;
  data::ZipWriter zip_;
};

}  // namespace

void define_files(nb::module_& m) {
  nb::class_<AtomicFile>(m, "_AtomicFile", "A file that takes its name only when it is complete.")
      .def("__init__", [](AtomicFile* self,
                          const nb::bytes& path) { with_os_error([&] { new (self) AtomicFile(std::string(path.c_str(), path.size())); }); })
      .def("fileno", [](const AtomicFile& f) { return f.file(); })
      .def("commit",
           [](AtomicFile& f) {
             with_os_error([&] {
               const GilRelease scope;
               f.commit();
             });
           })
      .def("discard", [](AtomicFile& f) { f.discard(); });
  nb::class_<ZipOut>(m, "_ZipWriter", "An archive of stored records, their bytes aligned, handed to a file's write().")
      .def(nb::init<nb::callable>())
      .def("add", &ZipOut::add)
      .def("finish", &ZipOut::finish);
}

}  // namespace naru::py
