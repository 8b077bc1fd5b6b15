#include "distributed/watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace naru::distributed {
namespace {

enum NoteKind : uint8_t { kAlive = 'h', kEnded = 'c', kSilent = 's', kLeft = 'l', kInGroup = 'g', kInNoGroup = 'n' };
constexpr Milliseconds kTick{50};

}  // namespace

Watch::Watch(std::vector<Descriptor> sockets, int rank, Milliseconds patience, Lost lost, std::function<void()> tick)
    : rank_(rank), patience_(patience), lost_(std::move(lost)), tick_(std::move(tick)), lines_(sockets.size()), told_(sockets.size()) {
  for (size_t i = 0; i < sockets.size(); ++i) lines_[i].socket = std::move(sockets[i]), lines_[i].heard = Clock::now();
  thread_ = std::thread([this] { serve(); });
}

Watch::~Watch() {
  stopping_ = true;
  thread_.join();
}

void Watch::serve() {
  const Milliseconds interval = patience_.count() ? std::clamp(patience_ / 8, Milliseconds(50), Milliseconds(1000)) : Milliseconds(1000);
  Clock::time_point sent{}, last = Clock::now();
  std::vector<pollfd> polled;
  while (!stopping_) {
    polled.clear();
    for (const Line& l : lines_) polled.push_back({l.socket ? l.socket.get() : -1, POLLIN, 0});
    ::poll(polled.data(), polled.size(), static_cast<int>(kTick.count()));
    for (size_t i = 0; i < lines_.size(); ++i)
      if (polled[i].revents) listen(static_cast<int>(i));
    const auto now = Clock::now();
    // If this thread itself did not run, the others' silence means nothing.
    if (now - last > patience_ / 4)
      for (Line& l : lines_) l.heard = now;
    last = now;
    if (now - sent >= interval) sent = now, tell({kAlive, {}, rank_});
    for (size_t i = 0; i < lines_.size() && patience_.count(); ++i)
      if (lines_[i].socket && lines_[i].speaks && now - lines_[i].heard > patience_) drop(static_cast<int>(i), kSilent);
    tick_();
  }
}

void Watch::listen(int rank) {
  Line& l = lines_[static_cast<size_t>(rank)];
  while (l.socket) {
    const ssize_t n = ::recv(l.socket.get(), reinterpret_cast<char*>(&l.note) + l.at, sizeof(Note) - l.at, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (n <= 0) return drop(rank, n < 0 && errno == ETIMEDOUT ? kSilent : kEnded);
    l.heard = Clock::now(), l.speaks = true;
    l.at += static_cast<size_t>(n);
    if (l.at < sizeof(Note)) continue;
    l.at = 0;
    take(rank, l.note);
  }
}

void Watch::take(int from, const Note& note) {
  if (note.kind == kInGroup || note.kind == kInNoGroup) lines_[static_cast<size_t>(from)].in_group = note.kind == kInGroup;
  if (rank_ == 0 || note.rank < 0 || note.rank >= static_cast<int>(lines_.size())) return;
  if (note.kind == kEnded || note.kind == kSilent || note.kind == kLeft) say_so(note.rank, note.kind);
}

void Watch::drop(int rank, uint8_t why) {
  Line& l = lines_[static_cast<size_t>(rank)];
  {
    const std::lock_guard lock(mutex_);
    l.socket.close();
  }
  if (!l.in_group) why = kLeft;
  say_so(rank, why);
  if (rank_ == 0) tell({why, {}, rank});
}

void Watch::say_whether_in_a_group(bool in_group) { tell({static_cast<uint8_t>(in_group ? kInGroup : kInNoGroup), {}, rank_}); }

void Watch::tell(const Note& note) {
  const std::lock_guard lock(mutex_);
  for (const Line& l : lines_)
    if (l.socket) static_cast<void>(!::send(l.socket.get(), &note, sizeof note, MSG_NOSIGNAL | MSG_DONTWAIT));
}

void Watch::say_so(int rank, uint8_t why) {
  if (told_[static_cast<size_t>(rank)]) return;
  told_[static_cast<size_t>(rank)] = true;
  if (why != kSilent) return lost_(rank, "its connection was closed; its process ended or was killed", why == kLeft);
  const double seconds = static_cast<double>(patience_.count()) / 1000;
  lost_(rank, fmt::format("nothing has come from it for {} s; it was stopped, or its host or the network is down", seconds), false);
}

}  // namespace naru::distributed
