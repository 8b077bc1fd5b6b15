// The autocast state. (The casts themselves happen in the C++ functions.)
#include "ops/tensor/autocast.h"

#include "object/tensor_object.h"

namespace naru::py {

using autocast::state;

namespace {

size_t kind_of(std::string_view name) { return static_cast<size_t>(parse_device_type(name)); }

DType half_type(DType t) {
  if (!is_floating(t)) throw TypeError("autocast: wanted a floating-point dtype, got {}", name_of(t));
  return t;
}

const char* word(operators::Cast rule) {
  constexpr const char* kWords[] = {"", "lower", "float32", "widest", "refused"};
  return kWords[static_cast<int>(rule)];
}

}  // namespace

void define_autocast() {
  def(kFunction, "is_autocast_enabled", "device_type='cuda'", "Whether this thread is in a block of autocast for a kind of device.",
      [](std::string_view kind) { return state().on[kind_of(kind)]; });
  def(kFunction, "set_autocast_enabled", "device_type, enabled", "Opens or closes autocast for a kind of device, on this thread.",
      [](std::string_view kind, bool on) { autocast::set_on(parse_device_type(kind), on); });
  def(kFunction, "get_autocast_dtype", "device_type", "The type that autocast casts to on a kind of device.",
      [](std::string_view kind) { return state().dtype[kind_of(kind)]; });
  def(kFunction, "set_autocast_dtype", "device_type, dtype", "Sets the type that autocast casts to on a kind of device.",
      [](std::string_view kind, DType t) { state().dtype[kind_of(kind)] = half_type(t); });
  def(kFunction, "_autocast_rules", "", "What is cast for the functions on PyTorch's lists: (on cpu, on other kinds) by name.",
      []() -> nb::object {
        nb::dict rules;
        for (const auto& [name, r] : operators::rows())
          if (r.autocast.cpu != operators::Cast::None || r.autocast.others != operators::Cast::None)
            rules[nb::str(name.data(), name.size())] = nb::make_tuple(word(r.autocast.cpu), word(r.autocast.others));
        return rules;
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
