#include "backends/gpu/staging.h"

#include <algorithm>

#include "backends/gpu/device.h"

namespace naru::backends::gpu {
namespace {

constexpr size_t kAligned = 64, kMany = 16;

}  // namespace

Staging::~Staging() {
  if (memory_) device_.release_pinned(memory_);
}

bool Staging::available() {
  if (!memory_) memory_ = static_cast<char*>(device_.allocate_pinned(bytes_));
  return memory_ != nullptr;
}

bool Staging::is_free(size_t begin, size_t end) const noexcept {
  return end <= bytes_ && std::none_of(pieces_.begin(), pieces_.end(), [&](const Piece& p) { return begin < p.end && p.begin < end; });
}

char* Staging::take(size_t bytes, const std::function<void(uint64_t)>& reach) {
  const size_t size = (bytes + kAligned - 1) / kAligned * kAligned;
  size_t begin = next_ + size <= bytes_ ? next_ : 0;
  while (!is_free(begin, begin + size)) {
    // With many pieces in use, wait for half of them at once, so that most calls need not wait.
    const uint64_t seq = pieces_[pieces_.size() > kMany ? pieces_.size() / 2 : 0].seq;
    reach(seq);
    reached(seq);
  }
  next_ = begin + size, taken_ = begin;
  return memory_ + begin;
}

void Staging::use_until(uint64_t seq) { pieces_.push_back({taken_, next_, seq}); }

void Staging::reached(uint64_t seq) noexcept {
  while (!pieces_.empty() && pieces_.front().seq <= seq) pieces_.pop_front();
}

}  // namespace naru::backends::gpu
