#include "distributed/mesh.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "distributed/tcp_server.h"
#include "runtime/os/interrupt.h"

namespace naru::distributed {
namespace {

// A connecting process must send its Hello within kHelloTime. kMostVisitors: pending connections at most; kVisit: how long one is kept at
// least.
constexpr Milliseconds kHelloTime{10'000}, kVisit{1'000};
constexpr size_t kMostVisitors = 256;
constexpr int kMostAcceptedAtOnce = 64;

// Equal for processes that reach each other by loopback: same boot, same network namespace.
// The address of the network interface that GLOO_SOCKET_IFNAME (or NCCL_SOCKET_IFNAME) names.
std::string address_of_interface() {
  const char* name = std::getenv("GLOO_SOCKET_IFNAME");
  if (!name) name = std::getenv("NCCL_SOCKET_IFNAME");
  ifaddrs* all = nullptr;
  if (!name || ::getifaddrs(&all) != 0) return "";
  std::string found;
  for (const ifaddrs* i = all; i && found.empty(); i = i->ifa_next) {
    if (!i->ifa_addr || std::strcmp(i->ifa_name, name) != 0) continue;
    const int family = i->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    char text[NI_MAXHOST];
    const auto size = static_cast<socklen_t>(family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    if (::getnameinfo(i->ifa_addr, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0) found = text;
  }
  ::freeifaddrs(all);
  if (found.empty()) throw DistNetworkError("GLOO_SOCKET_IFNAME names {}, and there is no such interface with an address", name);
  return found;
}

// The store of the first rank is on its own host, so its connection says nothing; the others reached it by MASTER_ADDR.
std::string own_address(Store& store, int rank) {
  const auto is_far = [](const std::string& address) {
    return !address.empty() && address != "127.0.0.1" && address != "::1" && address != "localhost";
  };
  std::string address = address_of_interface();
  if (address.empty()) address = store.own_address();
  if (is_far(address)) return address;
  const char* const master = rank == 0 ? std::getenv("MASTER_ADDR") : nullptr;
  if (master && is_far(master) && is_of_this_host(master)) return master;  // it may be that of a service in front of this host
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

std::string this_host() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  char text[256] = {};
  const ssize_t n = ::readlink("/proc/self/ns/net", text, sizeof text - 1);
  return id + "/" + std::string(text, static_cast<size_t>(n > 0 ? n : 0));
}

Mesh::Mesh(RollCall& roll) : roll_(roll), rank_(roll.rank()), size_(roll.size()), deadline_(roll.deadline()) {
  // If all ranks are on one host, listen only on loopback, which no other host can reach.
  hosts_ = roll.all("host", this_host());
  const std::string far = one_host() ? "127.0.0.1" : own_address(roll.store(), rank_);
  listener_ = listen_on(far, 0);
  Message mine;
  mine.add(listener_.address), mine.add(far), mine.add(std::to_string(listener_.port));
  const auto bytes = mine.bytes();
  for (const std::string& place : roll.all("rank", std::string(bytes.data(), bytes.size()))) {
    const Fields f = fields_of(place, sizeof(uint32_t));
    places_.push_back({f.at(0), f.at(1), static_cast<uint16_t>(std::stoi(f.at(2)))});
  }
  token_ = std::stoull(roll.of_first("token", std::to_string(random_token())));
}

std::vector<Descriptor> Mesh::connect(int lane) {
  std::vector<Descriptor> sockets(static_cast<size_t>(size_));
  for (int r = 0; r < rank_; ++r) sockets[static_cast<size_t>(r)] = dialled(lane, r);
  for (int r = rank_ + 1; r < size_; ++r) sockets[static_cast<size_t>(r)] = accepted(lane, r);
  return sockets;
}

std::vector<Descriptor> Mesh::connect_to_first(int lane) {
  std::vector<Descriptor> sockets(static_cast<size_t>(size_));
  if (rank_) sockets[0] = dialled(lane, 0);
  for (int r = 1; r < size_ && rank_ == 0; ++r) sockets[static_cast<size_t>(r)] = accepted(lane, r);
  return sockets;
}

bool Mesh::one_host() const {
  return std::ranges::all_of(hosts_, [&](const std::string& host) { return host == hosts_[0]; });
}

Descriptor Mesh::dialled(int lane, int to) {
  const Hello mine{token_, rank_, lane};
  const PeerAddress& there = places_[static_cast<size_t>(to)];
  const bool here = hosts_[static_cast<size_t>(to)] == hosts_[static_cast<size_t>(rank_)];
  Descriptor socket = connect_to(here ? there.near : there.far, there.port, deadline_);
  send_all(socket, {reinterpret_cast<const char*>(&mine), sizeof mine}, deadline_);
  return socket;
}

// Accepts pending connections. Bounded, so that foreign connections can't use up all descriptors or block the group.
void Mesh::admit() {
  int error = 0;
  for (int i = 0; i < kMostAcceptedAtOnce && !error; ++i) {
    Descriptor socket = accepted_by(listener_, error);
    if (socket) visitors_.push_back({std::move(socket), after(kHelloTime)});
    const bool full = (error && error != EAGAIN && error != EWOULDBLOCK) || visitors_.size() >= kMostVisitors;
    if (!full) continue;
    // Make room: drop the oldest connection that has had time to send its Hello.
    if (!visitors_.empty() && visitors_.front().until <= after(kHelloTime - kVisit)) visitors_.erase(visitors_.begin());
    std::this_thread::sleep_for(Milliseconds(10));
    return;
  }
}

// True if the complete Hello has been received.
bool Mesh::listen(Visitor& v) {
  while (v.heard < sizeof v.hello) {
    const ssize_t n = ::recv(v.socket.get(), reinterpret_cast<char*>(&v.hello) + v.heard, sizeof v.hello - v.heard, 0);
    if (n > 0) {
      v.heard += static_cast<size_t>(n);
    } else if (n == 0 || errno != EINTR) {
      v.gone = n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
      return false;
    }
  }
  return true;
}

Descriptor Mesh::accepted(int lane, int from) {
  const runtime::InterruptWatch watch;
  for (;;) {
    if (auto known = early_.extract({lane, from})) return std::move(known.mapped());
    if (Clock::now() >= deadline_) throw DistNetworkError("rank {} did not connect to rank {} in time", from, rank_);
    std::vector<pollfd> polled{{listener_.socket.get(), POLLIN, 0}};
    for (const Visitor& v : visitors_) polled.push_back({v.socket.get(), POLLIN, 0});
    ::poll(polled.data(), polled.size(), milliseconds_until(deadline_, runtime::kInterruptMilliseconds));
    if (watch.interrupted()) throw runtime::Interrupted("waiting for another process was interrupted");
    admit();
    for (Visitor& v : visitors_) {
      if (listen(v)) {
        const Hello& h = v.hello;
        if (h.token == token_ && h.rank > rank_ && h.rank < size_) early_[{h.lane, h.rank}] = std::move(v.socket);
        v.gone = true;
      }
      v.gone |= Clock::now() >= v.until;
    }
    std::erase_if(visitors_, [](const Visitor& v) { return v.gone; });
  }
}

std::unique_ptr<Channels> Mesh::share() {
  const bool here = one_host();
  std::unique_ptr<SharedMemory> memory;
  const auto attempt = [&](const auto& make) {
    try {
      if (here) memory = make();
    } catch (const DistBackendError&) {
      // All of them are told.
    }
  };
  if (rank_ == 0) attempt([&] { return std::make_unique<SharedMemory>(size_); });
  const std::string told = roll_.of_first("memory", memory ? memory->path() + " " + std::to_string(memory->token()) : "none");
  const size_t space = told.find(' ');
  if (rank_ != 0 && space != std::string::npos)
    attempt([&] { return std::make_unique<SharedMemory>(size_, told.substr(0, space), std::stoull(told.substr(space + 1))); });
  const bool all = std::ranges::all_of(roll_.all("memory", memory ? "1" : "0"), [](const std::string& mapped) { return mapped == "1"; });
  return all ? shared_channels(std::move(*memory), rank_, size_) : nullptr;
}

}  // namespace naru::distributed
