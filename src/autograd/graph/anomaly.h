// Anomaly mode: nodes record the user's call stack, and backward reports it when a node fails or returns NaN.
#pragma once

#include <atomic>
#include <string>

#include "autograd/graph/node.h"

namespace naru::autograd {

extern std::atomic<bool> anomaly_mode;
extern std::atomic<bool> anomaly_checks_nan;

// Notes the user's call stack: the language's, or the native one.
void note_stack(Node& node);
// Reports the call stack of the operator that created `node`, whose backward has failed.
void report_failure(const Node& node);

}  // namespace naru::autograd
