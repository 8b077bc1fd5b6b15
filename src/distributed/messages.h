// Messages: point-to-point messages between ranks, outside collectives, and notices that a rank failed or left. Its own thread reads and
// writes the connections.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "distributed/socket.h"
#include "naru/distributed/group.h"

namespace naru::distributed {

// Host memory, and the action that completes the message (a copy to the destination).
struct Parcel {
  char* data = nullptr;
  size_t bytes = 0;
  uint8_t type = 0;
  std::function<void()> deliver;  // also keeps the memory alive
};

// Throws the RuntimeError that explains why a forked child can't use the group.
[[noreturn]] void refuse_in_child();

class Messages {
 public:
  // changed: called on the thread whenever a peer fails or leaves.
  Messages(std::vector<Descriptor> sockets, int rank, std::function<void()> changed);
  Messages(const Messages&) = delete;
  // Sends the remaining messages, and the notice that this rank leaves.
  ~Messages();

  void send(int to, int tag, Parcel parcel, WorkRef work);
  void receive(int from, int tag, Parcel parcel, WorkRef work);
  // Tells all others why this rank's group is broken, and fails pending work here. Only the first reason counts.
  void fail(const std::string& reason);
  // Why the group is broken, as reported by this rank or another; nullopt if it is not.
  std::optional<std::string> reason() const;
  bool any_gone() const noexcept { return any_gone_.load(std::memory_order_acquire); }
  bool gone(int peer) const noexcept { return peers_[static_cast<size_t>(peer)].gone.load(std::memory_order_acquire); }
  // "rank 1 is gone: ..."
  std::string farewell(int peer) const;
  // Pending work that takes longer fails.
  void set_timeout(Milliseconds timeout) { timeout_ = timeout.count(); }
  bool in_child() const noexcept;

 private:
  enum class Kind : uint8_t { Data = 'd', Failure = 'f', Leaving = 'l' };
  struct Head {
    uint64_t bytes;
    int32_t tag;
    Kind kind;
    uint8_t type;
    uint8_t unused[2];
  };
  static_assert(sizeof(Head) == 16);
  struct Sending {
    Head head;
    Parcel parcel;
    WorkRef work;
    std::string text;
    size_t at = 0;
  };
  struct Receiving {
    int from, tag;
    Parcel parcel;
    WorkRef work;
    Deadline deadline;
  };
  // A message that arrived before its receive was posted.
  struct Early {
    int from;
    Head head;
    std::string bytes;
  };
  struct Peer {
    Descriptor socket;
    std::deque<Sending> out;
    Head head{};
    size_t head_at = 0, at = 0;
    std::optional<Receiving> into;  // the receive that the incoming message matches
    std::string early;              // otherwise its bytes, until a receive is posted
    bool left = false;
    std::atomic<bool> gone{false};
    std::string trouble;
  };
  using Lock = std::unique_lock<std::mutex>;
  using Done = std::vector<std::function<void()>>;  // callbacks to call after unlocking

  void serve();
  void poll_once(int milliseconds, Done& done);
  void read(int peer, Done& done);
  void write(int peer, Done& done);
  bool begin(int peer, Done& done);
  void end(int peer, Done& done);
  void lose(int peer, const std::string& trouble, Done& done);
  void fail_locked(const std::string& reason, Done& done);
  void look_at_deadlines(Done& done);
  void tell_all(Kind kind, const std::string& text);
  std::list<Receiving>::iterator match(int from, int tag);
  void hand_over(Receiving r, const Early& e, Done& done);
  void wake();

  const int rank_, generation_;
  std::function<void()> changed_;
  mutable std::mutex mutex_;
  std::vector<Peer> peers_;
  std::list<Receiving> waiting_;
  std::list<Early> early_;
  std::optional<std::string> reason_;
  std::atomic<bool> any_gone_{false}, stopping_{false};
  std::atomic<int64_t> timeout_{kDefaultTimeout.count()};
  Descriptor wake_;
  std::thread thread_;
};

}  // namespace naru::distributed
