#include "ir/inspect.h"

#include <algorithm>
#include <string_view>

#include "ir/op_ids.h"

namespace naru::ir {
namespace {

template <class I>
void names_of(const I& instruction, const std::function<void(const char*)>& f) {
  if constexpr (MadeOfParts<const I>) {
    for (const auto& part : instruction.parts) std::visit([&](const auto& work) { names_of(work, f); }, part.work);
  } else {
    each_program(instruction, [&](const Program& p, const std::vector<uint64_t>&) {
      for (int i = 0; i < p.nodes_count; ++i) f(op_table()[p.nodes[i].op].name);
    });
    if constexpr (requires { instruction.name(); }) f(instruction.name());
  }
}

// Adds the names that instruction kind I gives, except those that another kind has given.
template <class I>
void add_names(std::vector<OperatorName>& all) {
  if constexpr (requires { I::kNames; })
    for (const char* name : I::kNames)
      if (std::none_of(all.begin(), all.end(), [&](const OperatorName& n) { return std::string_view(n.name) == name; }))
        all.push_back({name, I::kFamily});
}

template <class... I>
void add_names_of_kinds(std::vector<OperatorName>& all, const std::variant<I...>*) {
  (add_names<I>(all), ...);
}

}  // namespace

void each_name(const Instruction& instruction, const std::function<void(const char*)>& f) {
  std::visit([&](const auto& i) { names_of(i, f); }, instruction);
}

std::vector<OperatorName> operator_names() {
  std::vector<OperatorName> all;
  for (size_t i = 0; i < op_table().size(); ++i)
    if (op_table()[i].expr) all.push_back({op_table()[i].name, i < op::kTable ? "elementwise" : i < op::copy ? "derivative" : "internal"});
  add_names_of_kinds(all, static_cast<const Instruction*>(nullptr));
  return all;
}

namespace {

template <class... I>
void add_host_only(std::vector<const char*>& all, const std::variant<I...>*) {
  const auto add = [&]<class K>(const K*) {
    if constexpr (HostOnly<K>) all.insert(all.end(), std::begin(K::kNames), std::end(K::kNames));
  };
  (add(static_cast<const I*>(nullptr)), ...);
}

}  // namespace

std::vector<const char*> host_only_names() {
  std::vector<const char*> all;
  add_host_only(all, static_cast<const Instruction*>(nullptr));
  return all;
}

}  // namespace naru::ir
