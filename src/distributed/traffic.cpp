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
    : rank_(rank), ranks_(ranks), lanes_(static_cast<size_t>(ranks)), wanted_(static_cast<size_t>(ranks)) {}

void Traffic::begin(const Header& mine) {
  mine_ = mine;
  for (Lane& l : lanes_) {
    l.out.clear(), l.in.clear();
    l.out_index = l.out_at = l.in_index = l.in_at = l.folded = 0;
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

void Traffic::fold(char* into, size_t bytes, size_t element, const Reduction& reduction) {
  fold_into_ = into, fold_bytes_ = bytes, fold_element_ = element, reduction_ = reduction;
  for (int peer = 0; peer < ranks_; ++peer)
    if (peer != rank_) lane(peer).in.push_back({into, bytes, true});
}

void Traffic::send_folded() {
  for (int peer = 0; peer < ranks_; ++peer)
    if (peer != rank_) lane(peer).out.push_back({fold_into_, fold_bytes_, &folded_});
}

size_t Traffic::fold_limit(int peer) const {
  const int before = (peer + ranks_ - 1) % ranks_;
  return before == rank_ ? fold_bytes_ : lanes_[static_cast<size_t>(before)].folded;
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
  size_t n = std::min(there.size(), item.bytes - l.in_at);
  if (!item.folded) {
    if (n) std::memcpy(item.into + l.in_at, there.data(), n);
    return n;
  }
  n = std::min(n, fold_limit(peer) - l.in_at);
  n -= n % fold_element_;
  if (!n) return 0;
  reduction_.fold(item.into + l.in_at, there.data(), n / fold_element_);
  const bool last = (peer + 1) % ranks_ == rank_;
  if (last && reduction_.divide) reduction_.divide(item.into + l.in_at, n / fold_element_, ranks_);
  l.folded = l.in_at + n;
  if (last) folded_ = l.folded;
  return n;
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
        // Elements that have arrived may still have to wait for those of the previous peer.
        if (!item.folded || l.in_at >= item.bytes || l.in_at < fold_limit(peer)) wanted_[static_cast<size_t>(peer)] |= Channels::kInput;
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
    if (done) return;
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
