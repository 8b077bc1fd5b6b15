#include "distributed/messages.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "naru/dtype.h"
#include "runtime/os/fork.h"

namespace naru::distributed {
namespace {

// Time limit for sending the last messages when a group ends.
constexpr Milliseconds kLastMessages{10'000};

std::string_view type_name(uint8_t type) { return type < kElementTypes ? kDTypeTraits[type].name : "?"; }

std::exception_ptr error(const std::string& text) { return std::make_exception_ptr(DistBackendError(text)); }

}  // namespace

Messages::Messages(std::vector<Descriptor> sockets, int rank, std::function<void()> changed)
    : rank_(rank),
      generation_(runtime::fork_generation()),
      changed_(std::move(changed)),
      peers_(sockets.size()),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  for (size_t i = 0; i < sockets.size(); ++i) peers_[i].socket = std::move(sockets[i]);
  thread_ = std::thread([this] { serve(); });
}

bool Messages::in_child() const noexcept { return generation_ != runtime::fork_generation(); }

Messages::~Messages() {
  if (in_child()) {
    static_cast<void>(new std::thread(std::move(thread_)));
    return;
  }
  {
    const Lock lock(mutex_);
    tell_all(Kind::Leaving, "");
    stopping_ = true;
  }
  wake();
  thread_.join();
  for (Peer& p : peers_)
    if (p.socket) ::shutdown(p.socket.get(), SHUT_RDWR);
}

void Messages::wake() {
  const uint64_t one = 1;
  static_cast<void>(!::write(wake_.get(), &one, sizeof one));
}

void Messages::tell_all(Kind kind, const std::string& text) {
  for (Peer& p : peers_)
    if (p.socket && !p.gone) p.out.push_back({{text.size(), 0, kind, 0, {}}, {}, nullptr, text});
}

void Messages::send(int to, int tag, Parcel parcel, WorkRef work) {
  if (in_child()) refuse_in_child();
  {
    const Lock lock(mutex_);
    Peer& p = peers_[static_cast<size_t>(to)];
    if (reason_) throw DistBackendError("{}", *reason_);
    if (p.gone) throw DistBackendError("{}", farewell(to));
    p.out.push_back({{parcel.bytes, tag, Kind::Data, parcel.type, {}}, std::move(parcel), std::move(work), {}});
  }
  wake();
}

void Messages::receive(int from, int tag, Parcel parcel, WorkRef work) {
  if (in_child()) refuse_in_child();
  Done done;
  {
    const Lock lock(mutex_);
    Receiving r{from, tag, std::move(parcel), std::move(work), after(Milliseconds(timeout_))};
    const auto e = std::ranges::find_if(early_, [&](const Early& e) { return e.head.tag == tag && (from == kAnyRank || e.from == from); });
    if (e != early_.end()) {
      hand_over(std::move(r), *e, done);
      early_.erase(e);
    } else if (reason_) {
      throw DistBackendError("{}", *reason_);
    } else if (from != kAnyRank && peers_[static_cast<size_t>(from)].gone) {
      throw DistBackendError("{}", farewell(from));
    } else {
      waiting_.push_back(std::move(r));
    }
  }
  for (const auto& f : done) f();
  wake();  // its deadline may be the next to expire
}

std::optional<std::string> Messages::reason() const {
  const Lock lock(mutex_);
  return reason_;
}

std::string Messages::farewell(int peer) const {
  const Peer& p = peers_[static_cast<size_t>(peer)];
  return "rank " + std::to_string(peer) +
         (p.left ? " has left the group: it called destroy_process_group, or its program has ended"
                 : " is gone: " + p.trouble + "; its process ended or was killed");
}

void Messages::fail(const std::string& reason) {
  if (in_child()) return;
  Done done;
  {
    const Lock lock(mutex_);
    fail_locked(reason, done);
  }
  for (const auto& f : done) f();
  wake();
}

void Messages::fail_locked(const std::string& reason, Done& done) {
  if (reason_) return;
  reason_ = reason;
  any_gone_ = true;
  tell_all(Kind::Failure, reason);
  const auto end = [&](const WorkRef& work) {
    if (work) done.push_back([work, reason] { work->finish(error(reason)); });
  };
  for (Receiving& r : waiting_) end(r.work);
  waiting_.clear();
  for (Peer& p : peers_) {
    if (p.into) end(p.into->work), p.into.reset();
    for (Sending& s : p.out) {
      end(s.work);
      s.work = nullptr;
    }
  }
}

// --- the thread

void Messages::serve() {
  Deadline last = Deadline::max();
  for (;;) {
    Done done;
    bool rest = false;
    {
      const Lock lock(mutex_);
      rest = std::ranges::any_of(peers_, [](const Peer& p) { return !p.out.empty() && !p.gone; });
    }
    if (stopping_) {
      if (last == Deadline::max()) last = after(kLastMessages);
      if (!rest || Clock::now() >= last) return;
    }
    poll_once(stopping_ ? 100 : 1000, done);
    for (const auto& f : done) f();
  }
}

void Messages::poll_once(int milliseconds, Done& done) {
  std::vector<pollfd> polled{{wake_.get(), POLLIN, 0}};
  std::vector<int> who;
  {
    const Lock lock(mutex_);
    for (size_t i = 0; i < peers_.size(); ++i) {
      Peer& p = peers_[i];
      if (!p.socket || p.gone) continue;
      polled.push_back({p.socket.get(), static_cast<short>(POLLIN | (p.out.empty() ? 0 : POLLOUT)), 0});
      who.push_back(static_cast<int>(i));
    }
    for (const Receiving& r : waiting_) milliseconds = std::min(milliseconds, milliseconds_until(r.deadline, 1000) + 1);
  }
  ::poll(polled.data(), polled.size(), milliseconds);
  uint64_t n = 0;
  if (polled[0].revents) static_cast<void>(!::read(wake_.get(), &n, sizeof n));
  const bool had_gone = any_gone_;
  {
    const Lock lock(mutex_);
    for (size_t i = 0; i < who.size(); ++i) {
      if (polled[i + 1].revents & POLLOUT) write(who[i], done);
      if (polled[i + 1].revents & (POLLIN | POLLHUP | POLLERR)) read(who[i], done);
    }
    look_at_deadlines(done);
  }
  if (any_gone_ || had_gone) changed_();
}

void Messages::look_at_deadlines(Done& done) {
  const auto now = Clock::now();
  for (auto r = waiting_.begin(); r != waiting_.end(); r = r->deadline <= now ? waiting_.erase(r) : std::next(r))
    if (r->deadline <= now) {
      const std::string text = "recv from " + (r->from == kAnyRank ? std::string("any rank") : "rank " + std::to_string(r->from)) +
                               " (tag " + std::to_string(r->tag) + ") on rank " + std::to_string(rank_) + " timed out after " +
                               std::to_string(timeout_) + " ms: nothing has been sent";
      done.push_back([work = r->work, text] { work->finish(error(text)); });
    }
}

void Messages::write(int peer, Done& done) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  while (!p.out.empty()) {
    Sending& s = p.out.front();
    const char* const body = s.head.kind == Kind::Data ? s.parcel.data : s.text.data();
    const bool in_head = s.at < sizeof(Head);
    const char* const data = in_head ? reinterpret_cast<const char*>(&s.head) + s.at : body + (s.at - sizeof(Head));
    const size_t n = in_head ? sizeof(Head) - s.at : s.head.bytes - (s.at - sizeof(Head));
    const ssize_t m = n ? ::send(p.socket.get(), data, n, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
    if (m < 0 && errno == EINTR) continue;
    if (m < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (m < 0) return lose(peer, "its connection broke (" + words_for(errno) + ")", done);
    s.at += static_cast<size_t>(m);
    if (s.at < sizeof(Head) + s.head.bytes) continue;
    if (s.work) done.push_back([work = s.work] { work->finish(); });
    p.out.pop_front();
  }
}

std::list<Messages::Receiving>::iterator Messages::match(int from, int tag) {
  return std::ranges::find_if(waiting_, [&](const Receiving& r) { return r.tag == tag && (r.from == kAnyRank || r.from == from); });
}

// Called when a head has been received. True if its body, if any, can be received too.
bool Messages::begin(int peer, Done& done) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  p.at = 0;
  if (p.head.kind == Kind::Data)
    if (const auto r = match(peer, p.head.tag); r != waiting_.end() && r->parcel.bytes == p.head.bytes && r->parcel.type == p.head.type) {
      p.into = std::move(*r);
      waiting_.erase(r);
      return true;
    }
  if (p.head.kind == Kind::Failure && p.head.bytes > 1 << 20) {
    lose(peer, "it sent what is no message", done);
    return false;
  }
  p.early.resize(p.head.bytes);
  return true;
}

void Messages::hand_over(Receiving r, const Early& e, Done& done) {
  if (r.parcel.bytes != e.head.bytes || r.parcel.type != e.head.type) {
    const auto said = [](uint8_t type, size_t bytes) { return std::to_string(bytes) + " bytes of " + std::string(type_name(type)); };
    const std::string text = "recv on rank " + std::to_string(rank_) + ": rank " + std::to_string(e.from) + " sent " +
                             said(e.head.type, e.head.bytes) + " (tag " + std::to_string(e.head.tag) + "), and the tensor holds " +
                             said(r.parcel.type, r.parcel.bytes) + "; both sides must name tensors of one type and size";
    done.push_back([work = r.work, text] { work->finish(std::make_exception_ptr(RuntimeError("{}", text))); });
    return;
  }
  if (!e.bytes.empty()) std::memcpy(r.parcel.data, e.bytes.data(), e.bytes.size());
  done.push_back([work = r.work, deliver = std::move(r.parcel.deliver), from = e.from] {
    try {
      if (deliver) deliver();
      work->finish({}, from);
    } catch (...) {
      work->finish(std::current_exception());
    }
  });
}

// Called when a body has been received.
void Messages::end(int peer, Done& done) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  p.head_at = 0;
  if (p.head.kind == Kind::Leaving) {
    p.left = true;
  } else if (p.head.kind == Kind::Failure) {
    fail_locked("rank " + std::to_string(peer) + " failed: " + p.early, done);
  } else if (p.into) {
    Receiving r = std::move(*p.into);
    p.into.reset();
    hand_over(std::move(r), {peer, p.head, {}}, done);
  } else if (const auto r = match(peer, p.head.tag); r != waiting_.end()) {
    Receiving taken = std::move(*r);
    waiting_.erase(r);
    hand_over(std::move(taken), {peer, p.head, std::move(p.early)}, done);
  } else {
    early_.push_back({peer, p.head, std::move(p.early)});
  }
  p.early.clear();
}

