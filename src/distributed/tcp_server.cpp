#include "distributed/tcp_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/fork.h"

namespace naru::distributed {

std::span<const char> Message::bytes() {
  const auto n = static_cast<uint32_t>(text_.size() - sizeof(uint32_t));
  std::memcpy(text_.data(), &n, sizeof n);
  return text_;
}

Fields fields_of(std::string_view text, size_t from) {
  Fields fields;
  while (from < text.size()) {
    uint32_t n = 0;
    if (text.size() - from < sizeof n) throw DistNetworkError("a message of a store is damaged");
    std::memcpy(&n, text.data() + from, sizeof n);
    from += sizeof n;
    if (text.size() - from < n) throw DistNetworkError("a message of a store is damaged");
    fields.emplace_back(text.substr(from, n));
    from += n;
  }
  return fields;
}

TCPServer::TCPServer(uint16_t port)
    : listener_(listen_on(port)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), generation_(runtime::fork_generation()) {
  thread_ = std::thread([this] { serve(); });
}

TCPServer::~TCPServer() {
  if (generation_ != runtime::fork_generation()) {  // a forked child has not the thread
    static_cast<void>(new std::thread(std::move(thread_)));
    return;
  }
  stopped_ = true;
  const uint64_t one = 1;
  static_cast<void>(!::write(wake_.get(), &one, sizeof one));
  thread_.join();
}

void TCPServer::serve() {
  std::vector<pollfd> polled;
  while (!stopped_) {
    polled.assign({{listener_.socket.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}});
    for (const Connection& c : connections_)
      polled.push_back({c.socket.get(), static_cast<short>(POLLIN | (c.out.empty() ? 0 : POLLOUT)), 0});
    if (::poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    size_t i = 2;
    for (Connection& c : connections_) {
      const short events = polled[i++].revents;
      if (events & (POLLIN | POLLHUP | POLLERR)) read(c);
      if (events & POLLOUT) write(c);
    }
    answer_waiting();
    std::erase_if(connections_, [](const Connection& c) { return c.closed; });
    if (polled[0].revents) accept_all();
  }
}

void TCPServer::accept_all() {
  for (;;) {
    Descriptor socket(::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    connections_.emplace_back().socket = std::move(socket);
  }
}

void TCPServer::read(Connection& c) {
  char piece[65536];
  for (;;) {
    const ssize_t n = ::recv(c.socket.get(), piece, sizeof piece, 0);
    if (n > 0) {
      c.in.append(piece, static_cast<size_t>(n));
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) c.closed = true;
    break;
  }
  if (!c.greeted && c.in.size() >= kGreeting.size()) {
    // Somebody else's program.
    if (!c.in.starts_with(kGreeting)) c.closed = true;
    c.in.erase(0, kGreeting.size());
    c.greeted = true;
  }
  while (!c.closed && c.greeted && c.in.size() >= sizeof(uint32_t)) {
    uint32_t n = 0;
    std::memcpy(&n, c.in.data(), sizeof n);
    if (n > kGreatestMessage || n == 0) c.closed = true;
    if (c.closed || c.in.size() - sizeof n < n) break;
    try {
      take(c);
    } catch (const DistStoreError& e) {
      Message message;
      message.add("error"), message.add(e.what());
      answer(c, {message.bytes().data(), message.bytes().size()});
    } catch (const std::exception&) {
      c.closed = true;
    }
    c.in.erase(0, sizeof n + n);
  }
}

// The request that stands at the beginning of c.in.
void TCPServer::take(Connection& c) {
  uint32_t n = 0;
  std::memcpy(&n, c.in.data(), sizeof n);
  const std::string_view text(c.in.data() + sizeof n, n);
  const Fields f = fields_of(text, 1);
  Message message;
  switch (static_cast<Request>(text[0])) {
    case Request::Set:
      keys_.set(f.at(0), f.at(1));
      break;
    case Request::Get:
      c.waits = {f.at(0)}, c.wants_value = true;
      return;
    case Request::Wait:
      c.waits = f, c.wants_value = false;
      return;
    case Request::Add:
      message.add(std::to_string(keys_.add(f.at(0), number_in(f.at(0), f.at(1)))));
      break;
    case Request::Check:
      message.add(keys_.has_all(f) ? "1" : "0");
      break;
    case Request::CompareSet:
      message.add(keys_.compare_set(f.at(0), f.at(1), f.at(2)));
      break;
    case Request::Erase:
      message.add(keys_.erase(f.at(0)) ? "1" : "0");
      break;
    case Request::Count:
      message.add(std::to_string(keys_.size() - (keys_.find(kWorkers) ? 1 : 0)));
      break;
    default:
      c.closed = true;
      return;
  }
  const auto bytes = message.bytes();
  answer(c, {bytes.data(), bytes.size()});
}

void TCPServer::answer(Connection& c, std::string_view message) {
  c.out += message;
  write(c);
}

void TCPServer::write(Connection& c) {
  while (!c.out.empty()) {
    const ssize_t n = ::send(c.socket.get(), c.out.data(), c.out.size(), MSG_NOSIGNAL);
    if (n > 0)
      c.out.erase(0, static_cast<size_t>(n));
    else if (errno != EINTR) {
      if (errno != EAGAIN && errno != EWOULDBLOCK) c.closed = true;
      return;
    }
  }
}

void TCPServer::answer_waiting() {
  for (Connection& c : connections_) {
    if (c.closed || c.waits.empty() || !keys_.has_all(c.waits)) continue;
    Message message;
    if (c.wants_value) message.add(*keys_.find(c.waits[0]));
    c.waits.clear();
    const auto bytes = message.bytes();
    answer(c, {bytes.data(), bytes.size()});
  }
}

}  // namespace naru::distributed
