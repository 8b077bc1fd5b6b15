#include "distributed/tcp_server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

// A stranger may be connected so long without a word, and a known client may take so long for one message.
constexpr Milliseconds kGreetingTime{10'000}, kMessageTime{60'000}, kFarewellTime{1'000}, kPause{100};
// Who comes to greet has done so by then, and makes no room for others before.
constexpr Milliseconds kChance{1'000};
// Connections without a greeting; what is read of one in a turn; what waits to be sent before no more is read; what waits to be complete, of all together.
constexpr size_t kMostStrangers = 256, kMostAtOnce = 64, kMostRead = 1u << 20, kMostUnsent = 1u << 20, kMostUnfinished = 256u << 20;

// The field of a message that begins at `at`, which moves behind it. DistNetworkError where it is damaged.
std::string_view next_field(std::string_view text, size_t& at) {
  uint32_t n = 0;
  if (text.size() - at < sizeof n) throw DistNetworkError("a message of a store is damaged");
  std::memcpy(&n, text.data() + at, sizeof n);
  if (text.size() - at - sizeof n < n) throw DistNetworkError("a message of a store is damaged");
  const std::string_view field = text.substr(at + sizeof n, n);
  at += sizeof n + n;
  return field;
}

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
    if (fields.size() >= kMostFields) throw DistNetworkError("a message of a store is damaged");
    fields.emplace_back(next_field(text, from));
  }
  return fields;
}

TCPServer::TCPServer(const std::string& host, uint16_t port)
    : listener_(listen_on(host, port)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      generation_(runtime::fork_generation()),
      token_(token_of_launch()) {
  epoll_event bell{EPOLLIN, {.ptr = &wake_}}, door{EPOLLIN, {.ptr = &listener_}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &bell) != 0 ||
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listener_.socket.get(), &door) != 0)
    throw DistNetworkError("a store can't wait for its clients: {}", words_for(errno));
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
  Deadline first = accepts_ ? Deadline::max() : accepts_from_;
  if (!due_.empty()) first = std::min(first, due_.begin()->first);
  return first == Deadline::max() ? -1 : milliseconds_until(first, 60'000) + 1;
}

void TCPServer::serve_once() {
  go_on();
  forget_closed();
  if (!accepts_ && Clock::now() >= accepts_from_) watch_listener(true);
  std::array<epoll_event, 256> events;
  const int n = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), milliseconds_to_wait());
  if (n < 0) {
    if (errno != EINTR) std::this_thread::sleep_for(kPause);
    return;
  }
  bool knocked = false;
  for (const epoll_event& event : std::span(events).first(static_cast<size_t>(n))) {
    knocked |= event.data.ptr == &listener_;
    if (event.data.ptr == &listener_ || event.data.ptr == &wake_) continue;
    Connection& c = *static_cast<Connection*>(event.data.ptr);
    if (event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) guarded(c, &TCPServer::read);
    if (event.events & EPOLLOUT) guarded(c, &TCPServer::write_more);
    guarded(c, &TCPServer::watch);
  }
  go_on();
  const auto now = Clock::now();
  while (!due_.empty() && due_.begin()->first <= now) close(*due_.begin()->second);
  forget_closed();
  if (knocked) accept_all();
}

// An error of one connection closes that connection only.
void TCPServer::guarded(Connection& c, void (TCPServer::*what)(Connection&)) noexcept {
  try {
    if (!c.closed) (this->*what)(c);
  } catch (...) {
    close(c);
  }
}

// The connection is kept until forget_closed(), because events of this turn may point to it.
void TCPServer::close(Connection& c) noexcept {
  if (c.closed) return;
  c.closed = true;
  stop_waiting(c);
  due_.erase({c.until, &c});
  unfinished_ -= c.in.size();
  closed_.splice(closed_.end(), c.greeted ? known_ : strangers_, c.self);
}

void TCPServer::forget_closed() noexcept {
  std::erase_if(answered_, [](const Connection* c) { return c->closed; });
  closed_.clear();
}

void TCPServer::set_until(Connection& c, Deadline until) {
  if (until == c.until) return;
  due_.erase({c.until, &c});
  if (until != Deadline::max()) due_.emplace(until, &c);
  c.until = until;
}

// Asks epoll for what the connection can use now.
void TCPServer::watch(Connection& c) {
  // A client that waits is read too, because only so its end is noticed; but not when it has sent more requests.
  const bool reads = c.out.size() < kMostUnsent && (!c.wait || c.in.empty());
  const uint32_t events = (reads ? uint32_t{EPOLLIN} : 0) | (c.out.empty() ? 0 : uint32_t{EPOLLOUT});
  if (events == c.events) return;
  epoll_event event{events, {.ptr = &c}};
  if (::epoll_ctl(epoll_.get(), c.events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c.socket.get(), &event) != 0) return close(c);
  c.events = events;
}

void TCPServer::welcome(Connection& c) {
  set_until(c, after(kGreetingTime));
  watch(c);
}

