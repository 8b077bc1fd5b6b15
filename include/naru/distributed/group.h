// Process groups: each process is a rank, and all ranks call the same collectives in the same order.
//
//   distributed::ProcessGroup group(store, rank, size);           // in each process; returns when all ranks have joined
//   group.all_reduce(gradient, distributed::ReduceOp::Avg);      // in place, the same bits on every rank
//   auto work = group.all_reduce(gradient, ReduceOp::Sum, true); // asynchronous
//   work->wait();
//
// Reductions always use the same binary tree over the ranks, so the bits of an element depend neither on its place, nor on the tensor's size,
// nor on how the ranks communicate.
//
// Ranks on one host communicate through shared memory, others through MPI. Ranks compare their calls: if operations, dtypes or numbers of
// elements differ, each rank throws. If a rank ends, the ranks that wait for it notify all others; the group can't be used any more.
//
// Tensors on cuda devices go from device to device by NCCL, if all ranks have it: on the current stream, or beside it if asynchronous. The
// host waits for nothing, sums are the library's own (NARU_REDUCE=ordered and use_deterministic_algorithms(true) ask for the tree), and
// calls are compared only with TORCH_DISTRIBUTED_DEBUG=DETAIL.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "naru/condition_variable.h"
#include "naru/distributed/store.h"
#include "naru/tensor.h"

namespace naru::distributed {

enum class ReduceOp : uint8_t { Sum, Avg, Product, Min, Max, BAnd, BOr, BXor };

inline constexpr Milliseconds kDefaultTimeout{1'800'000};
inline constexpr int kAnyRank = -1;

// What carries tensors on devices: the devices' own library if all ranks have it, else the host's memory; or always that.
enum class OnDevices : uint8_t { Library, Host };

// An operation in progress. Thread-safe.
class Work {
 public:
  Work();
  virtual ~Work() = default;
  // Waits until the operation is done; throws its error. Returns false after `timeout`. For an operation on devices without a timeout the
  // calling thread's current stream waits, not the thread (unless TORCH_NCCL_BLOCKING_WAIT is set).
  virtual bool wait(std::optional<Milliseconds> timeout = {});
  virtual bool is_completed() const noexcept { return done_.load(std::memory_order_acquire); }
  bool is_success() const noexcept { return is_completed() && !error(); }
  std::exception_ptr error() const noexcept { return done_.load(std::memory_order_acquire) ? error_ : nullptr; }
  // The rank that a recv received from; -1 until it is done, and for other operations.
  virtual int source() const noexcept { return source_; }
  // Calls f when the operation is done, on the thread that completes it; immediately if it already is, or if it is one on devices, behind
  // which f's work on the current stream will be.
  virtual void then(std::function<void()> f);
  // True in a forked child of the process that started the operation: there it never completes.
  bool in_child() const noexcept;

  // For the implementation: marks the operation as done.
  void finish(std::exception_ptr error = {}, int source = -1);

 protected:
  void raise() const {
    if (std::exception_ptr e = error()) std::rethrow_exception(e);
  }

 private:
  const int generation_;
  std::mutex mutex_;
  ConditionVariable changed_;
  std::atomic<bool> done_{false};
  std::exception_ptr error_;
  int source_ = -1;
  std::vector<std::function<void()>> then_;
};
using WorkRef = std::shared_ptr<Work>;

class ProcessGroup {
 public:
  // rank: this process's, unique among `size` ranks. The store's keys must be used by this group only (PrefixStore). timeout: per
  // operation. engine: "shared" (memory), "mpi", "threads" if the ranks are threads of one process, "fake" if this process only
  // pretends to have other ranks; "" chooses one of the first two. Throws DistNetworkError or DistStoreError if not all ranks join within
  // the timeout, and DistBackendError if they can't use the engine.
  ProcessGroup(std::shared_ptr<Store> store, int rank, int size, Milliseconds timeout = kDefaultTimeout, const std::string& engine = "",
               OnDevices on_devices = OnDevices::Library);
  ProcessGroup(const ProcessGroup&) = delete;
  // Waits for operations in progress, and notifies the other ranks.
  ~ProcessGroup();

