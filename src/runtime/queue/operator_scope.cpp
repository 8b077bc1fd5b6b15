#include "runtime/queue/operator_scope.h"

#include <algorithm>
#include <array>
#include <utility>

#include "runtime/queue/queue.h"

namespace naru::runtime {
namespace {

// The scopes of this thread, and the queues to be flushed at the end of the outermost.
struct Open {
  int depth = 0;
  size_t count = 0;
  std::array<Queue*, 8> queues{};
};
thread_local Open open_scopes;

}  // namespace

OperatorScope::OperatorScope() noexcept { ++open_scopes.depth; }

OperatorScope::~OperatorScope() {
  if (ended_) return;
  try {
    end();
  } catch (...) {
    // The error under way is the one to report.
  }
}

void OperatorScope::end() {
  ended_ = true;
  Open& open = open_scopes;
  if (--open.depth > 0) return;
  const std::array queues = open.queues;
  const size_t count = std::exchange(open.count, 0);
  for (size_t i = 0; i < count; ++i) queues[i]->flush();
}

bool OperatorScope::postpone(Queue& queue) noexcept {
  Open& open = open_scopes;
  if (open.depth == 0) return false;
  const auto end = open.queues.begin() + static_cast<std::ptrdiff_t>(open.count);
  if (std::find(open.queues.begin(), end, &queue) != end) return true;
  if (open.count == open.queues.size()) return false;
  open.queues[open.count++] = &queue;
  return true;
}

}  // namespace naru::runtime
