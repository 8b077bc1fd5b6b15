#include "distributed/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/os/fork.h"
#include "runtime/os/interrupt.h"
#include "runtime/os/system.h"

namespace naru::distributed {
namespace {

// All descriptors of this process, for the child of a fork to close.
struct Open {
  std::mutex mutex;
  std::vector<int> numbers;
};
Open& open_ones() {
  static auto* const o = [] {
    auto* made = new Open;
    runtime::hold_at_fork(made->mutex);
    runtime::system::at_fork(nullptr, nullptr, [] {
      for (const int number : open_ones().numbers) ::close(number);
      open_ones().numbers.clear();
    });
    return made;
  }();
  return *o;
}

struct Addresses {
  addrinfo* list = nullptr;
  ~Addresses() {
    if (list) freeaddrinfo(list);
  }
};

std::string place(const std::string& host, uint16_t port) { return host + ":" + std::to_string(port); }

// Time for one of a host's several addresses to answer.
constexpr Milliseconds kForOneOfSeveral{2000};
// A peer that the network does not reach any more (a cut cable, a host without power) is given up after 20 s: a silent connection is asked after
// kIdle seconds, and then kProbes times.
constexpr int kIdle = 10, kBetweenProbes = 2, kProbes = 5, kUnacknowledged = 20'000;

void set_options(int socket) {
  const auto set = [socket](int level, int option, int value) { setsockopt(socket, level, option, &value, sizeof value); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kIdle);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kBetweenProbes);
  set(IPPROTO_TCP, TCP_KEEPCNT, kProbes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledged);
}

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  int family = 0;
};
in_addr& four(Address& a) { return reinterpret_cast<sockaddr_in&>(a.storage).sin_addr; }
in6_addr& six(Address& a) { return reinterpret_cast<sockaddr_in6&>(a.storage).sin6_addr; }

// Of an address in numbers; nothing for a name.
std::optional<Address> in_numbers(const std::string& host) {
  Address a;
  a.storage.ss_family = AF_INET, a.family = AF_INET, a.size = sizeof(sockaddr_in);
  if (inet_pton(AF_INET, host.c_str(), &four(a)) == 1) return a;
  a.storage.ss_family = AF_INET6, a.family = AF_INET6, a.size = sizeof(sockaddr_in6);
  if (inet_pton(AF_INET6, host.c_str(), &six(a)) == 1) return a;
  return {};
}
bool is_any(Address a) { return a.family == AF_INET ? four(a).s_addr == htonl(INADDR_ANY) : IN6_IS_ADDR_UNSPECIFIED(&six(a)); }
bool is_loopback(Address a) { return a.family == AF_INET ? ntohl(four(a).s_addr) >> 24 == 127 : IN6_IS_ADDR_LOOPBACK(&six(a)); }

Descriptor listening(Address place, uint16_t port, int& error) {
  Descriptor socket(::socket(place.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1, off = 0;
  if (socket) {
    setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (place.family == AF_INET6) setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    (place.family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(place.storage).sin6_port
                              : reinterpret_cast<sockaddr_in&>(place.storage).sin_port) = htons(port);
    if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&place.storage), place.size) == 0 && ::listen(socket.get(), 1024) == 0)
      return socket;
  }
  error = errno;
  return {};
}

uint16_t port_of(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in&>(address).sin_port);
}

// One attempt, at one address; what went wrong, 0 if nothing.
int attempt(const addrinfo& address, Deadline deadline, Descriptor& made) {
  Descriptor socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return errno;
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return errno;
    if (!wait_for(socket, true, deadline)) return ETIMEDOUT;
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error) return error;
  }
  set_options(socket.get());
  made = std::move(socket);
  return 0;
}

}  // namespace

Deadline after(Milliseconds timeout) noexcept {
  const auto now = Clock::now();
  return timeout > Milliseconds(std::chrono::hours(24 * 365 * 10)) ? Deadline::max() : now + timeout;
}

int milliseconds_until(Deadline deadline, int most) noexcept {
  const auto now = Clock::now();
  if (deadline <= now) return 0;
  if (deadline - now >= Milliseconds(most)) return most;
  return static_cast<int>(std::chrono::ceil<Milliseconds>(deadline - now).count());
}

Descriptor::Descriptor(int number) : number_(number) {
  if (number < 0) return;
  Open& open = open_ones();
  const std::lock_guard lock(open.mutex);
  open.numbers.push_back(number);
}

void Descriptor::close() noexcept {
  if (number_ < 0) return;
  Open& open = open_ones();
  const std::lock_guard lock(open.mutex);
  // Not there: this is a forked child, and it is closed.
  if (std::erase(open.numbers, number_) > 0) ::close(number_);
  number_ = -1;
}

void random_bytes(std::span<char> bytes) {
  // (std::random_device would ask for glibc 2.36 of every system.)
  if (!runtime::system::random_bytes(bytes.data(), bytes.size())) throw DistBackendError("the system gives no random numbers");
}

uint64_t random_token() {
  uint64_t token = 0;
  random_bytes({reinterpret_cast<char*>(&token), sizeof token});
  return token;
}

std::string words_for(int error) {
  char text[128];
  return strerror_r(error, text, sizeof text);
}

