#include "distributed/mesh.h"

#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "distributed/tcp_server.h"

namespace naru::distributed {
namespace {

struct Hello {
  uint64_t token;
  int32_t rank, lane;
};

Milliseconds left(Deadline deadline) { return Milliseconds(milliseconds_until(deadline, INT32_MAX)); }

// Equal for processes that reach each other by the loopback.
std::string this_host() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  char text[256] = {};
  const ssize_t n = ::readlink("/proc/self/ns/net", text, sizeof text - 1);
  return id + "/" + std::string(text, static_cast<size_t>(n > 0 ? n : 0));
}

// The address of the interface that GLOO_SOCKET_IFNAME (or NCCL's variable) names.
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

std::string own_address(Store& store) {
  std::string address = address_of_interface();
  if (address.empty()) address = store.own_address();
  if (!address.empty() && address != "127.0.0.1" && address != "::1") return address;
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

Mesh::Mesh(Store& store, int rank, int size, Deadline deadline)
    : store_(store), rank_(rank), size_(size), deadline_(deadline), listener_(listen_on(0)) {
  if (rank == 0) store.set("token", std::to_string(random_token()));
  Message mine;
  mine.add(this_host()), mine.add(own_address(store)), mine.add(std::to_string(listener_.port));
  const auto bytes = mine.bytes();
  store.set("rank/" + std::to_string(rank), std::string(bytes.data(), bytes.size()));
  std::vector<std::string> keys{"token"};
  for (int r = 0; r < size; ++r) keys.push_back("rank/" + std::to_string(r));
  store.wait(keys, left(deadline));
  token_ = std::stoull(store.get("token"));
  for (int r = 0; r < size; ++r) {
    const Fields f = fields_of(store.get(keys[static_cast<size_t>(r) + 1]), sizeof(uint32_t));
    places_.push_back({f.at(0), f.at(1), static_cast<uint16_t>(std::stoi(f.at(2)))});
  }
}

std::vector<Descriptor> Mesh::connect(int lane) {
  std::vector<Descriptor> sockets(static_cast<size_t>(size_));
  const Hello mine{token_, rank_, lane};
  for (int r = 0; r < rank_; ++r) {
    const Place& there = places_[static_cast<size_t>(r)];
    const bool here = there.host == places_[static_cast<size_t>(rank_)].host;
    Descriptor socket = connect_to(here ? "127.0.0.1" : there.address, there.port, deadline_);
    send_all(socket, {reinterpret_cast<const char*>(&mine), sizeof mine}, deadline_);
    sockets[static_cast<size_t>(r)] = std::move(socket);
  }
  for (int r = rank_ + 1; r < size_; ++r) sockets[static_cast<size_t>(r)] = accepted(lane, r);
  return sockets;
}

Descriptor Mesh::accepted(int lane, int from) {
  for (;;) {
    if (auto known = early_.extract({lane, from})) return std::move(known.mapped());
    Descriptor socket = accept_from(listener_, deadline_);
    if (!socket) throw DistNetworkError("rank {} did not connect to rank {} in time", from, rank_);
    Hello hello{};
    try {
      receive_all(socket, {reinterpret_cast<char*>(&hello), sizeof hello}, std::min(deadline_, after(Milliseconds(10'000))));
    } catch (const DistNetworkError&) {
      continue;  // somebody else
    }
    if (hello.token == token_ && hello.rank > rank_ && hello.rank < size_) early_[{hello.lane, hello.rank}] = std::move(socket);
  }
}

std::unique_ptr<Channels> Mesh::share() {
  const char* const wanted = std::getenv("NARU_DISTRIBUTED_TRANSPORT");
  if (wanted && *wanted && std::strcmp(wanted, "tcp") != 0 && std::strcmp(wanted, "shared") != 0)
    throw ValueError("NARU_DISTRIBUTED_TRANSPORT must be \"tcp\" or \"shared\", got {}", wanted);
  bool one_host = !wanted || std::strcmp(wanted, "tcp") != 0;
  for (const Place& place : places_) one_host &= place.host == places_[0].host;
  std::unique_ptr<SharedMemory> memory;
  const auto attempt = [&](const auto& make) {
    try {
      if (one_host) memory = make();
    } catch (const DistBackendError&) {
      // TCP does as well.
    }
  };
  if (rank_ == 0) {
    attempt([&] { return std::make_unique<SharedMemory>(size_); });
    store_.set("memory", memory ? memory->path() + " " + std::to_string(memory->token()) : "none");
  } else {
    const std::string told = store_.get("memory");
    const size_t space = told.find(' ');
    if (space != std::string::npos)
      attempt([&] { return std::make_unique<SharedMemory>(size_, told.substr(0, space), std::stoull(told.substr(space + 1))); });
  }
  store_.set("memory/" + std::to_string(rank_), memory ? "1" : "0");
  bool all = true;
  for (int r = 0; r < size_; ++r) all &= store_.get("memory/" + std::to_string(r)) == "1";
  return all ? shared_channels(std::move(*memory), rank_, size_) : nullptr;
}

}  // namespace naru::distributed
