#include "core/capabilities.h"

namespace naru {

std::string_view missing_in(const Arithmetic& a) noexcept {
  if (!a.exact_fma) return "an exact fused multiply-add";
  if (!a.atomics) return "atomic operations";
  return "";
}

}  // namespace naru
