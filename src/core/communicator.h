// Communicator: a device's place among devices of other processes, as a vendor's library (NCCL, RCCL) joins them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "naru/dtype.h"

namespace naru {

class Communicator {
 public:
  enum class What : uint8_t { AllReduce, Reduce, Broadcast, AllGather, ReduceScatter, Send, Receive };
  // The reductions that libraries have.
  enum class Op : uint8_t { Sum, Product, Max, Min, Average };
  struct Call {
    What what = What::AllReduce;
    const void* from = nullptr;
    void* to = nullptr;
    size_t count = 0;  // elements of one rank
    DType type = DType::U8;
    Op op = Op::Sum;
    int peer = 0;  // the root, or the other rank

    // Elements at `from` and `to`, of `size` ranks.
    size_t read(int size) const noexcept { return !from ? 0 : what == What::ReduceScatter ? count * static_cast<size_t>(size) : count; }
    size_t written(int size) const noexcept { return !to ? 0 : what == What::AllGather ? count * static_cast<size_t>(size) : count; }
  };

  Communicator() = default;
  Communicator(const Communicator&) = delete;
  virtual ~Communicator() = default;
  virtual int size() const noexcept = 0;
  // Puts the calls, as one, behind the work that a stream of the device has; `stream` is the driver's handle. The device's context must be
  // current. Returns when they are on the stream, which is before they are done. Throws RuntimeError if the library refuses them.
  virtual void enqueue(std::span<const Call> calls, uint64_t stream) = 0;
  // What the library has found wrong with calls that are under way; "" if nothing. From any thread.
  virtual std::string trouble() = 0;
  // Ends what is under way, unfinished, and makes all later calls throw. From any thread.
  virtual void abort() noexcept = 0;
};

}  // namespace naru
