#include "distributed/messages.h"

#include <algorithm>
#include <cstring>

#include "naru/dtype.h"
#include "runtime/os/fork.h"

namespace naru::distributed {
namespace {

// Time limit for sending the last messages when a group ends.
constexpr Milliseconds kLastMessages{10'000};
// A wait is not longer while a receive is posted: channels that must ask for what arrives ask more often in short waits.
constexpr int kAwaited = 100;

std::string_view type_name(uint8_t type) { return type < kElementTypes ? kDTypeTraits[type].name : "?"; }

std::string no_message(int peer) { return "rank " + std::to_string(peer) + " is gone: it sent what is no message"; }

std::exception_ptr error(const std::string& text) { return std::make_exception_ptr(DistBackendError(text)); }

}  // namespace

Messages::Messages(std::unique_ptr<Channels> lines, int rank, int ranks, std::function<void()> changed)
    : rank_(rank),
      generation_(runtime::fork_generation()),
      lines_(std::move(lines)),
      changed_(std::move(changed)),
      peers_(static_cast<size_t>(ranks)),
      wanted_(static_cast<size_t>(ranks)) {
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
    tell_all(Kind::Leaving, "", collectives_);
    stopping_ = true;
  }
  lines_->wake();
  thread_.join();
}

void Messages::tell_all(Kind kind, const std::string& text, uint64_t number) {
  for (Peer& p : peers_)
    if (&p != &peers_[static_cast<size_t>(rank_)] && !p.gone) push(p, kind, number, text);
}

void Messages::push(Peer& p, Kind kind, uint64_t number, const std::string& text) {
  p.out.push_back({{text.size(), number, 0, kind, 0, {}}, {}, nullptr, text});
}

void Messages::send(int to, int tag, Parcel parcel, WorkRef work) {
  if (in_child()) refuse_in_child();
  {
    const Lock lock(mutex_);
    Peer& p = peers_[static_cast<size_t>(to)];
    if (reason_) throw DistBackendError("{}", *reason_);
    if (p.gone) throw DistBackendError("{}", farewell(to));
    Head head{parcel.bytes, 0, tag, Kind::Data, parcel.type, {}};
    if (p.unread + parcel.bytes + kOverhead <= kUnasked) {
      p.unread += parcel.bytes + kOverhead;
      p.out.push_back({head, std::move(parcel), std::move(work), {}});
    } else {
      if (p.left) throw DistBackendError("{}", farewell(to));
      head.kind = Kind::Offer, head.number = ++p.last_offer;
      p.out.push_back({head, {}, nullptr, {}});
      p.offers.emplace(head.number, Offered{head, std::move(parcel), std::move(work), after(Milliseconds(timeout_))});
    }
  }
  lines_->wake();
}

void Messages::receive(int from, int tag, Parcel parcel, WorkRef work) {
  if (in_child()) refuse_in_child();
  Done done;
  {
    const Lock lock(mutex_);
    Receiving r{from, tag, std::move(parcel), std::move(work), after(Milliseconds(timeout_))};
    const auto e = std::ranges::find_if(early_, [&](const Early& e) { return e.head.tag == tag && (from == kAnyRank || e.from == from); });
    if (e != early_.end()) {
      if (e->head.kind == Kind::Offer) {
        accept(std::move(r), e->from, e->head, done);
      } else {
        make_room(e->from, e->head.bytes + kOverhead);
        hand_over(std::move(r), *e, done);
      }
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
  lines_->wake();  // its deadline may be the next to expire
}

void Messages::on_failure(std::function<void(const std::string&)> f) {
  const Lock lock(mutex_);
  on_failure_ = std::move(f);
}

std::optional<std::string> Messages::reason() const {
  const Lock lock(mutex_);
  return reason_;
}

size_t Messages::held() const {
  const Lock lock(mutex_);
  size_t bytes = 0;
  for (const Early& e : early_) bytes += e.bytes.size();
  for (const Peer& p : peers_) bytes += p.early.size();
  return bytes;
}

std::string Messages::farewell(int peer) const {
  const Peer& p = peers_[static_cast<size_t>(peer)];
  if (!p.left) return p.trouble;
  return "rank " + std::to_string(peer) + " has left the group: it called destroy_process_group, or its program has ended";
}

std::optional<uint64_t> Messages::left_after(int peer) const {
  const Lock lock(mutex_);
  const Peer& p = peers_[static_cast<size_t>(peer)];
  return p.left ? std::optional(p.left_after) : std::nullopt;
}

void Messages::fail(const std::string& reason) {
  if (in_child()) return;
  Done done;
  {
    const Lock lock(mutex_);
    fail_locked(reason, done);
  }
  for (const auto& f : done) f();
  lines_->wake();
}

void Messages::fail_locked(const std::string& reason, Done& done) {
  if (reason_) return;
  reason_ = reason;
  any_gone_ = true;
  tell_all(Kind::Failure, reason);
  if (on_failure_) done.push_back([f = on_failure_, reason] { f(reason); });
  const auto end = [&](const WorkRef& work) {
    if (work) done.push_back([work, reason] { work->finish(error(reason)); });
  };
  for (Receiving& r : waiting_) end(r.work);
  waiting_.clear();
  for (Peer& p : peers_) {
    if (p.into) end(p.into->work), p.into.reset(), p.skips = true;
    for (Sending& s : p.out) {
      end(s.work);
      s.work = nullptr;
    }
    for (const auto& [number, r] : p.asked) end(r.work);
    p.asked.clear();
    drop_offers(p, reason, done);
  }
}

void Messages::drop_offers(Peer& p, const std::string& text, Done& done) {
  for (const auto& [number, offer] : p.offers)
    if (offer.work) done.push_back([work = offer.work, text] { work->finish(error(text)); });
  p.offers.clear();
}

// --- the thread

void Messages::serve() {
  Deadline last = Deadline::max();
  for (;;) {
    Done done;
    bool rest = false;
    {
      const Lock lock(mutex_);
      rest = std::ranges::any_of(peers_, [](const Peer& p) { return !(p.out.empty() && p.offers.empty()) && !p.gone; });
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
  const uint32_t before = lines_->epoch();
  const bool had_gone = any_gone_;
  bool moved = false;
  {
    const Lock lock(mutex_);
    for (size_t i = 0; i < peers_.size(); ++i) {
      Peer& p = peers_[i];
      wanted_[i] = Channels::kNothing;
      if (static_cast<int>(i) == rank_ || p.gone) continue;
      // Reads first: a peer's last message tells why its channel does not take more.
      moved |= read(static_cast<int>(i), done);
      if (!p.gone) moved |= write(static_cast<int>(i), done);
      if (!p.gone) wanted_[i] = p.out.empty() ? Channels::kInput : Channels::kInput | Channels::kRoom;
    }
    look_at_deadlines(done);
    const bool awaited = !waiting_.empty() || std::ranges::any_of(peers_, [](const Peer& p) { return p.into || !p.asked.empty(); });
    if (awaited) milliseconds = std::min(milliseconds, kAwaited);
    for (const Receiving& r : waiting_) milliseconds = std::min(milliseconds, milliseconds_until(r.deadline, 1000) + 1);
    for (const Peer& p : peers_)  // the first offer's deadline is the earliest, unless the timeout has changed
      if (!p.offers.empty()) milliseconds = std::min(milliseconds, milliseconds_until(p.offers.begin()->second.deadline, 1000) + 1);
  }
  if (any_gone_ && !had_gone) changed_();
  if (moved || !done.empty()) return;
  lines_->wait(before, wanted_, milliseconds);
  if (any_gone_) changed_();
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
  for (size_t to = 0; to < peers_.size(); ++to)
    std::erase_if(peers_[to].offers, [&](const auto& each) {
      const Offered& offer = each.second;
      if (offer.deadline > now) return false;
      const std::string text = "send of " + std::to_string(offer.head.bytes) + " bytes to rank " + std::to_string(to) + " (tag " +
                               std::to_string(offer.head.tag) + ") on rank " + std::to_string(rank_) + " timed out after " +
                               std::to_string(timeout_) + " ms: that rank has called no recv for it. Messages over " +
                               std::to_string(kUnasked >> 20) + " MiB that have not been received wait for their recv";
      if (offer.work) done.push_back([work = offer.work, text] { work->finish(error(text)); });
      return true;
    });
}

bool Messages::write(int peer, Done& done) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  bool moved = false;
  while (!p.out.empty()) {
    Sending& s = p.out.front();
    const bool is_data = s.head.kind == Kind::Data || s.head.kind == Kind::Body;
    const char* const body = is_data ? s.parcel.data : s.text.data();
    const bool in_head = s.at < sizeof(Head);
    const char* const data = in_head ? reinterpret_cast<const char*>(&s.head) + s.at : body + (s.at - sizeof(Head));
    const size_t n = in_head ? sizeof(Head) - s.at : s.head.following() - (s.at - sizeof(Head));
    const size_t m = n ? lines_->write(peer, data, n) : 0;
    s.at += m;
    moved |= m > 0;
    if (m < n) break;
    if (s.at < sizeof(Head) + s.head.following()) continue;
    if (s.work) done.push_back([work = s.work] { work->finish(); });
    p.out.pop_front();
  }
  if (moved) lines_->flush(peer);
  if (!p.out.empty() && lines_->closed(peer)) lose(peer, lines_->trouble(peer), done);
  return moved;
}

std::list<Messages::Receiving>::iterator Messages::match(int from, int tag) {
  return std::ranges::find_if(waiting_, [&](const Receiving& r) { return r.tag == tag && (r.from == kAnyRank || r.from == from); });
}

// Called when a head has been received. True if its body, if any, can be received too.
bool Messages::begin(int peer, Done& done) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  p.at = 0, p.skips = false;
  const uint64_t most = p.head.kind == Kind::Body ? UINT64_MAX : p.head.kind == Kind::Data ? kUnasked : size_t{1} << 20;
  if (p.head.following() > most) {
    lose(peer, no_message(peer), done);
    return false;
  }
  if (p.head.kind == Kind::Body) {
    auto known = p.asked.extract(p.head.number);
    p.skips = known.empty() || known.mapped().parcel.bytes != p.head.bytes;
    if (!p.skips) p.into = std::move(known.mapped());
    return true;
  }
  if (p.head.kind == Kind::Data)
    if (const auto r = match(peer, p.head.tag); r != waiting_.end() && !misfit(*r, peer, p.head)) {
      p.into = std::move(*r);
      waiting_.erase(r);
      return true;
    }
  p.early.resize(p.head.following());
  return true;
}

// Why a message can't be received into a tensor; nullopt if it can.
std::optional<std::string> Messages::misfit(const Receiving& r, int from, const Head& head) const {
  if (r.parcel.bytes == head.bytes && r.parcel.type == head.type) return std::nullopt;
  const auto said = [](uint8_t type, size_t bytes) { return std::to_string(bytes) + " bytes of " + std::string(type_name(type)); };
  return "recv on rank " + std::to_string(rank_) + ": rank " + std::to_string(from) + " sent " + said(head.type, head.bytes) + " (tag " +
         std::to_string(head.tag) + "), and the tensor holds " + said(r.parcel.type, r.parcel.bytes) +
         "; both sides must name tensors of one type and size";
}

// Asks for the bytes of an offer, for the receive that it matches.
void Messages::accept(Receiving r, int peer, const Head& offer, Done& done) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  if (const auto text = misfit(r, peer, offer)) {
    push(p, Kind::Refusal, offer.number, *text);
    done.push_back([work = r.work, text = *text] { work->finish(std::make_exception_ptr(RuntimeError("{}", text))); });
  } else if (p.gone) {
    done.push_back([work = r.work, text = farewell(peer)] { work->finish(error(text)); });
  } else {
    p.asked.emplace(offer.number, std::move(r));
    push(p, Kind::Ask, offer.number);
  }
}

// Tells a sender from time to time how much of what is stored for it has been received.
void Messages::make_room(int peer, uint64_t bytes) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  p.received += bytes;
  if (p.received < kUnasked / 2 || p.gone) return;
  push(p, Kind::Room, p.received);
  p.received = 0;
}

void Messages::hand_over(Receiving r, const Early& e, Done& done) {
  if (const auto text = misfit(r, e.from, e.head)) {
    done.push_back([work = r.work, text = *text] { work->finish(std::make_exception_ptr(RuntimeError("{}", text))); });
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

// Called when a head and its body have been received.
void Messages::end(int peer, Done& done) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  p.head_at = 0;
  switch (p.head.kind) {
    case Kind::Leaving:
      p.left = true, p.left_after = p.head.number;
      drop_offers(p, farewell(peer), done);  // it asks for no more
      break;
    case Kind::Failure:
      fail_locked("rank " + std::to_string(peer) + " failed: " + p.early, done);
      break;
    case Kind::Offer:
      offered(peer, done);
      break;
    case Kind::Ask:
      asked_for(peer);
      break;
    case Kind::Room:
      p.unread -= std::min<size_t>(p.unread, p.head.number);
      break;
    case Kind::Refusal: {
      // The answer to an offer, or to what was asked for.
      if (auto offer = p.offers.extract(p.head.number); offer && offer.mapped().work)
        done.push_back([work = offer.mapped().work, text = p.early] { work->finish(std::make_exception_ptr(RuntimeError("{}", text))); });
      if (auto receive = p.asked.extract(p.head.number))
        done.push_back([work = receive.mapped().work, text = p.early] { work->finish(error(text)); });
      break;
    }
    case Kind::Data:
    case Kind::Body:
      end_data(peer, done);
      break;
    default:
      lose(peer, no_message(peer), done);
  }
  p.early.clear();
}

void Messages::end_data(int peer, Done& done) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  const bool stored = p.head.kind == Kind::Data;
  if (p.skips) {
    p.skips = false;
  } else if (p.into) {
    Receiving r = std::move(*p.into);
    p.into.reset();
    if (stored) make_room(peer, p.head.bytes + kOverhead);
    hand_over(std::move(r), {peer, p.head, {}}, done);
  } else if (const auto r = match(peer, p.head.tag); r != waiting_.end()) {
    Receiving taken = std::move(*r);
    waiting_.erase(r);
    make_room(peer, p.head.bytes + kOverhead);
    hand_over(std::move(taken), {peer, p.head, std::move(p.early)}, done);
  } else {
    early_.push_back({peer, p.head, std::move(p.early)});
  }
}

void Messages::offered(int peer, Done& done) {
  const Head& head = peers_[static_cast<size_t>(peer)].head;
  const auto r = match(peer, head.tag);
  if (r == waiting_.end()) {
    early_.push_back({peer, head, {}});
    return;
  }
  Receiving taken = std::move(*r);
  waiting_.erase(r);
  accept(std::move(taken), peer, head, done);
}

void Messages::asked_for(int peer) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  auto known = p.offers.extract(p.head.number);
  if (known.empty()) return push(p, Kind::Refusal, p.head.number, "rank " + std::to_string(rank_) + " has given up the send");
  Offered& offer = known.mapped();
  offer.head.kind = Kind::Body;
  p.out.push_back({offer.head, std::move(offer.parcel), std::move(offer.work), {}});
}