bool wait_for(const Descriptor& socket, bool write, Deadline deadline) {
  const runtime::InterruptWatch watch;
  for (;;) {
    pollfd p{socket.get(), static_cast<short>(write ? POLLOUT : POLLIN), 0};
    const int left = milliseconds_until(deadline, runtime::kInterruptMilliseconds);
    const int n = ::poll(&p, 1, left);
    if (n > 0) return true;
    if (watch.interrupted()) throw runtime::Interrupted("waiting for another process was interrupted");
    if (left == 0 && n == 0) return false;
  }
}

bool is_outer_address(const std::string& host) noexcept {
  const std::optional<Address> a = in_numbers(host);
  return a && !is_loopback(*a) && !is_any(*a);
}

Listener listen_on(const std::string& host, uint16_t port) {
  std::vector<Address> places;
  const std::optional<Address> numbers = in_numbers(host);
  if (host == "localhost" || (numbers && is_loopback(*numbers))) {
    if (numbers) places.push_back(*numbers);
    for (const char* loopback : {"127.0.0.1", "::1"}) places.push_back(*in_numbers(loopback));
  } else {
    if (numbers && !is_any(*numbers)) places.push_back(*numbers);
    // IPv6's socket takes IPv4's connections too; where there is no IPv6, IPv4's.
    for (const char* any : {"::", "0.0.0.0"}) places.push_back(*in_numbers(any));
  }
  int error = 0;
  for (const Address& place : places) {
    Descriptor socket = listening(place, port, error);
    if (socket) {
      const std::string address = is_any(place) ? "127.0.0.1" : address_of(socket);
      const uint16_t chosen = port_of(socket);
      return {std::move(socket), chosen, address};
    }
    if (error == EADDRINUSE || error == EACCES) break;
  }
  throw DistNetworkError("The server socket has failed to listen on port {}: {}. Choose another port, or 0 for any that is free.", port,
                         words_for(error));
}

bool is_of_this_host(const std::string& host) noexcept {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC, hints.ai_socktype = SOCK_STREAM;
  Addresses found;
  if (getaddrinfo(host.c_str(), "0", &hints, &found.list)) return false;
  for (const addrinfo* a = found.list; a; a = a->ai_next) {
    const Descriptor socket(::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket && ::bind(socket.get(), a->ai_addr, a->ai_addrlen) == 0) return true;
  }
  return false;
}

Descriptor accepted_by(const Listener& listener, int& error) {
  for (;;) {
    Descriptor socket(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    error = socket ? 0 : errno;
    if (socket) set_options(socket.get());
    if (error != EINTR && error != ECONNABORTED) return socket;
  }
}

Descriptor connect_to(const std::string& host, uint16_t port, Deadline deadline) {
  const runtime::InterruptWatch watch;
  int pause = 5;
  for (;;) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC, hints.ai_socktype = SOCK_STREAM;
    Addresses found;
    std::string trouble;
    if (const int status = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found.list)) trouble = gai_strerror(status);
    for (const addrinfo* a = found.list; a; a = a->ai_next) {
      Descriptor socket;
      // Of several, one that does not answer must not use up the time of the others.
      const Deadline until = found.list->ai_next ? std::min<Deadline>(deadline, Clock::now() + kForOneOfSeveral) : deadline;
      const int error = attempt(*a, until, socket);
      if (!error) return socket;
      trouble = words_for(error);
    }
    if (Clock::now() >= deadline)
      throw DistNetworkError("The client socket has timed out while trying to connect to ({}): {}", place(host, port), trouble);
    if (watch.interrupted()) throw runtime::Interrupted("connecting to another process was interrupted");
    std::this_thread::sleep_for(Milliseconds(milliseconds_until(deadline, pause)));
    pause = std::min(pause * 2, 200);
  }
}

void send_all(const Descriptor& socket, std::span<const char> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n > 0)
      bytes = bytes.subspan(static_cast<size_t>(n));
    else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(socket, true, deadline)) throw DistNetworkError("sending to another process timed out");
    } else if (errno != EINTR)
      throw DistNetworkError("sending to another process failed: {}", words_for(errno));
  }
}

void receive_all(const Descriptor& socket, std::span<char> bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::recv(socket.get(), bytes.data(), bytes.size(), 0);
    if (n > 0)
      bytes = bytes.subspan(static_cast<size_t>(n));
    else if (n == 0)
      throw DistNetworkError("the connection was closed by the other process");
    else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_for(socket, false, deadline)) throw DistNetworkError("receiving from another process timed out");
    } else if (errno != EINTR)
      throw DistNetworkError("receiving from another process failed: {}", words_for(errno));
  }
}

void make_nonblocking(const Descriptor& socket) { ::fcntl(socket.get(), F_SETFL, ::fcntl(socket.get(), F_GETFL) | O_NONBLOCK); }

std::string address_of(const Descriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  char text[NI_MAXHOST];
  if (getnameinfo(reinterpret_cast<sockaddr*>(&address), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  const std::string_view plain = text;
  return std::string(plain.starts_with("::ffff:") ? plain.substr(7) : plain);
}

}  // namespace naru::distributed
