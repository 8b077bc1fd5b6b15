#include "render/c/sort_pairs.h"

#include <fmt/format.h>

namespace naru::render::c {

std::string key_function(DType t, bool descending, int low) {
  const bool wide = size_of(t) == 8 && low > 32;
  const char* u = wide ? "u64" : "u32";
  std::string body;
  const auto of_float = [&](const char* sign, const char* infinity, const char* all) {
    return fmt::format(
        "  const {0} m = x & ~({0}){1} & ({0}){3};\n"
        "  const {0} k = m > ({0}){2} ? ({0}){3} : (x & ({0}){1}) != 0 && m != 0 ? ~m & ({0}){3} & ~({0}){1} : m | ({0}){1};\n",
        u, sign, infinity, all);
  };
  if (low < 64) return fmt::format("FUNCTION {0} key_of({0} x) {{ return {1}x; }}\n", u, descending ? "~" : "");
  switch (t) {
    case DType::Bool:
    case DType::U8:
      body = "  const u32 k = x;\n";
      break;
    case DType::I8:
      body = "  const u32 k = (x ^ 0x80u) & 0xffu;\n";
      break;
    case DType::I16:
      body = "  const u32 k = (x ^ 0x8000u) & 0xffffu;\n";
      break;
    case DType::I32:
      body = "  const u32 k = x ^ 0x80000000u;\n";
      break;
    case DType::I64:
      body = "  const u64 k = x ^ (u64)1 << 63;\n";
      break;
    case DType::F16:
      body = of_float("0x8000u", "0x7c00u", "0xffffu");
      break;
    case DType::BF16:
      body = of_float("0x8000u", "0x7f80u", "0xffffu");
      break;
    case DType::F32:
      body = of_float("0x80000000u", "0x7f800000u", "0xffffffffu");
      break;
    case DType::F64:
      body = of_float("0x8000000000000000", "0x7ff0000000000000", "0xffffffffffffffff");
      break;
  }
  return fmt::format("FUNCTION {0} key_of({0} x) {{\n{1}  return {2}k;\n}}\n", u, body, descending ? "~" : "");
}

const char* bits_type(DType t) noexcept {
  constexpr const char* kNames[] = {"", "u8", "u16", "", "u32", "", "", "", "u64"};
  return kNames[size_of(t)];
}

std::string pair_before(const std::string& i, const std::string& j) {
  return fmt::format("(keys[{0}] < keys[{1}] || (keys[{0}] == keys[{1}] && places[{0}] < places[{1}]))", i, j);
}

std::string exchange_pairs(const char* key) {
  return fmt::format(
      "{{ const {} k = keys[i]; keys[i] = keys[j]; keys[j] = k; const u32 p = places[i]; places[i] = places[j]; places[j] = p; }}", key);
}

}  // namespace naru::render::c
