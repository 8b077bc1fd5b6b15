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

std::string camel_case(const char* name) {
  std::string s;
  bool up = true;
  for (const char* p = name; *p; ++p) {
    if (*p != '_') s += up ? static_cast<char>(std::toupper(*p)) : *p;
    up = *p == '_';
  }
  return s;
}

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
  const auto& names = record_of(id).operands;
  return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
}

const char* backward_name(ir::OpId id, std::span<const Operand> operands) {
  // Indexed by operator and by the set of scalar operands.
  static const auto& names = *[] {
    auto* const all = new std::vector<std::string>;
    for (size_t r = 0; r < table().size(); ++r)
      for (unsigned numbers = 0; numbers < 8; ++numbers) {
        std::string name = camel_case(table()[r].name) + "Backward0";
        for (const operators::NodeName& n : record_of(static_cast<ir::OpId>(r)).nodes)
          if (n.name && (n.numbers == operators::kAnyNumbers || n.numbers == numbers)) name = n.name;
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
