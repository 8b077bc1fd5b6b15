// Mesh: how the ranks of a group find and reach each other.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "distributed/channels.h"

namespace naru::distributed {

class Mesh {
 public:
  Mesh(Store& store, int rank, int size, Deadline deadline);
  // A connection to each other rank. All ranks ask for the same lanes in the same order.
  std::vector<Descriptor> connect(int lane);
  // Shared memory of all ranks; none where they are on several hosts, or can't map it.
  std::unique_ptr<Channels> share();

 private:
  struct Place {
    std::string near, far;  // addresses, from its own host and from others
    uint16_t port = 0;
  };
  // A process that has connected and not said yet who it is: the group's, or a stranger.
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
  Descriptor accepted(int lane, int from);

  Store& store_;
  std::vector<std::string> hosts_;
  int rank_, size_;
  Deadline deadline_;
  Listener listener_;
  uint64_t token_ = 0;  // of the group: others that knock are sent away
  std::vector<Place> places_;
  std::map<std::pair<int, int>, Descriptor> early_;  // by lane and rank
  std::vector<Visitor> visitors_;
};

}  // namespace naru::distributed