  // True if no collective is in progress or queued here.
  bool idle() const;
  int rank() const noexcept;
  int size() const noexcept;
  Milliseconds timeout() const noexcept;
  void set_timeout(Milliseconds timeout);
  // "shared memory", "MPI", "threads", "fake", or "" for a group of one.
  std::string transport() const;
  // What the flight recorder calls this group and its members. Without it: its number in this process, and 0 to size() - 1.
  void set_name(const std::string& name, const std::string& description, const std::vector<int>& ranks);
  // The library that carries tensors on devices, "NCCL 2.32.3"; "" if they go through the host's memory, and then device_obstacle() tells
  // why, if the library was wanted.
  std::string device_transport() const;
  std::string device_obstacle() const;

  // Collectives. With async, they return immediately; tensors must not be written (nor results read) before wait(). Without, they return a
  // completed Work. Tensors may be on any device, with any strides. Throw RuntimeError, TypeError or ValueError for invalid arguments,
  // DistBackendError for errors of other ranks.
  WorkRef all_reduce(const std::vector<Tensor>& tensors, ReduceOp op = ReduceOp::Sum, bool async = false);
  WorkRef all_reduce(const Tensor& tensor, ReduceOp op = ReduceOp::Sum, bool async = false) {
    return all_reduce(std::vector<Tensor>{tensor}, op, async);
  }
  // Reduces what `shards` shards have, with the same bits for any number of ranks: always by the tree over the shards. Rank r has the
  // shards from shards * r / size() to shards * (r + 1) / size(). nodes: its part of that tree, the nodes that nodes_within() lists, each
  // already reduced (in the same order). The result is in nodes[0]; the others are unchanged.
  WorkRef all_reduce_shards(const std::vector<Tensor>& nodes, int shards, ReduceOp op = ReduceOp::Sum, bool async = false);
  WorkRef reduce(const Tensor& tensor, int root, ReduceOp op = ReduceOp::Sum, bool async = false);
  WorkRef broadcast(const std::vector<Tensor>& tensors, int root, bool async = false);
  WorkRef broadcast(const Tensor& tensor, int root, bool async = false) { return broadcast(std::vector<Tensor>{tensor}, root, async); }
  // outputs: one per rank, of input's size.
  WorkRef all_gather(const std::vector<Tensor>& outputs, const Tensor& input, bool async = false);
  // outputs: on root only.
  WorkRef gather(const std::vector<Tensor>& outputs, const Tensor& input, int root, bool async = false);
  // inputs: on root only.
  WorkRef scatter(const Tensor& output, const std::vector<Tensor>& inputs, int root, bool async = false);
  WorkRef reduce_scatter(const Tensor& output, const std::vector<Tensor>& inputs, ReduceOp op = ReduceOp::Sum, bool async = false);
  // One tensor to and one from each rank, of sizes that may differ; an empty tensor sends or receives nothing.
  WorkRef all_to_all(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs, bool async = false);
  WorkRef barrier(bool async = false);

  // Point-to-point messages; those with the same tag arrive in order. send is done when the tensor may be written again. Between devices
  // tags are ignored, and a sender waits for its receiver: use exchange() for messages in both directions.
  WorkRef send(const Tensor& tensor, int to, int tag = 0, bool async = false);
  // from kAnyRank: from any rank; Work::source() returns which.
  WorkRef recv(const Tensor& tensor, int from, int tag = 0, bool async = false);

  // Messages that are under way together; those between devices are one operation, with one Work.
  struct Message {
    bool sends = false;
    Tensor tensor;
    int peer = 0, tag = 0;
  };
  std::vector<WorkRef> exchange(const std::vector<Message>& messages);

  // Ends all operations in progress with an error, on all ranks.
  void abort(const std::string& reason);

 private:
  class Collectives;
  std::unique_ptr<Collectives> collectives_;
};

// The path of the library of MPI that groups would use, which is opened for this; "" if there is none.
std::string mpi_path();
// Why tensors on devices would go through the host's memory in this process; "" if the devices' library is there. It is opened for this.
std::string device_library_obstacle();

}  // namespace naru::distributed
