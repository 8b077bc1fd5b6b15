// The names of the nodes that the operators of the elementwise table leave behind.
#include <cctype>
#include <string>
#include <vector>

#include "ir/op_ids.h"
#include "ops/elementwise.h"

namespace naru::ops {
namespace {

// Where PyTorch's node has another name than "AddBackward0" from "add": by which operands are numbers (bit k for operand k; kAny: the rest).
constexpr unsigned kAny = ~0u;
struct NodeName {
  ir::OpId id;
  unsigned numbers;
  const char* name;
};
constexpr NodeName kNodeNames[] = {
    {ir::op::sub, 1, "RsubBackward1"},          {ir::op::pow, 1, "PowBackward2"},
    {ir::op::pow, 0, "PowBackward1"},           {ir::op::remainder, 0, "RemainderBackward1"},
    {ir::op::fmod, 0, "FmodBackward1"},         {ir::op::clamp, kAny, "ClampBackward1"},
    {ir::op::lerp, 0, "LerpBackward1"},         {ir::op::square, kAny, "PowBackward0"},
    {ir::op::add_scaled, kAny, "AddBackward0"}, {ir::op::log1p, kAny, "Log1PBackward0"},
    {ir::op::relu6, kAny, "HardtanhBackward0"}, {ir::op::logsigmoid, kAny, "LogSigmoidBackward0"},
};

std::string camel_case(const char* name) {
  std::string s;
  bool up = true;
  for (const char* p = name; *p; ++p) {
    if (*p != '_') s += up ? static_cast<char>(std::toupper(*p)) : *p;
    up = *p == '_';
  }
  return s;
}

}  // namespace

const char* backward_name(ir::OpId id, std::span<const Operand> operands) {
  // By operator and numbers.
  static const auto& names = *[] {
    auto* const all = new std::vector<std::string>;
    for (size_t r = 0; r < table().size(); ++r)
      for (unsigned numbers = 0; numbers < 8; ++numbers) {
        std::string name = camel_case(table()[r].name) + "Backward0";
        for (const NodeName& n : kNodeNames)
          if (n.id == r && (n.numbers == kAny || n.numbers == numbers)) name = n.name;
        all->push_back(std::move(name));
      }
    return all;
  }();
  unsigned numbers = 0;
  for (size_t i = 0; i < operands.size(); ++i) numbers |= static_cast<unsigned>(!operands[i].is_tensor()) << i;
  return names[static_cast<size_t>(id) * 8 + numbers].c_str();
}

}  // namespace naru::ops
