// Watch: tells each rank which others have ended, by connections that carry nothing else: each rank has one to rank 0, which tells all others
// what it sees. A process that ends or is killed closes its connection; one that is stopped, or that the network does not reach any more, is
// silent. One that has left all its groups before has ended in order.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "distributed/socket.h"

namespace naru::distributed {

class Watch {
 public:
  // in_order: it had left all its groups.
  using Lost = std::function<void(int rank, const std::string& why, bool in_order)>;
  // sockets: of rank 0, one to each other rank; of others, one to rank 0. patience: how long a rank may be silent; 0: for ever.
  // lost: called on the watch's thread, at most once for each rank. tick: called there several times in a second.
  Watch(std::vector<Descriptor> sockets, int rank, Milliseconds patience, Lost lost, std::function<void()> tick);
  Watch(const Watch&) = delete;
  ~Watch();
  // Tells the others whether this rank is in a group. At first it is.
  void say_whether_in_a_group(bool in_group);

 private:
  struct Note {
    uint8_t kind;
    uint8_t unused[3];
    int32_t rank;
  };
  struct Line {
    Descriptor socket;
    Clock::time_point heard;
    bool speaks = false;  // its watch has begun
    bool in_group = true;
    Note note{};
    size_t at = 0;
  };
  void serve();
  void listen(int rank);
  void take(int from, const Note& note);
  void drop(int rank, uint8_t why);
  void tell(const Note& note);
  void say_so(int rank, uint8_t why);

  const int rank_;
  const Milliseconds patience_;
  const Lost lost_;
  const std::function<void()> tick_;
  std::vector<Line> lines_;
  std::vector<bool> told_;
  std::mutex mutex_;  // of what is sent
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace naru::distributed
