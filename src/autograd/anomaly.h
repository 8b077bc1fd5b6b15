// Anomaly mode: nodes remember the program's stack, and backward reports it where a node fails or gives NaN.
#pragma once

#include <atomic>
#include <string>

#include "autograd/node.h"

namespace naru::autograd {

extern std::atomic<bool> anomaly_mode;
extern std::atomic<bool> anomaly_checks_nan;
// The program's stack as text: the native one, or Python's, whose module sets it.
extern std::string (*stack_text)();

void note_stack(Node& node);
// Says where the operator was called that left `node`, whose backward has failed.
void report_failure(const Node& node);

}  // namespace naru::autograd
