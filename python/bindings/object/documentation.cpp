#include <nanobind/stl/string.h>

#include "object/function.h"

namespace naru::py {

PyObject* with_example(std::string text, const char* name) {
  try {
    const auto below = nb::cast<std::string>(nb::module_::import_("naru._documentation").attr("below")(text, name));
    if (!below.empty()) text += "\n\n" + below;
  } catch (nb::python_error& e) {
    e.restore();
    return nullptr;
  }
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
}

}  // namespace naru::py
