#include "core/capabilities.h"

namespace naru {

std::string_view missing_in(const Arithmetic& a) noexcept {
  if (!a.denormals) return "denormal float32 numbers";
  if (!a.exact_fma) return "an exact fused multiply-add";
  if (!a.exact_division && !a.fp64) return "correctly rounded division";
  if (!a.exact_root && !a.fp64) return "correctly rounded square roots";
  if (!a.atomics) return "atomic operations";
  return "";
}

}  // namespace naru
