// Sockets: connections by TCP, and what goes wrong with them in words.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "naru/distributed/store.h"

namespace naru::distributed {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

// The time of `timeout` from now; one too long for a clock is never.
Deadline after(Milliseconds timeout) noexcept;
// From now on, at most `most`; 0 when it has come.
int milliseconds_until(Deadline deadline, int most) noexcept;

// Owns a descriptor. A forked child has it closed: its parent's connections end with the parent.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number);
  Descriptor(Descriptor&& o) noexcept : number_(std::exchange(o.number_, -1)) {}
  Descriptor& operator=(Descriptor&& o) noexcept {
    std::swap(number_, o.number_);
    return *this;
  }
  ~Descriptor() { close(); }
  void close() noexcept;
  int get() const noexcept { return number_; }
  explicit operator bool() const noexcept { return number_ >= 0; }

 private:
  int number_ = -1;
};

struct Listener {
  Descriptor socket;
  uint16_t port = 0;
  std::string address;  // by which processes of this host reach it
};
// On the interface that `host` stands for: the loopback for its names and addresses, the one with the address where it is written in numbers, else (and for
// an address that is none of this host's) all of them. port 0: one that is free. DistNetworkError.
Listener listen_on(const std::string& host, uint16_t port);
// Whether `host` is a name or an address of this host's.
bool is_of_this_host(const std::string& host) noexcept;
// Whether `host` is an address in numbers that is no loopback's.
bool is_outer_address(const std::string& host) noexcept;
// A connection that has come; none where there is none, and `error` says why (EAGAIN; EMFILE and kin).
Descriptor accepted_by(const Listener& listener, int& error);
// Tries again until the deadline where nobody listens yet. DistNetworkError.
Descriptor connect_to(const std::string& host, uint16_t port, Deadline deadline);
// Everything, or DistNetworkError.
void send_all(const Descriptor& socket, std::span<const char> bytes, Deadline deadline);
void receive_all(const Descriptor& socket, std::span<char> bytes, Deadline deadline);
void make_nonblocking(const Descriptor& socket);
// The address that the connection has on this side.
std::string address_of(const Descriptor& socket);
// DistBackendError where the system gives none.
void random_bytes(std::span<char> bytes);
// By which a group's own members tell each other from others that knock.
uint64_t random_token();
// "Connection refused"
std::string words_for(int error);
// Waits until `socket` can be read (or written) or the deadline; false at that. Ctrl-C ends it.
bool wait_for(const Descriptor& socket, bool write, Deadline deadline);

}  // namespace naru::distributed
