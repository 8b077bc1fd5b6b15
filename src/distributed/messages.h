// Messages: point-to-point messages between ranks, outside collectives, and notices that a rank failed or left. Its own thread reads and
// writes their channels.
//
// A receiver stores at most kUnasked bytes of a sender's messages for which it has posted no receive. A message that fits is sent at once.
// Another is offered: only its head is sent, and its bytes follow when the receiver has matched it to a receive and has asked for them. So
// messages are matched in the order in which they were sent, and no number of sends fills the receiver's memory.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "distributed/channels.h"
#include "naru/distributed/group.h"

namespace naru::distributed {

// Host memory, and the action that completes the message (a copy to the destination).
struct Parcel {
  char* data = nullptr;
  size_t bytes = 0;
  uint8_t type = 0;
  std::function<void()> deliver;  // also keeps the memory alive
};

// The buffer of the sockets that carry messages.
inline constexpr size_t kMessageBuffer = size_t{64} << 10;

// Throws the RuntimeError that explains why a forked child can't use the group.
[[noreturn]] void refuse_in_child();

class Messages {
 public:
  // What a receiver stores at most for each sender, with kOverhead for each message.
  static constexpr size_t kUnasked = size_t{4} << 20, kOverhead = 128;
  // lines: channels between `ranks` ranks, for messages only. changed: called on the thread whenever a peer fails or leaves.
  Messages(std::unique_ptr<Channels> lines, int rank, int ranks, std::function<void()> changed);
  Messages(const Messages&) = delete;
  // Sends the remaining messages, and the notice that this rank leaves.
  ~Messages();

  void send(int to, int tag, Parcel parcel, WorkRef work);
  void receive(int from, int tag, Parcel parcel, WorkRef work);
  // Tells all others why this rank's group is broken, and fails pending work here. Only the first reason counts.
  void fail(const std::string& reason);
  // f: called once when the group breaks, on the thread that learns of it first.
  void on_failure(std::function<void(const std::string& reason)> f);
  // Why the group is broken, as reported by this rank or another; nullopt if it is not.
  std::optional<std::string> reason() const;
  bool any_gone() const noexcept { return any_gone_.load(std::memory_order_acquire); }
  bool gone(int peer) const noexcept { return peers_[static_cast<size_t>(peer)].gone.load(std::memory_order_acquire); }
  // "rank 1 is gone: ..."
  std::string farewell(int peer) const;
  // How many of the group's collectives on devices a rank that has left took part in; nullopt if it did not leave in order.
  std::optional<uint64_t> left_after(int peer) const;
  // The same of this rank, for the others.
  void count_collectives(uint64_t number) noexcept { collectives_ = number; }
  // Pending work that takes longer fails.
  void set_timeout(Milliseconds timeout) { timeout_ = timeout.count(); }
  bool in_child() const noexcept;
  // Bytes of messages that are stored because no receive has been posted for them.
  size_t held() const;

 private:
  enum class Kind : uint8_t {
    Data = 'd',     // a message
    Offer = 'o',    // the head of a message whose bytes wait to be asked for
    Ask = 'a',      // for the bytes of an offer
    Body = 'b',     // the bytes of an offer
    Refusal = 'r',  // an offer does not fit the receive, or an offer that was asked for exists no more; with the reason
    Room = 'c',     // so many stored bytes have been received
    Failure = 'f',
    Leaving = 'l'
  };
  struct Head {
    uint64_t bytes;
    uint64_t number;  // of an offer; Room: bytes; Leaving: collectives on devices
    int32_t tag;
    Kind kind;
    uint8_t type;
    uint8_t unused[2];
    // Bytes that follow the head.
    uint64_t following() const noexcept { return kind == Kind::Offer || kind == Kind::Ask || kind == Kind::Room ? 0 : bytes; }
  };
  static_assert(sizeof(Head) == 24);
  struct Sending {
    Head head;
    Parcel parcel;
    WorkRef work;
    std::string text;
    size_t at = 0;
  };
  struct Offered {
    Head head;
    Parcel parcel;
    WorkRef work;
    Deadline deadline;
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
    std::deque<Sending> out;
    Head head{};
    size_t head_at = 0, at = 0;
    std::optional<Receiving> into;  // the receive that the incoming message matches
    std::string early;              // otherwise its bytes, until a receive is posted
    bool skips = false;             // the incoming bytes, because their receive has failed
    bool left = false;
    uint64_t left_after = 0;
    size_t unread = 0;                    // bytes that were sent to it, and that it has not received as far as this rank knows
    uint64_t last_offer = 0;              // to it
    std::map<uint64_t, Offered> offers;   // to it, that it has not asked for
    std::map<uint64_t, Receiving> asked;  // receives that wait for the bytes of its offers
    uint64_t received = 0;                // of its bytes, since it was told
    std::atomic<bool> gone{false};
    std::string trouble;
  };
  using Lock = std::unique_lock<std::mutex>;
  using Done = std::vector<std::function<void()>>;  // callbacks to call after unlocking

  void serve();
  void poll_once(int milliseconds, Done& done);
  bool read(int peer, Done& done);
  bool write(int peer, Done& done);
  size_t take(int peer, char* into, size_t n);
  bool begin(int peer, Done& done);
  void end(int peer, Done& done);
  void end_data(int peer, Done& done);
  void offered(int peer, Done& done);
  void asked_for(int peer);
  void accept(Receiving r, int peer, const Head& offer, Done& done);
  void make_room(int peer, uint64_t bytes);
  void drop_offers(Peer& p, const std::string& text, Done& done);
  void push(Peer& p, Kind kind, uint64_t number, const std::string& text = {});
  void lose(int peer, const std::string& trouble, Done& done);
  void fail_locked(const std::string& reason, Done& done);
  void look_at_deadlines(Done& done);
  void tell_all(Kind kind, const std::string& text, uint64_t number = 0);
  std::list<Receiving>::iterator match(int from, int tag);
  std::optional<std::string> misfit(const Receiving& r, int from, const Head& head) const;
  void hand_over(Receiving r, const Early& e, Done& done);

  const int rank_, generation_;
  const std::unique_ptr<Channels> lines_;
  std::function<void()> changed_;
  std::function<void(const std::string&)> on_failure_;
  mutable std::mutex mutex_;
  std::vector<Peer> peers_;
  std::list<Receiving> waiting_;
  std::list<Early> early_;
  std::vector<uint8_t> wanted_;
  std::optional<std::string> reason_;
  std::atomic<bool> any_gone_{false}, stopping_{false};
  std::atomic<int64_t> timeout_{kDefaultTimeout.count()};
  std::atomic<uint64_t> collectives_{0};
  std::thread thread_;
};

}  // namespace naru::distributed