void TCPServer::watch_listener(bool accepts) {
  epoll_event event{accepts ? uint32_t{EPOLLIN} : 0, {.ptr = &listener_}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener_.socket.get(), &event) == 0) accepts_ = accepts;
}

// The program must still be able to open files of its own.
size_t TCPServer::most_connections() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return SIZE_MAX;
  return std::max<size_t>(limit.rlim_cur / 4 * 3, 16);
}

// Drops the client that has been connected for the longest time without a greeting.
bool TCPServer::drop_a_stranger() {
  if (strangers_.empty() || strangers_.front().until > after(kGreetingTime - kChance)) return false;
  close(strangers_.front());
  forget_closed();
  return true;
}

void TCPServer::accept_all() {
  const size_t most = most_connections();
  const auto pause = [&] {
    accepts_from_ = after(kPause);
    watch_listener(false);
  };
  for (size_t i = 0; i < kMostAtOnce; ++i) {
    if ((known_.size() + strangers_.size() >= most || strangers_.size() >= kMostStrangers) && !drop_a_stranger()) return pause();
    int error = 0;
    Descriptor socket = accepted_by(listener_, error);
    if (!socket) {
      // If descriptors or memory are used up, those that have not greeted make room.
      if (error != EAGAIN && error != EWOULDBLOCK && !drop_a_stranger()) pause();
      return;
    }
    Connection& c = strangers_.emplace_back();
    c.self = std::prev(strangers_.end());
    c.socket = std::move(socket);
    guarded(c, &TCPServer::welcome);
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
      if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) close(c);
      return;
    }
    got += static_cast<size_t>(n);
    if (c.refused) continue;  // until its answer has gone out
    c.in.append(piece, static_cast<size_t>(n));
    unfinished_ += static_cast<size_t>(n);
    c.greeted ? take_all(c) : greet(c);
  }
}

void TCPServer::greet(Connection& c) {
  if (c.expected.empty()) {
    const size_t said = std::min(c.in.size(), kGreeting.size());
    // The client does not speak this protocol.
    if (std::string_view(c.in).substr(0, said) != kGreeting.substr(0, said)) close(c);
    if (c.closed || c.in.size() < kHelloBytes) return;
    const std::string theirs = c.in.substr(kGreeting.size()), mine = new_nonce();
    unfinished_ -= c.in.size();
    c.in.clear();
    c.expected = proof_of(Side::Client, token_, theirs, mine);
    return answer(c, std::string(kGreeting) + mine + proof_of(Side::Server, token_, theirs, mine));
  }
  if (c.in.size() < kProofBytes) return;
  // Without a token all are known.
  const bool known = token_.empty() || equal_in_constant_time(c.in, c.expected);
  unfinished_ -= c.in.size();
  c.in.clear();
  if (known) {
    set_until(c, Deadline::max());
    known_.splice(known_.end(), strangers_, c.self);
    c.greeted = true;
    return;
  }
  c.refused = true;
  set_until(c, after(kFarewellTime));
  Message message;
  message.add("error"), message.add(std::string("the store belongs to a launch whose token this process has not (") + kTokenVariable + ")");
  answer(c, message);
}

// Takes the complete requests in c.in, until one must wait for a key, or the client does not read its answers.
void TCPServer::take_all(Connection& c) {
  size_t at = 0;
  uint32_t n = 0;
  while (!blocked(c) && c.in.size() - at >= sizeof n) {
    std::memcpy(&n, c.in.data() + at, sizeof n);
    if (n > kGreatestMessage || n == 0) close(c);
    if (c.closed || c.in.size() - at - sizeof n < n) break;
    try {
      take(c, std::string_view(c.in).substr(at + sizeof n, n));
    } catch (const DistStoreError& e) {
      Message message;
      message.add("error"), message.add(e.what());
      answer(c, message);
    }
    at += sizeof n + n;
  }
  if (c.closed) return;
  unfinished_ -= at;
  c.in.erase(0, at);
  if (c.in.empty()) std::string().swap(c.in);
  // A request that has begun must be complete in time; each complete one gives the next its own time.
  set_until(c, c.in.empty() || blocked(c) ? Deadline::max() : at || c.until == Deadline::max() ? after(kMessageTime) : c.until);
  if (unfinished_ > kMostUnfinished) close(c);
}

bool TCPServer::blocked(const Connection& c) { return c.closed || c.wait || c.out.size() >= kMostUnsent; }

