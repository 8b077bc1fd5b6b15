// Queue: a stream of instructions in program order. Elementwise nodes are deferred and fused with their neighbours, and with a reduction of
// their results; everything else is submitted at once, behind what was deferred. It also keeps storages' histories, so that no one reads too early or overwrites too soon.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/small_vector.h"
#include "core/tensor_impl.h"
#include "runtime/backend.h"
#include "runtime/deferred_reduction.h"

namespace naru::runtime {

class Capture;
struct Recording;

class Queue {
 public:
  // `number` and `priority` of the stream (see runtime/streams.h).
  Queue(Backend& backend, Device device, int number = 0, int priority = 0);
  ~Queue();

  // Adds op(sources) -> out (converted to out's dtype) over out's shape, to be run no later than somebody reads the result.
  void append(ir::OpId id, std::span<const Source> sources, const TensorImpl& out);
  // Holds `reduce` back as well, where it reduces a result that is deferred itself: what nobody wants by the time it runs is reduced as it is
  // computed, and never written. `reduce` is over `shape`, whose dimension order[d] is its dimension d; its inputs are `reads`; addresses are
  // filled in later. False: it can't be deferred, and nothing has changed.
  bool defer(ir::Reduce& reduce, const Dims& shape, const Dims& order, std::span<const TensorImpl* const> reads, const TensorImpl& out);
  // Runs `instruction` behind everything before it. Storages written get memory if they have none. Returns its number.
  uint64_t submit(ir::Instruction&& instruction, const Accesses& accesses);
  // Does what was recorded again, behind everything before it.
  void replay(Recording& recording);
  // From here to the next call with null, what the queue is given goes to `capture` instead of the device (see runtime/capture.h).
  // Throws RuntimeError where another one has it.
  void record_into(Capture* capture);
  bool recording() const noexcept { return capture_.load(std::memory_order_relaxed) != nullptr; }
  // Hands what is deferred to the device.
  void flush();
  // The same, unless a reduction is deferred.
  void flush_nodes();
  // Waits until the device has done all of it; throws the first error kept.
  void synchronize();

  // Everything later waits for what `other` has been given so far.
  void wait(Queue& other);
  void wait(StreamPoint point);
  // Behind everything so far: its number, and the time it was reached if `stamp` is not null.
  uint64_t point(std::unique_ptr<TimeStamp>* stamp = nullptr);

  Device device() const noexcept { return device_; }
  int number() const noexcept { return number_; }
  int priority() const noexcept { return priority_; }
  DeviceStream& stream() noexcept { return *stream_; }
  bool synchronous() const noexcept { return synchronous_; }
  // It goes on as the queue of the device that has come in place of its own, which went. Nobody else may use it meanwhile.
  void renew();
  // What the device can do; and whether a library of its does an instruction that capabilities() leaves out.
  const Capabilities& capabilities() const noexcept { return capabilities_; }
  bool takes(const ir::Instruction& instruction) const { return backend_.takes(device_, instruction); }

 private:
  void flush_locked();
  void run(Group& group, Group::Chosen stored);
  void run(DeferredReduction& deferred);
  const char* unsupported(const ir::Instruction& instruction) const;
  uint64_t submit_locked(ir::Instruction&& instruction, const Accesses& accesses);
  void await(Storage& storage, bool write);
  // Hands it to the stream; its number.
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
  std::atomic<Capture*> capture_{nullptr};  // written under the lock
  // What is deferred: a group and its reduction, then another group.
  std::unique_ptr<DeferredReduction> deferred_;
  Group group_;
};

// Makes the storage's contents ready for the host to read (write: also to overwrite): flushes the queue that holds work on it and waits.
void wait_for_host(Storage& storage, bool write = false);
// How many captures of cpu are under way: nothing is done at once then.
inline std::atomic<int> host_captures{0};
// Whether wait_for_host would have something to do.
inline bool is_pending(const Storage& s) noexcept {
  return s.pending.load(std::memory_order_acquire) != nullptr || !s.pending_uses.empty() ||
         host_captures.load(std::memory_order_relaxed) != 0;
}

// NARU_FUSE: false runs every node at once. set_fusion returns what it was.
bool fusion() noexcept;
bool set_fusion(bool on) noexcept;

// Flushes the queues of the calling thread and of all devices.
void flush_all();

}  // namespace naru::runtime
