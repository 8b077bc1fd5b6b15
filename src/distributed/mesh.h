// Mesh: how the ranks of a group find and connect to each other.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "distributed/channels.h"
#include "distributed/roll_call.h"

namespace naru::distributed {

// Equal texts are one host, and one network on it.
std::string this_host();

class Mesh {
 public:
  explicit Mesh(RollCall& roll);
  // Returns a connection to each other rank. All ranks must request the same lanes in the same order.
  std::vector<Descriptor> connect(int lane);
  // For rank 0 a connection to each other rank, for others one to rank 0, which has this index.
  std::vector<Descriptor> connect_to_first(int lane);
  // Of all ranks; equal texts are equal hosts.
  const std::vector<std::string>& hosts() const noexcept { return hosts_; }
  bool one_host() const;
  // Shared memory of all ranks; null on all of them if they are on several hosts, or can't map it.
  std::unique_ptr<Channels> share();

 private:
  struct PeerAddress {
    std::string near, far;  // addresses: as seen from its own host and from other hosts
    uint16_t port = 0;
  };
  // First bytes on a connection: they tell the group's ranks from foreign processes.
  struct Hello {
    uint64_t token;
    int32_t rank, lane;
  };
  struct Visitor {
    Descriptor socket;
    Deadline until;
    Hello hello{};
    size_t heard = 0;
    bool gone = false;
  };
  void admit();
  static bool listen(Visitor& v);
  Descriptor dialled(int lane, int to);
  Descriptor accepted(int lane, int from);

  RollCall& roll_;
  std::vector<std::string> hosts_;
  int rank_, size_;
  Deadline deadline_;
  Listener listener_;
  uint64_t token_ = 0;  // of the group: connections with another token are closed
  std::vector<PeerAddress> places_;
  std::map<std::pair<int, int>, Descriptor> early_;  // connections not requested yet, by lane and rank
  std::vector<Visitor> visitors_;
};

}  // namespace naru::distributed
