// DeviceGroup: a group's operations on tensors that are on devices, which a vendor's library joins (NCCL). They are put on the device's
// streams as instructions (ir::Exchange), so the runtime orders them with all other work, keeps memory alive and records them in graphs. A
// thread watches those under way: if a rank ends, or one takes too long, or the library reports an error, it ends them all with an error.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/communicator.h"
#include "core/pending_uses.h"
#include "distributed/messages.h"
#include "distributed/ordered.h"
#include "distributed/roll_call.h"
#include "distributed/traffic.h"
#include "naru/condition_variable.h"
#include "naru/distributed/group.h"

namespace naru::distributed {

enum class Collective : uint8_t;

class DeviceGroup {
 public:
  struct Place {
    Store& store;
    int rank, size;
    Messages* messages;  // null: there are no other ranks
    std::function<Milliseconds()> timeout;
    std::function<void(const Header&)> compare;  // throws on every rank if the headers differ
    size_t recorded_as;                          // the group's number in the flight recorder
  };
  explicit DeviceGroup(Place place);
  DeviceGroup(const DeviceGroup&) = delete;
  // Waits for operations in progress.
  ~DeviceGroup();
  // Why this process can't use the library; "" if it can.
  static std::string obstacle();
  std::string name() const;

  using Tensors = std::vector<Tensor>;
  // True if the tensors are on a device that the library joins. ValueError if only some of them are, or if they are on several devices.
  static bool takes(const char* what, std::initializer_list<std::span<const Tensor>> lists);

  // As ProcessGroup's, which has checked the arguments.
  WorkRef all_reduce(const Tensors& tensors, ReduceOp op, bool async);
  WorkRef all_reduce_shards(const Tensors& nodes, int shards, ReduceOp op, bool async);
  WorkRef reduce(const Tensor& tensor, int root, ReduceOp op, bool async);
  WorkRef broadcast(const Tensors& tensors, int root, bool async);
  WorkRef all_gather(const Tensors& outputs, const Tensor& input, bool async);
  WorkRef gather(const Tensors& outputs, const Tensor& input, int root, bool async);
  WorkRef scatter(const Tensor& output, const Tensors& inputs, int root, bool async);
  WorkRef reduce_scatter(const Tensor& output, const Tensors& inputs, ReduceOp op, bool async);
  WorkRef all_to_all(const Tensors& outputs, const Tensors& inputs, bool async);
  WorkRef messages(const std::vector<ProcessGroup::Message>& messages);
  // The host waits for what this thread's current streams have been given, on the devices in use.
  void synchronize();
  bool idle();
  void abort(const std::string& reason) { fail(reason); }

 private:
  class DeviceWork;
  class ErrorKeeper;
  class Calls;
  struct Joined {
    Device device;
    std::shared_ptr<ErrorKeeper> communicator;
    int side = 0;      // the number of the stream for asynchronous operations
    StreamPoint last;  // of the communicator's operations
  };
  struct UnderWay {
    Header header;
    StreamPoint point;
    Deadline deadline;
    std::shared_ptr<DeviceWork> work;
    uint64_t recorded;  // its number in the flight recorder
  };
  Header header(Collective what, const Tensor& t, int root = -1, ReduceOp op = ReduceOp::Sum);
  // received: elements, of an all_to_all.
  template <class Body>
  WorkRef run(const Header& h, Device device, bool async, int source, const Body& body, uint64_t received = 0);
  uint64_t begin_record(const Header& h, uint64_t received);
  Joined& joined(Device device);
  std::string id_of(Device device, RollCall& roll, const std::string& keys);
  // Whether sums are asked for in the tree's order.
  bool in_order() const noexcept;
  // Reduces this rank's part of all nodes of a tree, which the ranks have as `counts` says. `mine`: this rank's nodes.
  Tensor folded(Joined& on, const Tensors& mine, const std::vector<Shards>& tree, const std::vector<size_t>& counts,
                const std::vector<std::pair<int64_t, int64_t>>& parts, ReduceOp op, int shards);
  void all_reduce_nodes(Joined& on, const Tensors& nodes, int shards, ReduceOp op);

  void look();
  void note(const Header& h);
  void fail(const std::string& reason, bool tell = true);
  void watch();
  std::optional<std::string> trouble(std::unique_lock<std::mutex>& lock, bool& tell);
  std::string absence(const Header& h);
  // How long an operation may take before this rank tells the store that it is in it.
  Milliseconds patience() const;

  const Place place_;
  // For those that may outlive the group: the communicators that graphs hold.
  const std::shared_ptr<std::atomic<DeviceGroup*>> self_ = std::make_shared<std::atomic<DeviceGroup*>>(this);
  const int generation_;
  const bool compares_, ordered_;
  std::atomic<uint64_t> number_{0}, messages_recorded_{0};
  std::mutex order_;  // of operations
  std::list<Joined> joined_;
  int made_ = 0;

  std::mutex state_;  // of what follows
  ConditionVariable changed_;
  std::list<UnderWay> under_way_;
  std::vector<std::shared_ptr<ErrorKeeper>> communicators_;
  std::optional<std::string> failed_;
  std::optional<Deadline> suspected_;  // since when a rank is known to be gone
  std::optional<Deadline> slow_;       // when the first operation's ranks are to be listed
  bool recorded_ = false, stopped_ = false;
  std::thread thread_;
};

}  // namespace naru::distributed
