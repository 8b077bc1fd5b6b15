// RollCall: what the ranks of a group tell each other by the store while the group is made.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "distributed/socket.h"

namespace naru::distributed {

class RollCall {
 public:
  RollCall(Store& store, int rank, int size, Deadline deadline) : store_(store), rank_(rank), size_(size), deadline_(deadline) {}
  // look: called several times in a second while this rank waits; throws if the others won't come.
  void set_look(std::function<void()> look) { look_ = std::move(look); }
  // What each rank says about `what`, in their order; `mine` is this rank's. DistStoreError if not all have said it by the deadline.
  std::vector<std::string> all(const std::string& what, const std::string& mine);
  // What rank 0 says about it: there, `mine`.
  std::string of_first(const std::string& what, const std::string& mine);

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  Deadline deadline() const noexcept { return deadline_; }
  Store& store() const noexcept { return store_; }

 private:
  void wait(const std::vector<std::string>& keys);

  Store& store_;
  const int rank_, size_;
  const Deadline deadline_;
  std::function<void()> look_;
};

}  // namespace naru::distributed
