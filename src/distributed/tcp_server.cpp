#include "distributed/tcp_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "runtime/os/fork.h"

namespace naru::distributed {

std::span<const char> Message::bytes() {
  const auto n = static_cast<uint32_t>(text_.size() - sizeof(uint32_t));
  std::memcpy(text_.data(), &n, sizeof n);
  return text_;
}

namespace {

// A stranger may be connected so long without a word, and somebody known may take so long for one message.
constexpr Milliseconds kGreetingTime{10'000}, kMessageTime{60'000}, kFarewellTime{1'000}, kPause{100};
// Who comes to greet has done so by then, and makes no room for others before.
constexpr Milliseconds kChance{1'000};
// Connections without a greeting; what is read of one in a turn; what waits to be sent before no more is read; what waits to be complete, of all together.
constexpr size_t kMostStrangers = 256, kMostAtOnce = 64, kMostRead = 1u << 20, kMostUnsent = 1u << 20, kMostUnfinished = 256u << 20;

}  // namespace

std::string token_of_launch() {
  const char* const set = std::getenv(kTokenVariable);
  const std::string token = set ? set : "";
  if (token.size() > kTokenBytes) throw ValueError("{} may have {} bytes, got {}", kTokenVariable, kTokenBytes, token.size());
  return token;
}

std::string new_nonce() {
  std::string nonce(kNonceBytes, '\0');
  random_bytes(nonce);
  return nonce;
}

std::string proof_of(Side side, std::string_view token, std::string_view client_nonce, std::string_view server_nonce) {
  std::string text(kGreeting);
  text += static_cast<char>(side);
  return hmac_sha256(token, text.append(client_nonce).append(server_nonce));
}

Fields fields_of(std::string_view text, size_t from) {
  Fields fields;
  while (from < text.size()) {
    uint32_t n = 0;
    if (text.size() - from < sizeof n || fields.size() >= kMostFields) throw DistNetworkError("a message of a store is damaged");
    std::memcpy(&n, text.data() + from, sizeof n);
    from += sizeof n;
    if (text.size() - from < n) throw DistNetworkError("a message of a store is damaged");
    fields.emplace_back(text.substr(from, n));
    from += n;
  }
  return fields;
}

TCPServer::TCPServer(const std::string& host, uint16_t port)
    : listener_(listen_on(host, port)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      generation_(runtime::fork_generation()),
      token_(token_of_launch()) {
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
  while (!stopped_) {
    try {
      serve_once();
    } catch (const std::exception&) {
      // No memory, as a rule. Those that are known go on.
      if (!drop_a_stranger()) std::this_thread::sleep_for(kPause);
    }
  }
}

int TCPServer::milliseconds_to_wait() const {
  Deadline first = accepts_from_ > Clock::now() ? accepts_from_ : Deadline::max();
  for (const Connection& c : connections_) first = std::min(first, c.until);
  return first == Deadline::max() ? -1 : milliseconds_until(first, 60'000) + 1;
}

void TCPServer::serve_once() {
  const bool accepts = Clock::now() >= accepts_from_;
  std::vector<pollfd> polled{{listener_.socket.get(), static_cast<short>(accepts ? POLLIN : 0), 0}, {wake_.get(), POLLIN, 0}};
  for (const Connection& c : connections_) {
    const int events = (c.out.size() < kMostUnsent ? POLLIN : 0) | (c.out.empty() ? 0 : POLLOUT);
    polled.push_back({c.socket.get(), static_cast<short>(events), 0});
  }
  if (::poll(polled.data(), polled.size(), milliseconds_to_wait()) < 0) {
    if (errno != EINTR) std::this_thread::sleep_for(kPause);
    return;
  }
  size_t i = 2;
  for (Connection& c : connections_) {
    const short events = polled[i++].revents;
    if (events & (POLLIN | POLLHUP | POLLERR)) guarded(c, &TCPServer::read);
    if (events & POLLOUT) guarded(c, &TCPServer::write);
  }
  const auto now = Clock::now();
  for (Connection& c : connections_) {
    guarded(c, &TCPServer::answer_waiting);
    c.closed |= c.until <= now;
  }
  std::erase_if(connections_, [](const Connection& c) { return c.closed; });
  if (accepts && polled[0].revents) accept_all();
}

// What goes wrong with one connection ends that one.
void TCPServer::guarded(Connection& c, void (TCPServer::*what)(Connection&)) noexcept {
  try {
    if (!c.closed) (this->*what)(c);
  } catch (...) {
    c.closed = true;
  }
}

// Files of the program's own must stay possible.
size_t TCPServer::most_connections() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return std::max<size_t>(limit.rlim_cur / 4 * 3, 16);
}

// The one that has been connected longest without a greeting.
bool TCPServer::drop_a_stranger() {
  const auto found = std::ranges::find_if(connections_, [](const Connection& c) { return !c.greeted; });
  if (found == connections_.end() || found->until > after(kGreetingTime - kChance)) return false;
  connections_.erase(found);
  return true;
}

void TCPServer::accept_all() {
  const size_t most = most_connections();
  for (size_t i = 0; i < kMostAtOnce; ++i) {
    const auto strangers = std::ranges::count_if(connections_, [](const Connection& c) { return !c.greeted; });
    if ((connections_.size() >= most || strangers >= static_cast<ptrdiff_t>(kMostStrangers)) && !drop_a_stranger()) {
      accepts_from_ = after(kPause);
      return;
    }
    int error = 0;
    Descriptor socket = accepted_by(listener_, error);
    if (!socket) {
      // Descriptors or memory are used up: those that have not greeted make room.
      if (error != EAGAIN && error != EWOULDBLOCK && !drop_a_stranger()) accepts_from_ = after(kPause);
      return;
    }
    Connection& c = connections_.emplace_back();
    c.socket = std::move(socket);
    c.until = after(kGreetingTime);
  }
}

void TCPServer::read(Connection& c) {
  char piece[65536];
  for (size_t got = 0; got < kMostRead && !c.closed && c.out.size() < kMostUnsent;) {
    // Of a stranger not more than it owes.
    const size_t owed = c.expected.empty() ? kHelloBytes : kProofBytes;
    const ssize_t n = ::recv(c.socket.get(), piece, c.greeted || c.refused ? sizeof piece : owed - c.in.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) c.closed = true;
      return;
    }
    got += static_cast<size_t>(n);
    if (c.refused) continue;  // until its answer has gone out
    c.in.append(piece, static_cast<size_t>(n));
    c.greeted ? take_all(c) : greet(c);
  }
}

void TCPServer::greet(Connection& c) {
  if (c.expected.empty()) {
    const size_t said = std::min(c.in.size(), kGreeting.size());
    // The client does not speak this protocol.
    if (std::string_view(c.in).substr(0, said) != kGreeting.substr(0, said)) c.closed = true;
    if (c.closed || c.in.size() < kHelloBytes) return;
    const std::string theirs = c.in.substr(kGreeting.size()), mine = new_nonce();
    c.in.clear();
    c.expected = proof_of(Side::Client, token_, theirs, mine);
    return answer(c, std::string(kGreeting) + mine + proof_of(Side::Server, token_, theirs, mine));
  }
  if (c.in.size() < kProofBytes) return;
  // Without a token all are known.
  const bool known = token_.empty() || equal_in_constant_time(c.in, c.expected);
  c.in.clear();
  if (known) {
    c.greeted = true, c.until = Deadline::max();
    return;
  }
  c.refused = true, c.until = after(kFarewellTime);
  Message message;
  message.add("error"), message.add(std::string("the store belongs to a launch whose token this process has not (") + kTokenVariable + ")");
  const auto bytes = message.bytes();
  answer(c, {bytes.data(), bytes.size()});
}

// The complete messages in c.in.
void TCPServer::take_all(Connection& c) {
  size_t at = 0;
  uint32_t n = 0;
  while (!c.closed && c.in.size() - at >= sizeof n) {
    std::memcpy(&n, c.in.data() + at, sizeof n);
    c.closed = n > kGreatestMessage || n == 0;
    if (c.closed || c.in.size() - at - sizeof n < n) break;
    try {
      take(c, std::string_view(c.in).substr(at + sizeof n, n));
    } catch (const DistStoreError& e) {
      Message message;
      message.add("error"), message.add(e.what());
      const auto bytes = message.bytes();
      answer(c, {bytes.data(), bytes.size()});
    }
    at += sizeof n + n;
    c.until = Deadline::max();
  }
  c.in.erase(0, at);
  if (c.in.empty()) {
    std::string().swap(c.in);
    c.until = Deadline::max();
  } else if (c.until == Deadline::max()) {
    c.until = after(kMessageTime);
  }
  size_t unfinished = 0;
  for (const Connection& other : connections_) unfinished += other.in.size();
  c.closed |= unfinished > kMostUnfinished;
}

void TCPServer::take(Connection& c, std::string_view text) {
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

void TCPServer::answer_waiting(Connection& c) {
  if (c.waits.empty() || !keys_.has_all(c.waits)) return;
  Message message;
  if (c.wants_value) message.add(*keys_.find(c.waits[0]));
  c.waits.clear();
  const auto bytes = message.bytes();
  answer(c, {bytes.data(), bytes.size()});
}

}  // namespace naru::distributed
