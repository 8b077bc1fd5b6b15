// The state of autocast, and the casts of what functions are called with.
#include "autocast.h"

#include "function.h"

namespace naru::py {

using autocast::state;

namespace {

// The tensors of an argument: itself, or the items of a list or tuple.
template <class F>
void each_tensor(PyObject* o, F f) {
  if (!o) return;
  if (is_tensor(o)) return f(tensor_of(o));
  if (PyList_Check(o) || PyTuple_Check(o))
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i)
      if (PyObject* item = PySequence_Fast_GET_ITEM(o, i); is_tensor(item)) f(tensor_of(item));
}

nb::object cast_argument(PyObject* o, DType to) {
  if (is_tensor(o)) {
    const Tensor t = autocast::cast(tensor_of(o), to);
    return t.impl() == tensor_of(o).impl() ? nb::borrow(o) : wrapped(t);
  }
  nb::list items;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(o, i);
    items.append(is_tensor(item) ? cast_argument(item, to) : nb::borrow(item));
  }
  return items;
}

size_t kind_of(std::string_view name) { return static_cast<size_t>(parse_device_type(name)); }

DType half_type(DType t) {
  if (!is_floating(t)) throw TypeError("autocast: wanted a floating-point dtype, got {}", name_of(t));
  return t;
}

}  // namespace

std::optional<autocast::Decision> autocast_arguments(autocast::Rules rules, const char* function, PyObject** slots, size_t count,
                                                     bool keeps_dtype, std::vector<nb::object>& owned) {
  std::vector<const Tensor*> tensors;
  for (size_t i = 0; i < count; ++i) each_tensor(slots[i], [&](const Tensor& t) { tensors.push_back(&t); });
  const auto decision = autocast::decide(rules, function, tensors, keeps_dtype);
  if (!decision || !decision->to) return decision;
  for (size_t i = 0; i < count; ++i) {
    bool any = false;
    each_tensor(slots[i], [&](const Tensor& t) { any |= autocast::eligible(t) && t.dtype() != *decision->to; });
    if (!any) continue;
    owned.push_back(cast_argument(slots[i], *decision->to));
    slots[i] = owned.back().ptr();
  }
  return decision;
}

void define_autocast() {
  def(kFunction, "is_autocast_enabled", "device_type='cuda'", "Whether this thread is in a block of autocast for a kind of device.",
      [](std::string_view kind) { return state().on[kind_of(kind)]; });
  def(kFunction, "set_autocast_enabled", "device_type, enabled", "Opens or closes autocast for a kind of device, on this thread.",
      [](std::string_view kind, bool on) { autocast::set_on(parse_device_type(kind), on); });
  def(kFunction, "get_autocast_dtype", "device_type", "The type that autocast casts to on a kind of device.",
      [](std::string_view kind) { return state().dtype[kind_of(kind)]; });
  def(kFunction, "set_autocast_dtype", "device_type, dtype", "Sets the type that autocast casts to on a kind of device.",
      [](std::string_view kind, DType t) { state().dtype[kind_of(kind)] = half_type(t); });
  def(kFunction, "_autocast_anywhere", "", "Whether any thread is in a block.", [] { return autocast::anywhere(); });
  def(kFunction, "_autocast_arguments", "function, arguments", "The kind that decides, or '', and the arguments, cast.",
      [](std::string_view function, PyObject* arguments) -> PyObject* {
        if (!PyTuple_Check(arguments))
          throw TypeError("_autocast_arguments(): argument 'arguments' must be tuple, not {}", Py_TYPE(arguments)->tp_name);
        std::vector<PyObject*> slots(static_cast<size_t>(PyTuple_GET_SIZE(arguments)));
        for (size_t i = 0; i < slots.size(); ++i) slots[i] = PyTuple_GET_ITEM(arguments, static_cast<Py_ssize_t>(i));
        std::vector<nb::object> owned;
        const auto decision =
            autocast_arguments(autocast::rules_of(function), std::string(function).c_str(), slots.data(), slots.size(), false, owned);
        nb::list cast;
        for (PyObject* o : slots) cast.append(nb::handle(o));
        const std::string name(decision ? name_of(decision->kind) : std::string_view());
        return nb::make_tuple(nb::str(name.c_str()), nb::tuple(cast)).release().ptr();
      });
  def(kFunction, "is_autocast_cpu_enabled", "", "Whether this thread is in a block of autocast for the cpu.", [] { return state().on[0]; });
  def(kFunction, "is_autocast_cache_enabled", "", "Whether weights are cast once in a block.", [] { return state().cache; });
  def(kFunction, "set_autocast_cache_enabled", "enabled", "Sets whether weights are cast once in a block.",
      [](bool on) { state().cache = on; });
  def(kFunction, "clear_autocast_cache", "", "Forgets the cast weights.", [] { autocast::clear_cache(); });
  def(kFunction, "autocast_increment_nesting", "", "One block deeper.", [] { return int64_t{++state().nesting}; });
  def(kFunction, "autocast_decrement_nesting", "", "One block up.", [] { return int64_t{--state().nesting}; });
}

}  // namespace naru::py
