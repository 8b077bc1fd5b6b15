// Walks over the addresses in an instruction, and the names that instructions go by.
#pragma once

#include <functional>
#include <vector>

#include "ir/instruction.h"

namespace naru::ir {

// Calls f(address, what it is) for each operand but those of CopyBytes, whose two sides live on different devices. Null addresses are
// left out.
void each_address(Instruction& instruction, const std::function<void(void*&, const char*)>& f);

// The operators an instruction carries out, by the names users know: "add" and "exp" for a fused map, "sum", "argmax", "cumsum", "sort",
// "matmul", "gather" ...
void each_name(const Instruction& instruction, const std::function<void(const char*)>& f);

// Every name that each_name can give, but for "kernel", which is the user's own, each once: first the rows of the elementwise table, then their derivatives ("exp'a": by the first
// operand), then the others.
struct OperatorName {
  const char* name;
  const char* family;  // "elementwise", "derivative", "internal", "reduction", "scan", "index", "sort" or "product"
};
std::vector<OperatorName> operator_names();

}  // namespace naru::ir
