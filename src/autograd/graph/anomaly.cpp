#include "autograd/graph/anomaly.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define NARU_HAS_BACKTRACE
#endif

namespace naru {

void set_detect_anomaly(bool on, bool check_nan) noexcept {
  autograd::anomaly_mode = on;
  autograd::anomaly_checks_nan = check_nan;
}
bool anomaly_enabled() noexcept { return autograd::anomaly_mode.load(std::memory_order_relaxed); }
bool anomaly_check_nan_enabled() noexcept { return autograd::anomaly_checks_nan.load(std::memory_order_relaxed); }

namespace autograd {
namespace {

// The addresses on the stack, with function names if the program exports them (-rdynamic); addr2line finds the lines.
std::string native_stack() {
  std::string text;
#ifdef NARU_HAS_BACKTRACE
  std::array<void*, 64> at;
  const int n = backtrace(at.data(), static_cast<int>(at.size()));
  char** const names = backtrace_symbols(at.data(), n);
  if (!names) return text;
  for (int i = n - 1; i >= 0; --i) text += std::string("  ") + names[i] + "\n";
  std::free(names);
#endif
  return text;
}

}  // namespace

std::atomic<bool> anomaly_mode{false};
std::atomic<bool> anomaly_checks_nan{true};

void note_stack(Node& node) {
  Language* const l = language();
  std::optional<std::string> text = l ? l->stack_text() : std::nullopt;
  node.ensure_extras().made_at = text ? *std::move(text) : native_stack();
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
  } catch (...) {  // a warning that was made an error must not hide the failure
  }
}

}  // namespace autograd
}  // namespace naru
