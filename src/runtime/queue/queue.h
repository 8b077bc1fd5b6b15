// Queue: a stream of instructions in program order. Elementwise nodes are deferred and fused with their neighbours and with a reduction of
// their results; everything else is submitted immediately, after the deferred nodes. It also tracks the pending uses of storages, so that
// no access is too early.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/small_vector.h"
#include "core/tensor_impl.h"
#include "runtime/device/backend.h"
#include "runtime/queue/deferred_reduction.h"

namespace naru::runtime {

class Capture;
struct Recording;

class Queue {
 public:
  // `number` and `priority` of the stream (see runtime/queue/streams.h).
  Queue(Backend& backend, Device device, int number = 0, int priority = 0);
  ~Queue();

  // Adds op(sources) -> out (converted to out's dtype) over out's shape; it runs at the latest when its result is read.
  void append(ir::OpId id, std::span<const Source> sources, const TensorImpl& out);
  // Also defers `reduce`, if it reduces a deferred result: results that have no other reader by the time it runs are reduced as they are
  // computed, and never stored. `reduce` is over `shape`; its dimension d is dimension order[d] of `shape`; its inputs are `reads`;
  // addresses are filled in later. Returns false and changes nothing if it can't be deferred.
  bool defer(ir::Reduce& reduce, const Dims& shape, const Dims& order, std::span<const TensorImpl* const> reads, const TensorImpl& out);
  // Runs `instruction` after everything before it. Allocates memory for written storages that have none. Returns its number.
  uint64_t submit(ir::Instruction&& instruction, const Accesses& accesses);
  // Replays recorded work, after everything before it.
  void replay(Recording& recording);
  // Until called again with null, sends the queue's work to `capture` instead of the device (see runtime/queue/capture.h). Throws
  // RuntimeError if another capture is using the queue.
  void record_into(Capture* capture);
  bool recording() const noexcept { return capture_.load(std::memory_order_relaxed) != nullptr; }
  // Submits all deferred work to the device.
  void flush();
  // The same, unless a reduction is deferred.
  void flush_nodes();
  // Waits until the device has done all submitted work; throws the first kept error.
  void synchronize();

  // Makes all later work wait for the work that `other` has been given so far.
  void wait(Queue& other);
  void wait(StreamPoint point);
  // A point after all work so far: returns its number, and the time it was reached if `stamp` is not null.
  uint64_t point(std::unique_ptr<TimeStamp>* stamp = nullptr);

  Device device() const noexcept { return device_; }
  int number() const noexcept { return number_; }
  int priority() const noexcept { return priority_; }
  DeviceStream& stream() noexcept { return *stream_; }
  bool synchronous() const noexcept { return synchronous_; }
  // Rebinds the queue to the device that replaces its removed one. No other thread may use it meanwhile.
  void renew();
  // capabilities: what the device supports. takes: whether an optional library runs an instruction that capabilities() leaves out.
  const Capabilities& capabilities() const noexcept { return capabilities_; }
  bool takes(const ir::Instruction& instruction) const { return backend_.takes(device_, instruction); }

 private:
  void flush_locked();
  void run(Group& group, Group::Chosen stored);
  void run(DeferredReduction& deferred);
  const char* unsupported(const ir::Instruction& instruction) const;
  uint64_t submit_locked(ir::Instruction&& instruction, const Accesses& accesses);
  void await(Storage& storage, bool write);
  // Submits it to the stream; returns its number.
  uint64_t give(ir::Instruction&& instruction, std::vector<Ref<Storage>> hold, const Accesses& accesses);

  Device device_;
  int number_, priority_;
  Backend& backend_;
  std::unique_ptr<DeviceStream> stream_;
  Capabilities capabilities_;
  const bool synchronous_;
  bool supports_everything_;
  const size_t most_deferred_;  // bytes
  std::recursive_mutex mutex_;
  std::atomic<Capture*> capture_{nullptr};  // written with the lock held
  // Deferred work: a group and its reduction, followed by another group.
  std::unique_ptr<DeferredReduction> deferred_;
  Group group_;
};

// Makes the storage's contents ready for the host to read (write: also to overwrite): flushes the queue that holds work on it, and waits.
void wait_for_host(Storage& storage, bool write = false);
// Number of active captures of cpu; while there are any, no work is done immediately.
inline std::atomic<int> host_captures{0};
// True if wait_for_host would have to flush or wait.
inline bool is_pending(const Storage& s) noexcept {
  return s.pending.load(std::memory_order_acquire) != nullptr || !s.pending_uses.empty() ||
         host_captures.load(std::memory_order_relaxed) != 0;
}

// NARU_FUSE. False: every node runs on its own, immediately. set_fusion returns the previous value.
bool fusion() noexcept;
bool set_fusion(bool on) noexcept;

// Flushes the queues of the calling thread and of all devices.
void flush_all();

}  // namespace naru::runtime
