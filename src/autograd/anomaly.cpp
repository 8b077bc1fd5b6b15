#include "autograd/anomaly.h"

#include <cstdio>

namespace naru::autograd {

std::atomic<bool> anomaly_mode{false};
std::atomic<bool> anomaly_checks_nan{true};
std::string (*stack_text)() = nullptr;
void (*anomaly_warner)(const std::string&) = nullptr;

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
  if (anomaly_warner)
    anomaly_warner(text);
  else
    std::fprintf(stderr, "%s\n", text.c_str());
}

}  // namespace naru::autograd
