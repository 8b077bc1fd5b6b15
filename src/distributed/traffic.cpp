#include "distributed/traffic.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace naru::distributed {
namespace {
constexpr char kZeros[16] = {};
constexpr size_t padding(size_t bytes) { return (16 - bytes % 16) % 16; }
}  // namespace

Traffic::Traffic(int rank, int ranks)
    : rank_(rank),
      ranks_(ranks),
      lanes_(static_cast<size_t>(ranks)),
      wanted_(static_cast<size_t>(ranks)),
      arrived_(static_cast<size_t>(ranks)) {
  for (int r = 0; r < ranks; ++r) leaves_.push_back({r, 1});
}

void Traffic::begin(const Header& mine) {
  mine_ = mine;
  for (Lane& l : lanes_) {
    l.out.clear(), l.in.clear();
    l.out_index = l.out_at = l.in_index = l.in_at = 0;
    l.hears = false;
  }
  fold_into_ = nullptr, fold_bytes_ = folded_ = 0;
}

void Traffic::tell(int peer) {
  Lane& l = lane(peer);
  l.sent = mine_;
  l.out.push_back({reinterpret_cast<const char*>(&l.sent), sizeof(Header), nullptr});
}

void Traffic::hear(int peer) {
  Lane& l = lane(peer);
  l.expected = mine_, l.hears = true;
  l.in.push_back({reinterpret_cast<char*>(&l.theirs), sizeof(Header), false});
}

void Traffic::meet(int peer, const Header* sent, const Header* expected) {
  tell(peer);
  hear(peer);
  if (sent) lane(peer).sent = *sent;
  if (expected) lane(peer).expected = *expected;
}

void Traffic::fold(char* into, size_t bytes, size_t element, const Reduction& reduction, int shards) {
  fold_into_ = into, fold_bytes_ = bytes, fold_element_ = element, reduction_ = reduction, fold_shards_ = shards;
  for (int peer = 0; peer < ranks_; ++peer)
    if (peer != rank_) lane(peer).in.push_back({into, bytes, true});
}

void Traffic::send_folded() {
  for (int peer = 0; peer < ranks_; ++peer)
    if (peer != rank_) lane(peer).out.push_back({fold_into_, fold_bytes_, &folded_});
}

bool Traffic::send_some(Channels& channels, int peer, bool& done) {
  Lane& l = lane(peer);
  bool moved = false;
  while (l.out_index < l.out.size()) {
    const Out& o = l.out[l.out_index];
    const size_t ready = o.ready ? *o.ready : o.bytes, all = o.bytes + padding(o.bytes);
    size_t n = 0;
    if (l.out_at < ready) {
      n = channels.write(peer, o.data + l.out_at, ready - l.out_at);
    } else if (l.out_at >= o.bytes && l.out_at < all) {
      n = channels.write(peer, kZeros, all - l.out_at);
    }
    l.out_at += n;
    moved |= n > 0;
    if (l.out_at == all) {
      ++l.out_index, l.out_at = 0;
      continue;
    }
    if (n) continue;
    done = false;
    // A stream that is limited by `ready` waits for input, not for room.
    if (l.out_at < ready || l.out_at >= o.bytes) wanted_[static_cast<size_t>(peer)] |= Channels::kRoom;
    break;
  }
  if (moved) channels.flush(peer);
  return moved;
}

// Returns how many bytes of the stream were used for the next item.
size_t Traffic::take(Channels& channels, int peer, const In& item) {
  Lane& l = lane(peer);
  const std::span<const char> there = channels.look(peer);
  if (l.in_at >= item.bytes) return std::min(there.size(), item.bytes + padding(item.bytes) - l.in_at);
  if (item.folded) return 0;  // fold_some() does
  const size_t n = std::min(there.size(), item.bytes - l.in_at);
  if (n) std::memcpy(item.into + l.in_at, there.data(), n);
  return n;
}

// Folds as many elements as have arrived from all peers.
bool Traffic::fold_some(Channels& channels, bool& done) {
  bool moved = false;
  while (folded_ < fold_bytes_) {
    size_t n = fold_bytes_ - folded_;
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer == rank_) continue;
      const Lane& l = lane(peer);
      const bool here = l.in_index < l.in.size() && l.in[l.in_index].folded;
      const std::span<const char> there = here ? channels.look(peer) : std::span<const char>();
      arrived_[static_cast<size_t>(peer)] = there.data();
      n = std::min(n, there.size());
      if (here && there.size() < fold_element_) wanted_[static_cast<size_t>(peer)] |= Channels::kInput;
    }
    n -= n % fold_element_;
    if (!n) {
      done = false;
      break;
    }
    char* const out = fold_into_ + folded_;
    arrived_[static_cast<size_t>(rank_)] = out;
    tree_(out, leaves_, arrived_, n / fold_element_, fold_element_, reduction_);
    if (reduction_.divide) reduction_.divide(out, n / fold_element_, fold_shards_);
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer == rank_) continue;
      channels.consume(peer, n);
      lane(peer).in_at += n;
    }
    folded_ += n;
    moved = true;
  }
  return moved;
}

bool Traffic::receive_some(Channels& channels, int peer, const Complain& complain, bool& done) {
  Lane& l = lane(peer);
  bool moved = false;
  while (l.in_index < l.in.size()) {
    const In& item = l.in[l.in_index];
    const size_t all = item.bytes + padding(item.bytes);
    if (l.in_at < all) {
      const size_t n = take(channels, peer, item);
      if (n) channels.consume(peer, n);
      l.in_at += n;
      moved |= n > 0;
      if (l.in_at < all) {
        if (n) continue;
        done = false;
        if (!item.folded || l.in_at >= item.bytes) wanted_[static_cast<size_t>(peer)] |= Channels::kInput;
        break;
      }
    }
    if (l.hears && l.in_index == 0 && std::memcmp(&l.theirs, &l.expected, offsetof(Header, dims)) != 0)
      complain(peer, l.theirs, l.expected);
    if (l.hears && l.in_index == 0 && l.theirs.root != l.expected.root) complain(peer, l.theirs, l.expected);
    ++l.in_index, l.in_at = 0;
  }
  return moved;
}

void Traffic::run(Channels& channels, const Look& look, const Complain& complain) {
  for (;;) {
    const uint32_t before = channels.epoch();
    bool moved = false, done = true;
    std::ranges::fill(wanted_, Channels::kNothing);
    for (int i = 1; i < ranks_; ++i) moved |= send_some(channels, (rank_ + i) % ranks_, done);
    for (int i = 1; i < ranks_; ++i) moved |= receive_some(channels, (rank_ + i) % ranks_, complain, done);
    moved |= fold_some(channels, done);
    if (done && channels.sent()) return;
    if (moved) continue;
    look(wanted_);
    channels.wait(before, wanted_, 10);
  }
}

std::vector<int> Traffic::absent() const {
  std::vector<int> found;
  for (int peer = 0; peer < ranks_; ++peer)
    if (const Lane& l = lanes_[static_cast<size_t>(peer)]; !l.in.empty() && l.in_index == 0 && l.in_at == 0) found.push_back(peer);
  return found;
}

}  // namespace naru::distributed
