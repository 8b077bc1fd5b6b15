// Groups of processes that compute together: each is a rank, and all of them call the same collectives in the same order.
//
//   distributed::ProcessGroup group(store, rank, size);           // in each process; returns when all are there
//   group.all_reduce(gradient, distributed::ReduceOp::Avg);      // in place, the same bits on every rank
//   auto work = group.all_reduce(gradient, ReduceOp::Sum, true); // meanwhile something else
//   work->wait();
//
// Ranks on one host exchange through shared memory, others by TCP. What ranks call is compared: where operations, types or numbers of elements differ, each rank
// throws. A rank that ends is reported by those that wait for it, and by them to all others; after that a group can't be used any more.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "naru/distributed/store.h"
#include "naru/tensor.h"

namespace naru::distributed {

enum class ReduceOp : uint8_t { Sum, Avg, Product, Min, Max, BAnd, BOr, BXor };

inline constexpr Milliseconds kDefaultTimeout{1'800'000};
inline constexpr int kAnyRank = -1;

// An operation under way. Thread-safe.
class Work {
 public:
  Work();
  // Until it is done; throws what went wrong. False where `timeout` ended first.
  bool wait(std::optional<Milliseconds> timeout = {});
  bool is_completed() const noexcept { return done_.load(std::memory_order_acquire); }
  bool is_success() const noexcept { return is_completed() && !error_; }
  std::exception_ptr error() const noexcept { return is_completed() ? error_ : nullptr; }
  // From which rank it received; -1 before, and where it is no recv.
  int source() const noexcept { return source_; }
  // Calls f when it is done, on the thread that finds it so; at once where it is.
  void then(std::function<void()> f);
  // Whether this is a forked child of the process that began it: it never completes here.
  bool in_child() const noexcept;

  // For who does it.
  void finish(std::exception_ptr error = {}, int source = -1);

 private:
  const int generation_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> done_{false};
  std::exception_ptr error_;
  int source_ = -1;
  std::vector<std::function<void()>> then_;
};
using WorkRef = std::shared_ptr<Work>;

class ProcessGroup {
 public:
  // rank: of this process, of `size` in all; each has its own. The store's keys are the group's alone (PrefixStore). timeout: of each operation.
  // Throws DistNetworkError or DistStoreError where not all come within the timeout.
  ProcessGroup(std::shared_ptr<Store> store, int rank, int size, Milliseconds timeout = kDefaultTimeout);
  ProcessGroup(const ProcessGroup&) = delete;
  // Waits for what is under way, and tells the others.
  ~ProcessGroup();

  int rank() const noexcept;
  int size() const noexcept;
  Milliseconds timeout() const noexcept;
  void set_timeout(Milliseconds timeout);
  // "shared memory", "TCP", or "" for a group of one.
  std::string transport() const;

  // Collectives. With async they return at once; tensors must not be written (nor results read) before wait(). Without, a Work that is done.
  // Tensors may lie on any device and anyhow. RuntimeError, TypeError or ValueError for what does not fit, DistBackendError for what others do wrong.
  WorkRef all_reduce(const std::vector<Tensor>& tensors, ReduceOp op = ReduceOp::Sum, bool async = false);
  WorkRef all_reduce(const Tensor& tensor, ReduceOp op = ReduceOp::Sum, bool async = false) {
    return all_reduce(std::vector<Tensor>{tensor}, op, async);
  }
  WorkRef reduce(const Tensor& tensor, int root, ReduceOp op = ReduceOp::Sum, bool async = false);
  WorkRef broadcast(const std::vector<Tensor>& tensors, int root, bool async = false);
  WorkRef broadcast(const Tensor& tensor, int root, bool async = false) { return broadcast(std::vector<Tensor>{tensor}, root, async); }
  // outputs: one a rank, of input's size.
  WorkRef all_gather(const std::vector<Tensor>& outputs, const Tensor& input, bool async = false);
  // outputs on root only.
  WorkRef gather(const std::vector<Tensor>& outputs, const Tensor& input, int root, bool async = false);
  // inputs on root only.
  WorkRef scatter(const Tensor& output, const std::vector<Tensor>& inputs, int root, bool async = false);
  WorkRef reduce_scatter(const Tensor& output, const std::vector<Tensor>& inputs, ReduceOp op = ReduceOp::Sum, bool async = false);
  // To and from each rank one, of sizes that may differ; empty tensors are for nobody.
  WorkRef all_to_all(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs, bool async = false);
  WorkRef barrier(bool async = false);

  // Messages: from one rank to another, which arrive in order by tag. send is done when the tensor may be written again.
  WorkRef send(const Tensor& tensor, int to, int tag = 0, bool async = false);
  // from kAnyRank: from whoever sends; the Work says who.
  WorkRef recv(const Tensor& tensor, int from, int tag = 0, bool async = false);

  // Ends everything under way with an error, on all ranks.
  void abort(const std::string& reason);

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace naru::distributed
