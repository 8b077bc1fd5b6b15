#include "render/c/launch.h"

#include <fmt/format.h>

#include <cstdlib>

namespace naru::render::c {

std::string opening(const Head& h) {
  std::string text = fmt::format("typedef {} I;\ntypedef struct {{\n", h.wide ? "i64" : "i32");
  if (!h.memory.empty()) text += fmt::format("  i64 o[{}];\n", h.memory.size());
  if (h.params > 0) text += fmt::format("  u64 p[{}];\n", h.params);
  if (h.numbers > 0) text += fmt::format("  I d[{}];\n", h.numbers);
  text += fmt::format("}} A;\n{}KERNEL({}) k(", h.functions, h.group);
  for (size_t i = 0; i < h.memory.size(); ++i) text += fmt::format("GLOBAL u8* b{}, ", i);
  text += "A a) {\n";
  for (size_t i = 0; i < h.memory.size(); ++i) {
    const bool written = h.memory[i][0] == '=';
    const std::string type = written ? h.memory[i].substr(1) : "const " + h.memory[i];
    text += fmt::format("  GLOBAL {0}* m{1} = (GLOBAL {0}*)(b{1} + a.o[{1}]);\n", type, i);
  }
  return text;
}

bool is_wide(const ir::Space& s) noexcept {
  constexpr int64_t kMost = (int64_t{1} << 31) - 65536;
  if (s.numel() > kMost) return true;
  for (int k = 0; k < s.count; ++k) {
    int64_t reach = 0;
    for (int d = 0; d < s.rank; ++d) reach += (s.sizes[d] - 1) * std::llabs(s.operands[k].strides[d]) / s.operands[k].item;
    if (reach > kMost) return true;
  }
  return false;
}

}  // namespace naru::render::c
