// Channels through MPI. A stream's bytes travel in messages of MpiWorld. A sender is never more than a window ahead of what its receiver has
// consumed, so a slow receiver's memory does not fill.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "distributed/mpi_world.h"
#include "runtime/os/fork.h"

namespace naru::distributed {
namespace {

// Time limit for what the other ranks have not received when a group ends; and if a rank was lost.
constexpr Milliseconds kFarewell{10'000}, kFarewellAfterLoss{500};
// Longer waits are for messages that no receive is posted for.
constexpr int kAwaitedWait = 100;

class MpiChannels final : public Channels, private MpiWorld::Port {
 public:
  MpiChannels(MpiWorld& world, uint64_t number, std::vector<int> ranks, int rank)
      : world_(world),
        number_(number),
        ranks_(std::move(ranks)),
        rank_(rank),
        window_(ranks_.size() <= 8 ? 8 * MpiBuffer::kBytes : 2 * MpiBuffer::kBytes),
        peers_(ranks_.size()) {
    for (size_t i = 0; i < ranks_.size(); ++i) places_[ranks_[i]] = i;
    world_.add(number_, *this);
  }
  ~MpiChannels() override {
    if (generation_ != runtime::fork_generation()) return;  // a forked child has no thread of MPI
    end_streams();
    world_.remove(number_);
  }

  size_t write(int peer, const char* data, size_t n) override {
    Peer& p = at(peer);
    uint64_t end = p.written + n;
    const uint64_t most = p.credited.load(std::memory_order_acquire) + window_;
    // Cut at multiples of 16, so that no element is divided: all items of a stream begin at one.
    if (end > most) end = std::max(p.written, most & ~uint64_t{15});
    const uint64_t begin = p.written;
    while (p.written < end) {
      if (!p.open) {
        p.open = world_.take();
        p.open.head() = {number_, p.written, MpiHead::Bytes, 0, 0};
      }
      MpiHead& head = p.open.head();
      const size_t room = MpiBuffer::kBytes - head.at % 16 - head.bytes, piece = std::min<size_t>(room, end - p.written);
      std::memcpy(p.open.bytes() + head.bytes, data + (p.written - begin), piece);
      head.bytes += static_cast<uint32_t>(piece), p.written += piece;
      if (piece == room) flush(peer);
    }
    return p.written - begin;
  }
  void flush(int peer) override {
    Peer& p = at(peer);
    if (!p.open) return;
    if (p.ended)  // it receives no more
      p.open = {};
    else
      world_.post(world_rank(peer), std::exchange(p.open, {}));
  }

  bool sent() override { return world_.all_sent(); }

  std::span<const char> look(int peer) override {
    Peer& p = at(peer);
    const std::lock_guard lock(p.mutex);
    if (p.in.empty()) return {};
    const MpiBuffer& first = p.in.front();
    return {first.bytes() + p.first_at, first.head().bytes - p.first_at};
  }
  void consume(int peer, size_t n) override {
    Peer& p = at(peer);
    MpiBuffer empty;
    {
      const std::lock_guard lock(p.mutex);
      p.first_at += n;
      if (!p.in.empty() && p.first_at == p.in.front().head().bytes) {
        empty = std::move(p.in.front());
        p.in.pop_front();
        p.first_at = 0;
      }
    }
    if (empty) world_.give(std::move(empty));
    p.consumed += n;
    if (p.consumed - p.told < window_ / 2 || p.ended) return;
    p.told = p.consumed;
    world_.post(world_rank(peer), {number_, p.told, MpiHead::Room, 0, 0});
  }
  bool closed(int peer) const override {
    return peers_[static_cast<size_t>(peer)].ended.load(std::memory_order_acquire) || world_.lost(world_rank(peer));
  }
  std::string trouble(int peer) const override {
    const auto [rank, why] = world_.cause_of_loss(world_rank(peer));
    if (why.empty()) return Channels::trouble(peer);
    const auto place = places_.find(rank);
    return (place != places_.end() ? "rank " + std::to_string(place->second) : "rank " + std::to_string(rank) + " of the first group") +
           " is gone: " + why;
  }

  uint32_t epoch() override { return bell_.count(); }
  void wait(uint32_t before, std::span<const uint8_t>, int milliseconds) override {
    const bool awaited = milliseconds <= kAwaitedWait;
    if (awaited) world_.begin_waiting();
    bell_.sleep(before, Milliseconds(milliseconds));
    if (awaited) world_.end_waiting();
  }
  void wake() override { bell_.ring(); }

 private:
  struct Peer {
    // Written by the thread that sends.
    MpiBuffer open;
    uint64_t written = 0;
    std::atomic<uint64_t> credited{0};
    std::atomic<bool> taken{false};  // all that was sent has arrived
    // Received.
    std::mutex mutex;
    std::deque<MpiBuffer> in;
    size_t first_at = 0;
    uint64_t consumed = 0, told = 0;
    std::atomic<bool> ended{false};
    // MPI's thread only. early: what has overtaken.
    uint64_t arrived = 0, last = UINT64_MAX;
    std::map<uint64_t, MpiBuffer> early;
  };
  Peer& at(int peer) { return peers_[static_cast<size_t>(peer)]; }
  int world_rank(int peer) const { return ranks_[static_cast<size_t>(peer)]; }

  void arrived(int from, MpiBuffer buffer) override {
    const auto found = places_.find(from);
    if (found == places_.end()) return;
    Peer& p = peers_[found->second];
    const MpiHead head = buffer.head();
    switch (head.kind) {
      case MpiHead::Bytes:
        p.early.emplace(head.at, std::move(buffer));
        break;
      case MpiHead::Room:
        if (head.at > p.credited.load(std::memory_order_relaxed)) p.credited.store(head.at, std::memory_order_release);
        break;
      case MpiHead::Last:
        p.last = head.at;
        break;
      case MpiHead::Taken:
        p.taken.store(true, std::memory_order_release);
        break;
    }
    for (auto next = p.early.find(p.arrived); next != p.early.end(); next = p.early.find(p.arrived)) {
      p.arrived += next->second.head().bytes;
      const std::lock_guard lock(p.mutex);
      p.in.push_back(std::move(next->second));
      p.early.erase(next);
    }
    if (p.arrived == p.last && !p.ended) {
      p.ended.store(true, std::memory_order_release);
      world_.post(from, {number_, p.last, MpiHead::Taken, 0, 0});
    }
    bell_.ring();
  }
  void changed() noexcept override { bell_.ring(); }

  // Waits until all others have what was sent, and know that no more comes: this process may end now, and nothing may be sent to one that has
  // ended.
  void end_streams() {
    const Deadline deadline = after(kFarewell), sooner = after(kFarewellAfterLoss);
    for (size_t i = 0; i < peers_.size(); ++i) {
      if (static_cast<int>(i) == rank_) continue;
      flush(static_cast<int>(i));
      if (peers_[i].ended)
        peers_[i].taken = true;
      else
        world_.post(ranks_[i], {number_, peers_[i].written, MpiHead::Last, 0, 0});
    }
    world_.begin_waiting();
    for (;;) {
      const uint32_t before = bell_.count();
      bool all = sent();
      for (size_t i = 0; i < peers_.size(); ++i) all &= static_cast<int>(i) == rank_ || peers_[i].taken || world_.lost(ranks_[i]);
      if (all || Clock::now() >= (world_.broken() ? sooner : deadline)) break;
      bell_.sleep(before, Milliseconds(5));
    }
    world_.end_waiting();
  }

  MpiWorld& world_;
  const uint64_t number_;
  const std::vector<int> ranks_;
  std::unordered_map<int, size_t> places_;  // in ranks_
  const int rank_, generation_ = runtime::fork_generation();
  const size_t window_;
  std::vector<Peer> peers_;
  Bell bell_;
};

}  // namespace

std::unique_ptr<Channels> mpi_channels(MpiWorld& world, uint64_t number, std::vector<int> ranks, int rank) {
  return std::make_unique<MpiChannels>(world, number, std::move(ranks), rank);
}

}  // namespace naru::distributed
