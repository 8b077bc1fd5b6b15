#include "backends/cpu/exec/buffer.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "core/aligned.h"
#include "runtime/os/fork.h"
#include "runtime/os/system.h"

namespace naru::cpu {
namespace {

// Smaller buffers than kLarge are malloc's. From kOnHugePages on they are whole huge pages, where the system has them.
constexpr size_t kLarge = 128 << 10, kOnHugePages = 256 << 10, kHugePage = 2 << 20;
constexpr size_t kMostKept = 128 << 20;  // bytes

struct Piece {
  void* memory;
  size_t bytes;
};

size_t boundary_of(size_t bytes) noexcept { return bytes >= kOnHugePages ? kHugePage : kAlignment; }
void release(Piece piece) noexcept { release_aligned(piece.memory, boundary_of(piece.bytes)); }

// Buffers that no instruction uses, the oldest first.
class Kept {
 public:
  Kept() { runtime::hold_at_fork(mutex_); }

  // The smallest that has so many bytes, and is one huge page or not more than twice as large.
  Piece take(size_t bytes) noexcept {
    const std::lock_guard lock(mutex_);
    auto best = pieces_.end();
    for (auto p = pieces_.begin(); p != pieces_.end(); ++p)
      if (p->bytes >= bytes && (p->bytes / 2 <= bytes || p->bytes == kHugePage) && (best == pieces_.end() || p->bytes < best->bytes))
        best = p;
    if (best == pieces_.end()) return {nullptr, 0};
    const Piece found = *best;
    pieces_.erase(best);
    bytes_ -= found.bytes;
    return found;
  }

  void give(Piece piece) noexcept {
    if (piece.bytes > kMostKept / 2) return release(piece);
    const std::lock_guard lock(mutex_);
    try {
      pieces_.push_back(piece);
    } catch (const std::bad_alloc&) {
      return release(piece);
    }
    bytes_ += piece.bytes;
    shrink(kMostKept);
  }

  void clear() noexcept {
    const std::lock_guard lock(mutex_);
    shrink(0);
  }

 private:
  void shrink(size_t most) noexcept {
    size_t gone = 0;
    for (; bytes_ > most; ++gone) bytes_ -= pieces_[gone].bytes, release(pieces_[gone]);
    pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(gone));
  }

  std::mutex mutex_;
  std::vector<Piece> pieces_;
  size_t bytes_ = 0;
};
Kept& kept() {
  static Kept& all = *new Kept;
  return all;
}

}  // namespace

void* take_buffer(size_t& bytes) {
  if (bytes < kLarge) return aligned_memory(bytes);
  if (const Piece piece = kept().take(bytes); piece.memory) {
    bytes = piece.bytes;
    return piece.memory;
  }
  const size_t unit = bytes >= kOnHugePages ? kHugePage : kLarge;
  if (bytes > SIZE_MAX - unit) return nullptr;
  bytes = (bytes + unit - 1) / unit * unit;
  void* memory = aligned_memory(bytes, boundary_of(bytes));
  if (!memory) {
    kept().clear();
    memory = aligned_memory(bytes, boundary_of(bytes));
  }
  if (memory && bytes >= kOnHugePages) runtime::system::prefer_huge(memory, bytes);
  return memory;
}

void give_buffer(void* memory, size_t bytes) noexcept {
  if (bytes < kLarge) return release_aligned(memory);
  kept().give({memory, bytes});
}

}  // namespace naru::cpu
