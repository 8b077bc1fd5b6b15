// Synchronizations: the places where the host waits for a device. While it waits it can't prepare the device's next work, so a
// training step should have few.
#pragma once

#include <string>
#include <vector>

#include "naru/device.h"

namespace naru {

struct Synchronization {
  std::string what;  // "the host reads what a device writes", "copy", "synchronize" ...
  Device device;
  std::string where;  // "train.py:12"; in C++ the place of a Here (naru/place.h), or ""
};

// Lists the synchronizations of the calling thread from its construction to its destruction. They may be nested: each lists its own.
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

// What a synchronization of the calling thread does beside waiting: nothing, a warning (see set_warner in naru/error.h), or a
// SynchronizationError.
enum class SyncMode : uint8_t { Default, Warn, Error };
SyncMode sync_mode() noexcept;
void set_sync_mode(SyncMode mode) noexcept;

// Synchronizations of the calling thread throw SynchronizationError as long as it lives.
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