void Messages::read(int peer, Done& done) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  // Bounded, so that other peers get their turn.
  for (int turns = 0; turns < 64; ++turns) {
    const bool in_head = p.head_at < sizeof(Head);
    char* const body = p.into ? p.into->parcel.data : p.early.data();
    char* const at = in_head ? reinterpret_cast<char*>(&p.head) + p.head_at : body + p.at;
    const size_t n = in_head ? sizeof(Head) - p.head_at : p.head.bytes - p.at;
    if (n) {
      const ssize_t m = ::recv(p.socket.get(), at, n, MSG_DONTWAIT);
      if (m < 0 && errno == EINTR) continue;
      if (m < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (m < 0) return lose(peer, "its connection broke (" + words_for(errno) + ")", done);
      if (m == 0) return lose(peer, "its connection was closed", done);
      (in_head ? p.head_at : p.at) += static_cast<size_t>(m);
    }
    if (in_head && p.head_at == sizeof(Head) && !begin(peer, done)) return;
    // After a failure no receiver waits for the body.
    if (!p.into && p.early.size() < p.head.bytes && p.head_at == sizeof(Head)) p.early.resize(p.head.bytes);
    if (p.head_at == sizeof(Head) && p.at == p.head.bytes) end(peer, done);
  }
}

void Messages::lose(int peer, const std::string& trouble, Done& done) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  if (p.gone) return;
  p.trouble = trouble;
  p.gone = true;
  any_gone_ = true;
  const std::string text = farewell(peer);
  const auto end = [&](const WorkRef& work) {
    if (work) done.push_back([work, text] { work->finish(error(text)); });
  };
  if (p.into) end(p.into->work), p.into.reset();
  for (Sending& s : p.out) end(s.work);
  p.out.clear();
  const bool alone = std::ranges::all_of(peers_, [](const Peer& q) { return !q.socket || q.gone; });
  for (auto r = waiting_.begin(); r != waiting_.end();) {
    const bool hopeless = r->from == peer || (r->from == kAnyRank && alone);
    if (hopeless) end(r->work);
    r = hopeless ? waiting_.erase(r) : std::next(r);
  }
}

}  // namespace naru::distributed
