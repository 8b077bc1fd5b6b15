// Synchronizations: where the host waits for a device. While the host waits, it can't submit the device's next work, so a training step
// should have few.
#pragma once

#include <string>
#include <vector>

#include "naru/device.h"

namespace naru {

struct Synchronization {
  std::string what;  // "the host reads what a device writes", "copy", "synchronize" ...
  Device device;
  std::string where;  // "train.py:12"; in C++ the location of a SourceLocationScope (naru/source_location.h), or ""
};

// Records the synchronizations of the calling thread within a scope. Scopes may be nested; each records its own list.
class CountSyncs {
 public:
  CountSyncs();
  CountSyncs(const CountSyncs&) = delete;
  CountSyncs& operator=(const CountSyncs&) = delete;
  ~CountSyncs();
  const std::vector<Synchronization>& list() const noexcept { return list_; }

 private:
  friend struct SyncWatch;
  std::vector<Synchronization> list_;
  CountSyncs* outer_;
};

// What a synchronization of the calling thread does besides waiting: nothing, a warning (see set_warner in naru/error.h), or throw
// SynchronizationError.
enum class SyncMode : uint8_t { Default, Warn, Error };
SyncMode sync_mode() noexcept;
void set_sync_mode(SyncMode mode) noexcept;

// Makes synchronizations of the calling thread throw SynchronizationError within a scope.
class ForbidSync {
 public:
  ForbidSync() : before_(sync_mode()) { set_sync_mode(SyncMode::Error); }
  ForbidSync(const ForbidSync&) = delete;
  ForbidSync& operator=(const ForbidSync&) = delete;
  ~ForbidSync() { set_sync_mode(before_); }

 private:
  SyncMode before_;
};

}  // namespace naru
