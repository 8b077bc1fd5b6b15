#include "runtime/queue/sync.h"

#include <fmt/format.h>

#include "core/language.h"
#include "core/tensor_impl.h"
#include "naru/error.h"
#include "runtime/queue/capture.h"

namespace naru {
namespace {

thread_local CountSyncs* counting = nullptr;
thread_local SyncMode mode = SyncMode::Default;

}  // namespace

CountSyncs::CountSyncs() : outer_(counting) { counting = this; }
CountSyncs::~CountSyncs() { counting = outer_; }

struct SyncWatch {
  static void note(const Synchronization& s) {
    for (CountSyncs* c = counting; c; c = c->outer_) c->list_.push_back(s);
  }
};

SyncMode sync_mode() noexcept { return mode; }
void set_sync_mode(SyncMode m) noexcept { mode = m; }

namespace runtime {

void note_synchronization(const char* what, Device device) {
  if (captures_under_way.load(std::memory_order_relaxed) != 0) check_wait(what, device);
  if (!counting && mode == SyncMode::Default) return;
  Synchronization s{what, device, line_text(current_line())};
  if (mode == SyncMode::Error)
    throw SynchronizationError(
        fmt::format("called a synchronizing operation where that is forbidden: {} ({}{}{}). To fix it, keep the value on the device, copy "
                    "with {} from or to pinned memory, or move the read behind the region",
                    s.what, device.str(), s.where.empty() ? "" : ", at ", s.where, spelled("non_blocking = true", "non_blocking=True")));
  SyncWatch::note(s);
  if (mode == SyncMode::Warn)
    warn(fmt::format("called a synchronizing operation: {} ({}{}{})", s.what, device.str(), s.where.empty() ? "" : ", at ", s.where));
}

}  // namespace runtime
}  // namespace naru