// Receives up to n bytes; null: drops them.
size_t Messages::take(int peer, char* into, size_t n) {
  const std::span<const char> there = lines_->look(peer);
  n = std::min(n, there.size());
  if (n && into) std::memcpy(into, there.data(), n);
  if (n) lines_->consume(peer, n);
  return n;
}

bool Messages::read(int peer, Done& done) {
  Peer& p = peers_[static_cast<size_t>(peer)];
  bool moved = false;
  // Bounded, so that other peers get their turn.
  for (int turns = 0; turns < 64; ++turns) {
    const bool in_head = p.head_at < sizeof(Head);
    const size_t n = in_head ? sizeof(Head) - p.head_at : p.head.following() - p.at;
    char* const body = p.skips ? nullptr : p.into ? p.into->parcel.data + p.at : p.early.data() + p.at;
    if (n) {
      char* const into = in_head ? reinterpret_cast<char*>(&p.head) + p.head_at : body;
      size_t m = take(peer, into, n);
      if (!m && lines_->closed(peer)) {
        m = take(peer, into, n);  // what arrived just before
        if (!m) lose(peer, lines_->trouble(peer), done);
      }
      if (!m) return moved;
      moved = true;
      (in_head ? p.head_at : p.at) += m;
    }
    if (in_head && p.head_at == sizeof(Head) && !begin(peer, done)) return moved;
    if (p.head_at == sizeof(Head) && p.at == p.head.following()) end(peer, done);
    if (p.gone) return moved;
  }
  return moved;
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
  for (const auto& [number, r] : p.asked) end(r.work);
  p.asked.clear();
  drop_offers(p, text, done);
  for (Sending& s : p.out) end(s.work);
  p.out.clear();
  // What it has offered will not come. What it has sent can still be received.
  std::erase_if(early_, [&](const Early& e) { return e.from == peer && e.head.kind == Kind::Offer; });
  const Peer& self = peers_[static_cast<size_t>(rank_)];
  const bool alone = std::ranges::all_of(peers_, [&](const Peer& q) { return &q == &self || q.gone; });
  for (auto r = waiting_.begin(); r != waiting_.end();) {
    const bool hopeless = r->from == peer || (r->from == kAnyRank && alone);
    if (hopeless) end(r->work);
    r = hopeless ? waiting_.erase(r) : std::next(r);
  }
}

}  // namespace naru::distributed
