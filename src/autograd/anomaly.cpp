#include "autograd/anomaly.h"

namespace naru::autograd {

std::atomic<bool> anomaly_mode{false};
std::atomic<bool> anomaly_checks_nan{true};
std::string (*stack_text)() = nullptr;

void note_stack(Node& node) {
  if (stack_text) node.ensure_extras().made_at = stack_text();
}

void report_failure(const Node& node) {
  const Node::Extras* x = node.extras();
  const std::string text =
      x && !x->made_at.empty()
          ? fmt::format("Error detected in {}. Traceback of forward call that caused the error:\n{}", node.name(), x->made_at)
          : fmt::format(
                "Error detected in {}. No forward pass information available. Enable detect anomaly during forward pass for more "
                "information.",
                node.name());
  try {
    warn(text);
  } catch (...) {  // a warning that is an error must not hide the failure
  }
}

}  // namespace naru::autograd
