#include "render/isa.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace naru::render {
namespace {

// The architectures; at most one of them is non-empty in this process.
constexpr std::span<const InstructionSet> (*kArchitectures[])() noexcept = {x86_instruction_sets, a64_instruction_sets};

std::span<const InstructionSet> table() noexcept {
  static const std::span<const InstructionSet> sets = [] {
    for (const auto sets_of : kArchitectures)
      if (const auto found = sets_of(); !found.empty()) return found;
    return std::span<const InstructionSet>();
  }();
  return sets;
}

Isa isa_of_processor() noexcept {
  uint8_t n = 0;
  while (n < table().size() && n + 1 < static_cast<int>(kMostIsas) && table()[n].supported()) ++n;
  return static_cast<Isa>(n);
}

std::string names() {
  std::string text;
  for (size_t i = table().size(); i-- > 0;) text += std::string(table()[i].name) + (i > 0 ? ", " : " ");
  return text + (text.empty() ? "none" : "or none");
}

}  // namespace

const InstructionSet& instruction_set(Isa isa) noexcept { return table()[static_cast<size_t>(isa) - 1]; }

const char* name_of(Isa isa) noexcept { return isa == Isa::None ? "none" : instruction_set(isa).name; }

Isa isa_named(std::string_view name) noexcept {
  const auto at = std::find_if(table().begin(), table().end(), [&](const InstructionSet& s) { return s.name == name; });
  return static_cast<Isa>(at == table().end() ? 0 : at - table().begin() + 1);
}

std::vector<Isa> known_isas() {
  std::vector<Isa> all;
  for (size_t i = 0; i < table().size(); ++i) all.push_back(static_cast<Isa>(i + 1));
  return all;
}

bool can_run(Isa isa) noexcept {
  static const Isa best = isa_of_processor();
  return isa != Isa::None && isa <= best;
}

Isa choose_isa(Isa have, const char* jit, const char* wanted) noexcept {
  if (jit != nullptr && std::string_view(jit) == "0") return Isa::None;
  const std::string_view name = wanted != nullptr ? wanted : "";
  if (name == "none") return Isa::None;
  if (const Isa isa = isa_named(name); isa != Isa::None) return std::min(have, isa);
  if (!name.empty()) std::fprintf(stderr, "naru: NARU_ISA=%s is unknown and has no effect; it may be %s\n", wanted, names().c_str());
  return have;
}

Isa best_isa() noexcept {
  static const Isa best = choose_isa(isa_of_processor(), std::getenv("NARU_JIT"), std::getenv("NARU_ISA"));
  return best;
}

}  // namespace naru::render