void TCPServer::take(Connection& c, std::string_view text) {
  const auto what = static_cast<Request>(text[0]);
  if (what == Request::Get || what == Request::GetAll || what == Request::Wait) return begin_wait(c, text);
  const Fields f = fields_of(text, 1);
  Message message;
  switch (what) {
    case Request::Set:
      keys_.set(f.at(0), f.at(1));
      break;
    case Request::Add:
      message.add(std::to_string(keys_.add(f.at(0), number_in(f.at(0), f.at(1)))));
      break;
    case Request::Check:
      message.add(keys_.has_all(f) ? "1" : "0");
      break;
    case Request::CompareSet:
      message.add(keys_.compare_set(f.at(0), f.at(1), f.at(2)));
      break;
    case Request::Append:
      keys_.append(f.at(0), f.at(1));
      break;
    case Request::List:
      list(message);
      break;
    case Request::Erase:
      ++erasures_;
      message.add(keys_.erase(f.at(0)) ? "1" : "0");
      break;
    case Request::Count:
      message.add(std::to_string(keys_.size() - (keys_.find(kWorkers) ? 1 : 0)));
      break;
    default:
      return close(c);
  }
  answer(c, message);
  if (what == Request::Set || what == Request::Add || what == Request::CompareSet || what == Request::Append) tell_waiting(f[0]);
}

void TCPServer::list(Message& message) const {
  size_t bytes = 0;
  const std::vector<std::string> keys = keys_.list();
  for (const std::string& key : keys) bytes += sizeof(uint32_t) + key.size();
  if (bytes > kGreatestMessage || keys.size() >= kMostFields)
    throw DistStoreError("list_keys: {} keys of {} bytes are too many for one answer", keys.size(), bytes);
  message.add(kValues);
  for (const std::string& key : keys) message.add(key);
}

void TCPServer::answer(Connection& c, Message& message) {
  const auto bytes = message.bytes();
  answer(c, {bytes.data(), bytes.size()});
}

void TCPServer::answer(Connection& c, std::string_view message) {
  c.out += message;
  write(c);
}

void TCPServer::write(Connection& c) {
  size_t done = 0;
  while (done < c.out.size()) {
    const ssize_t n = ::send(c.socket.get(), c.out.data() + done, c.out.size() - done, MSG_NOSIGNAL);
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (errno != EINTR) {
      if (errno != EAGAIN && errno != EWOULDBLOCK) close(c);
      break;
    }
  }
  c.out.erase(0, done);
}

void TCPServer::write_more(Connection& c) {
  write(c);
  if (!c.in.empty() && c.greeted && !blocked(c)) take_all(c);
}

// The requests behind those that had to wait for a key. They are not taken while another client's request is, which would nest.
void TCPServer::go_on() {
  while (!answered_.empty()) {
    Connection& c = *answered_.back();
    answered_.pop_back();
    guarded(c, &TCPServer::take_all);
    guarded(c, &TCPServer::watch);
  }
}

// --- clients that wait for keys

void TCPServer::begin_wait(Connection& c, std::string_view text) {
  size_t at = 1, keys = 0;
  while (at < text.size()) next_field(text, at), ++keys;
  const bool one = static_cast<Request>(text[0]) == Request::Get;
  if (keys > kMostFields || (one && keys != 1)) throw DistNetworkError("a message of a store is damaged");
  stop_waiting(c);
  c.wait = text, c.at = 1, c.erasures = erasures_;
  look_for_keys(c);
}

// Goes on from the key that was missing. Answers if all keys are there, else the connection waits for the next one that is missing.
void TCPServer::look_for_keys(Connection& c) {
  const std::string_view text = *c.wait;
  for (;;) {
    while (c.at < text.size()) {
      size_t next = c.at;
      c.missing = next_field(text, next);
      lookups_.fetch_add(1, std::memory_order_relaxed);
      if (!keys_.find(c.missing)) {
        waiting_[c.missing].push_back(&c);
        return;
      }
      c.at = next;
    }
    if (c.erasures == erasures_) break;
    c.at = 1, c.erasures = erasures_;  // a key that was there may be there no more
  }
  const auto what = static_cast<Request>(text[0]);
  std::vector<const std::string*> values;
  size_t bytes = 0;
  for (size_t at = 1; at < text.size() && what != Request::Wait; bytes += sizeof(uint32_t) + values.back()->size())
    values.push_back(keys_.find(std::string(next_field(text, at))));
  Message message;
  const bool all = what != Request::GetAll || bytes < kGreatestMessage / 2;
  if (what == Request::GetAll) message.add(all ? kValues : kTooMuch);
  for (const std::string* const value : values)
    if (all) message.add(*value);
  c.wait.reset();
  answer(c, message);
}

void TCPServer::stop_waiting(Connection& c) noexcept {
  if (!c.wait) return;
  const auto found = waiting_.find(c.missing);
  if (found != waiting_.end() && std::erase(found->second, &c) && found->second.empty()) waiting_.erase(found);
  c.wait.reset();
}

void TCPServer::tell_waiting(const std::string& key) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return;
  const std::vector<Connection*> told = std::move(found->second);
  waiting_.erase(found);
  for (Connection* const c : told) {
    guarded(*c, &TCPServer::look_for_keys);
    guarded(*c, &TCPServer::watch);
    if (!c->wait && !c->in.empty()) answered_.push_back(c);
  }
}

}  // namespace naru::distributed
