#include "distributed/roll_call.h"

#include <algorithm>

#include "distributed/keys.h"

namespace naru::distributed {

std::vector<std::string> RollCall::all(const std::string& what, const std::string& mine) {
  store_.set(what + "/" + std::to_string(rank_), mine);
  std::vector<std::string> keys;
  for (int r = 0; r < size_; ++r) keys.push_back(what + "/" + std::to_string(r));
  wait(keys);
  return store_.multi_get(keys);
}

std::string RollCall::of_first(const std::string& what, const std::string& mine) {
  if (rank_ == 0) store_.set(what, mine);
  wait({what});
  return store_.get(what);
}

void RollCall::wait(const std::vector<std::string>& keys) {
  const Deadline begin = Clock::now();
  for (Milliseconds slice{100};; slice = std::min(slice * 2, Milliseconds(500))) {
    const Milliseconds left(milliseconds_until(deadline_, INT32_MAX));
    const Deadline now = Clock::now();
    try {
      return store_.wait(keys, look_ ? std::min(slice, left) : left);
    } catch (const DistStoreError&) {
      const Deadline end = Clock::now();
      if (end >= deadline_) throw_timed_out(keys, std::chrono::duration_cast<Milliseconds>(end - begin));
      if (!look_ || end - now < slice) throw;  // it was not the time
    }
    try {
      look_();
    } catch (...) {
      if (!store_.check(keys)) throw;  // one that has said it may have left already
      return;
    }
  }
}

}  // namespace naru::distributed
