// One function per kind of instruction; execute() dispatches to them.
#pragma once

#include "ir/instruction.h"

namespace naru::host {

void run(const ir::Map&);
void run(const ir::Reduce&);
void run(const ir::ArgReduce&);
void run(const ir::Scan&);
void run(const ir::Gather&);
void run(const ir::Scatter&);
void run(const ir::MatMul&);
void run(const ir::Sort&);
void run(const ir::CopyBytes&);

}  // namespace naru::host
