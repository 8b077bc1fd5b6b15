// Collectives: runs a group's collectives one after the other. Asynchronous ones run on their own thread, others on the calling thread.
#pragma once

#include <deque>
#include <thread>

#include "distributed/device_group.h"
#include "distributed/engine.h"
#include "distributed/flight_recorder.h"
#include "distributed/ordered.h"
#include "distributed/traffic.h"
#include "naru/condition_variable.h"
#include "runtime/os/interrupt.h"

namespace naru::distributed {

enum class Collective : uint8_t {
  AllReduce,
  Reduce,
  Broadcast,
  AllGather,
  Gather,
  Scatter,
  ReduceScatter,
  AllToAll,
  Barrier,
  AllReduceShards,
  Send,
  Receive,
  Messages
};
// `elements` and `sizes` of the tensor that the call is about.
Header header_of(Collective what, uint64_t number, size_t elements, DType type, const Dims& sizes, int root = -1,
                 ReduceOp op = ReduceOp::Sum);
// "all_reduce(SUM) of 6 elements of float32 [2, 3] (the group's collective number 4)"
std::string described(const Header& h);
// The call as the flight recorder keeps it; the program's line and the times are the caller's to fill in. received: elements, of an all_to_all.
RecordedCall recorded_call(const Header& h, int rank, int size, uint64_t received = 0);
// The error's text for a rank whose call has timed out; absent: the ranks that have not come.
std::string timed_out(const Header& h, int rank, int64_t milliseconds, const std::vector<int>& absent);

// Elements of one dtype in host memory.
struct Block {
  char* data = nullptr;
  size_t elements = 0;
  DType type = DType::F32;
  Dims sizes;
  size_t bytes() const noexcept { return elements * size_of(type); }
};

class ProcessGroup::Collectives {
 public:
  Collectives(std::shared_ptr<Store> store, int rank, int size, Milliseconds timeout, const std::string& kind, OnDevices on_devices);
  ~Collectives();

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  Milliseconds timeout() const noexcept { return Milliseconds(timeout_); }
  void set_timeout(Milliseconds timeout);
  const Engine& engine() const noexcept { return *engine_; }
  // Null if there are no other ranks.
  Messages* messages() const noexcept { return engine_->messages(); }
  // Gives the group its name in the flight recorder.
  void name_recorded(const std::string& name, const std::string& description, const std::vector<int>& ranks);
  // Records a message that `work` stands for.
  void record(bool sends, int peer, const Block& b, const WorkRef& work);
  // What takes tensors on devices; null: they go through the host's memory.
  DeviceGroup* devices() const noexcept { return devices_.get(); }
  // Why there is none, if one was wanted.
  const std::string& device_obstacle() const noexcept { return device_obstacle_; }

  // RuntimeError in a forked child of the process that made the group: it is not a rank, and does not have the threads.
  void require_own_process() const;
  // True if no collective is in progress or queued.
  bool idle();
  // Runs the collective `job`: immediately, or if async after the queued ones.
  WorkRef run(bool async, std::function<void()> job);

  // The collectives, to be called by jobs.
  void all_reduce(const Block& b, ReduceOp op);
  void all_reduce(const std::vector<Block>& list, ReduceOp op);  // small ones are packed together
  // nodes: this rank's subtrees of the tree over `shards` shards, as nodes_within() lists them. The result is written to the first.
  void all_reduce_shards(const std::vector<Block>& nodes, int shards, ReduceOp op);
  void reduce(const Block& b, int root, ReduceOp op);
  void broadcast(const Block& b, int root);
  void all_gather(const std::vector<Block>& out, const Block& in);
  void gather(const std::vector<Block>& out, const Block& in, int root);
  void scatter(const Block& out, const std::vector<Block>& in, int root);
  void reduce_scatter(const Block& out, const std::vector<Block>& in, ReduceOp op);
  void all_to_all(const std::vector<Block>& out, const std::vector<Block>& in);
  void barrier();
  // Throws on every rank if they do not all call the same.
  void compare(const Header& h);

 private:
  // Where and when the program has called a collective.
  struct Origin {
    uint32_t line = 0;
    int64_t created = 0;
  };
  struct Job {
    std::function<void()> run;
    WorkRef work;
    Origin origin;
  };
  Header header(Collective what, const Block& b, int root = -1, ReduceOp op = ReduceOp::Sum);
  void all_reduce_small(const Block& b, const Reduction& reduction, int shards);
  void all_reduce_large(const Block& b, const Reduction& reduction, int shards);
  void all_reduce_nodes(const std::vector<Block>& nodes, int shards, const Reduction& reduction);
  bool is_small(const Block& b) const noexcept;
  // All ranks reduce one part each of a block's elements.
  size_t part_begin(const Block& b, int rank) const noexcept;
  // Where an exchange puts what it receives.
  char* scratch(size_t bytes);
  void exchange();
  // What this rank has itself; all of it if it only pretends to have others.
  void copy_gathered(const std::vector<Block>& out, const Block& in);
  void look(std::span<const uint8_t> wanted);
  [[noreturn]] void complain(int peer, const Header& theirs, const Header& expected) const;
  void perform(const std::function<void()>& job, const Origin& origin);
  void work();
  // Records the exchange that begins, and that the one before it has ended.
  void record(const Header& h, size_t received = 0);

  const std::shared_ptr<Store> store_;  // kept alive: it may contain the server
  const int rank_, size_, generation_;
  std::atomic<int64_t> timeout_;
  std::unique_ptr<Engine> engine_;
  Traffic traffic_;
  TreeFold tree_;
  std::vector<Shards> ranks_;       // the nodes of a tree with one shard for each rank
  uint64_t number_ = 0, call_ = 0;  // call_: the recorded exchange that goes on
  std::atomic<uint64_t> messages_recorded_{0};
  size_t recorded_as_ = 0;  // the group's number in the flight recorder
  std::optional<size_t> devices_recorded_as_;
  Origin origin_;
  Header mine_;
  Deadline deadline_;
  std::vector<uint8_t> suspected_;  // how often each peer was found to have left, in this exchange
  std::vector<char> scratch_, packed_;
  std::vector<const char*> parts_;
  const runtime::InterruptWatch* watch_ = nullptr;  // of the current exchange

  std::mutex mutex_;
  ConditionVariable changed_;
  std::deque<Job> queue_;
  bool busy_ = false, stopped_ = false;
  std::thread thread_;
  std::string device_obstacle_;
  std::unique_ptr<DeviceGroup> devices_;  // destroyed first
};

}  // namespace naru::distributed
