// repr(tensor) and the print options.
#include "naru/print.h"

#include <cmath>

#include "object/tensor_object.h"

namespace naru::py {
namespace {

PyObject* repr(PyObject* self) {
  return guarded([&] {
    const Tensor t = tensor_of(self);
    std::string text;
    {
      GilRelease scope;
      text = t.str();
    }
    return to_python(text);
  });
}

// Saturates: values beyond any possible count, including `inf`, mean no limit.
int64_t whole(double v) { return v < 0x1p62 ? static_cast<int64_t>(v) : INT64_MAX / 2; }

}  // namespace

void add_print_slots(std::vector<PyType_Slot>& slots) { slots.push_back({Py_tp_repr, reinterpret_cast<void*>(&repr)}); }

void define_printing() {
  using Number = std::optional<double>;
  def(kFunction, "set_printoptions", "precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None",
      "Sets how tensors are printed: digits behind the point (4), elements of a tensor that is not summarised (1000), elements shown at "
      "each end of a "
      "summarised dimension (3), characters of a line (80), whether in scientific notation (None: the values decide). profile: "
      "\"default\", "
      "\"short\" or \"full\", which the others override.",
      [](std::optional<int64_t> precision, Number threshold, Number edgeitems, Number linewidth, std::optional<std::string_view> profile,
         std::optional<bool> sci_mode) {
        PrintOptions o = profile ? PrintOptions::profile(*profile) : print_options();
        if (precision) o.precision = static_cast<int>(std::min<int64_t>(*precision, 10000));
        if (threshold) o.threshold = *threshold;
        if (edgeitems) o.edgeitems = whole(*edgeitems);
        if (linewidth) o.linewidth = whole(*linewidth);
        o.sci_mode = sci_mode;
        set_print_options(o);
      });
  def(kFunction, "get_printoptions", "", "The options of printing as a dict.", []() -> PyObject* {
    const PrintOptions o = print_options();
    nb::dict all;
    all["precision"] = o.precision, all["threshold"] = o.threshold, all["edgeitems"] = o.edgeitems, all["linewidth"] = o.linewidth;
    all["sci_mode"] = o.sci_mode ? nb::object(nb::bool_(*o.sci_mode)) : nb::object(nb::none());
    return all.release().ptr();
  });
}

}  // namespace naru::py
