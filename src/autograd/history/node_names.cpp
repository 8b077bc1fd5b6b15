// Names of the nodes that operators of the elementwise table create.
#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

#include "ir/op_ids.h"
#include "ops/elementwise/elementwise.h"

namespace naru::ops {
namespace {

// Node names in PyTorch that do not follow the pattern "add" -> "AddBackward0". They depend on which operands are scalars (bit k for
// operand k; kAny: all other cases).
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

// Names of operands that are not "self" and "other".
struct OperandNames {
  ir::OpId id;
  std::array<std::string_view, 3> names;
};
constexpr OperandNames kOperandNames[] = {
    {ir::op::pow, {"self", "exponent"}},
    {ir::op::lerp, {"self", "end", "weight"}},
    {ir::op::clamp, {"self", "min", "max"}},
    {ir::op::clamp_min, {"self", "min"}},
    {ir::op::clamp_max, {"self", "max"}},
    {ir::op::leaky_relu, {"self", "negative_slope"}},
    {ir::op::elu, {"self", "alpha"}},
    {ir::op::softplus, {"self", "beta", "threshold"}},
    {ir::op::threshold, {"self", "threshold", "value"}},
    {ir::op::where, {"condition", "self", "other"}},
    {ir::op::add_scaled, {"self", "other", "alpha"}},
};

// Names of the saved tensors of other operators' nodes, in order.
struct SavedNames {
  std::string_view node;
  std::array<std::string_view, 2> names;
};
constexpr SavedNames kSavedNames[] = {
    {"BmmBackward0", {"self", "mat2"}},
    {"MvBackward0", {"self", "vec"}},
    {"DotBackward0", {"self", "tensor"}},
    {"MseLossBackward0", {"self", "target"}},
    {"SmoothL1LossBackward0", {"self", "target"}},
    {"SoftmaxBackward0", {"result"}},
    {"LogSoftmaxBackward0", {"result"}},
    {"ProdBackward0", {"self"}},
    {"ProdBackward1", {"self"}},
    {"CumprodBackward0", {"self"}},
    {"MaxBackward1", {"self"}},
    {"MinBackward1", {"self"}},
    {"MaxBackward0", {"indices"}},
    {"MinBackward0", {"indices"}},
    {"StdBackward0", {"self"}},
    {"VarBackward0", {"self"}},
    {"LinalgVectorNormBackward0", {"self"}},
    {"LogsumexpBackward0", {"self"}},
    {"NativeLayerNormBackward0", {"input", "weight"}},
    {"ConvolutionBackward0", {"input", "weight"}},
    {"GatherBackward0", {"index"}},
    {"MaskedFillBackward0", {"mask"}},
};

}  // namespace

size_t operand_called(ir::OpId id, std::string_view name) {
  std::array<std::string_view, 3> names{"self", "other"};
  for (const OperandNames& n : kOperandNames)
    if (n.id == id) names = n.names;
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

const char* backward_name(ir::OpId id, std::span<const Operand> operands) {
  // Indexed by operator and by the set of scalar operands.
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

namespace naru::autograd {

int saved_index(const std::string& node, std::string_view saved) noexcept {
  for (const auto& n : ops::kSavedNames)
    if (n.node == node)
      for (size_t i = 0; i < n.names.size(); ++i)
        if (n.names[i] == saved) return static_cast<int>(i);
  return -1;
}

}  // namespace naru::autograd
