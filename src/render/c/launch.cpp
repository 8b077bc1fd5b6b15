#include "render/c/launch.h"

#include <fmt/format.h>

#include <cstdlib>
#include <type_traits>

#include "ir/inspect.h"

namespace naru::render::c {

bool in_memory(size_t memory, size_t argument_bytes, const Target& target) noexcept {
  return 8 * memory + argument_bytes > target.parameters;
}

std::string opening(const Head& h, const Target& target) {
  const size_t bytes =
      8 * (h.memory.size() + static_cast<size_t>(h.params)) + (static_cast<size_t>(h.numbers) * (h.wide ? 8 : 4) + 7) / 8 * 8;
  const bool apart = in_memory(h.memory.size(), bytes, target);
  std::string text = fmt::format("typedef {} I;\ntypedef struct {{\n", h.wide ? "i64" : "i32");
  if (!h.memory.empty()) text += fmt::format("  i64 o[{}];\n", h.memory.size());
  if (h.params > 0) text += fmt::format("  u64 p[{}];\n", h.params);
  if (h.numbers > 0) text += fmt::format("  I d[{}];\n", h.numbers);
  text += fmt::format("}} A;\n{}KERNEL({}) k(", h.functions, h.group);
  text += parameters({"GLOBAL", "u8", "b", "A", "a", "at", "\n  "}, h.memory.size(), apart, *target.dialect) + "\n";
  for (size_t i = 0; i < h.memory.size(); ++i) {
    const bool written = h.memory[i][0] == '=';
    const std::string type = written ? h.memory[i].substr(1) : "const " + h.memory[i];
    text += fmt::format("  GLOBAL {0}* m{1} = (GLOBAL {0}*)(b{1} + a.o[{1}]);\n", type, i);
  }
  return text;
}

std::string parameters(const ParameterWords& w, size_t memory, bool apart, const Dialect& dialect) {
  std::string text;
  for (size_t i = 0; i < memory; ++i)
    text += fmt::format("{} {}* {}{}{}, ", w.global, w.byte, w.pointer, i, fmt::format(fmt::runtime(dialect.number), i));
  if (dialect.arguments) return text + fmt::format(fmt::runtime(dialect.arguments), w.type, w.name, memory) + ") {";
  return text + (apart ? fmt::format("{} const {}* {}) {{{}const {} {} = *{};", w.global, w.type, w.at, w.line, w.type, w.name, w.at)
                       : fmt::format("{} {}) {{", w.type, w.name));
}

std::string Walk::position(const std::string& name, const std::string& from, int dims, const std::string& indent) const {
  if (dims == 0) return "";
  std::string text = fmt::format("{}I {}_rest = {};\n", indent, name, from);
  for (int d = dims - 1; d > 0; --d)
    text += fmt::format("{0}const I {1}{2} = {1}_rest % a.d[{3}];\n{0}{1}_rest /= a.d[{3}];\n", indent, name, d, size(d));
  return text + fmt::format("{0}const I {1}0 = {1}_rest;\n", indent, name);
}

std::string Walk::offset(int k, const std::string& name, int dims) const {
  std::string text;
  for (int d = 0; d < dims; ++d) text += fmt::format("{}{}{} * a.d[{}]", text.empty() ? "" : " + ", name, d, stride(k, d));
  return text.empty() ? "0" : text;
}

void add(Arguments& arguments, const ir::Space& space) {
  for (int d = 0; d < space.rank; ++d) arguments.add(space.sizes[d]);
  for (int k = 0; k < space.count; ++k)
    for (int d = 0; d < space.rank; ++d) arguments.add(space.operands[k].strides[d] / space.operands[k].item);
}

// floor(n / d) = (n * (2^32 + multiplier) >> 32) >> shift, with the least shift for which 2^shift >= d (Granlund and Montgomery, 1994). The sum
// stays below 2^32, because n is below 2^31.
const char* const kQuotient =
    "FUNCTION u32 quotient(u32 n, u32 multiplier, u32 shift) { return ((u32)((u64)n * multiplier >> 32) + n) >> shift; }\n";

void add_divisor(Arguments& arguments, int64_t divisor) {
  const auto d = static_cast<uint64_t>(divisor);
  assert(d >= 1 && d < uint64_t{1} << 31);
  int shift = 0;
  while ((uint64_t{1} << shift) < d) ++shift;
  arguments.add(static_cast<int64_t>(((uint64_t{1} << 32) * ((uint64_t{1} << shift) - d)) / d + 1));
  arguments.add(shift);
}

std::string sums_of_group(const std::string& s, const std::string& type, int group, const std::string& indent) {
  std::string text = indent + "BARRIER;\n";
  // Unrolled: PoCL runs loops around barriers slowly.
  for (int by = 1; by < group; by *= 2)
    text += fmt::format(
        "{0}{{\n{0}  const {1} t = ITEM >= {2} ? {3}[ITEM - {2}] : 0;\n{0}  BARRIER;\n{0}  {3}[ITEM] += t;\n{0}  BARRIER;\n{0}}}\n", indent,
        type, by, s);
  return text;
}

Step last_step(const ir::Space& space, int k) noexcept {
  const int64_t stride = space.rank == 0 ? 0 : space.operands[k].strides[space.rank - 1];
  return stride == 0 ? kStays : stride == space.operands[k].item ? kNext : kStrides;
}

bool starts_in_fours(const ir::Operand& operand, int dims) noexcept {
  const int64_t four = 4 * operand.item;
  bool all = reinterpret_cast<uintptr_t>(operand.data) % static_cast<uintptr_t>(four) == 0;
  for (int d = 0; d < dims; ++d) all &= operand.strides[d] % four == 0;
  return all;
}

std::string param_text(uint64_t slot, ir::VType type) {
  switch (type) {
    case ir::VType::F32:
      return fmt::format("as_f32((u32)a.p[{}])", slot);
    case ir::VType::F64:
      return fmt::format("as_f64(a.p[{}])", slot);
    case ir::VType::Bool:
      return fmt::format("((a.p[{}] & 1) != 0)", slot);
    case ir::VType::I32:
      return fmt::format("(i32)a.p[{}]", slot);
    case ir::VType::I64:
      return fmt::format("(i64)a.p[{}]", slot);
  }
  return "";
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

void run(const ir::Exchange&, Launcher&) {
  throw NotImplementedError("this kind of device has no library that joins it with devices of other processes");
}

void run_any(const ir::Instruction& instruction, Launcher& launcher) {
  std::visit(
      [&](const auto& i) {
        using Kind = std::decay_t<decltype(i)>;
        if constexpr (!std::is_same_v<Kind, ir::CopyBytes> && !ir::HostOnly<Kind>) run(i, launcher);
      },
      instruction);
}

Capabilities capabilities_of(const Target& target) {
  Capabilities c;
  c.arithmetic = target.arithmetic;
  c.row_fused = true;
  c.reduces_together = !target.loops;
  c.longest_chosen_row = longest_chosen_row(target);
  if (!target.arithmetic.fp64) c.exclude(DType::F64);
  for (const char* op : ir::host_only_names()) c.exclude_host_only(op);
  return c;
}

}  // namespace naru::render::c
