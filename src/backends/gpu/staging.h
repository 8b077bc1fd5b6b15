// Page-locked staging memory for copies from and to pageable host memory. Without it, the driver waits for the stream first and copies
// within its call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>

namespace naru::backends::gpu {

class GpuDevice;

// A ring buffer of one stream. Pieces are taken one after another; each is free again when the stream has reached the sequence number of
// its last use. Not thread-safe.
class Staging {
 public:
  Staging(GpuDevice& device, size_t bytes) : device_(device), bytes_(bytes) {}
  ~Staging();
  Staging(const Staging&) = delete;

  // Allocates the memory at the first call; false if there is none.
  bool available();
  // Takes at most half of all bytes at once. `reach(seq)` must return when the stream has reached seq.
  char* take(size_t bytes, const std::function<void(uint64_t)>& reach);
  // Marks the piece taken last as in use until the stream reaches `seq`.
  void use_until(uint64_t seq);
  // Notes that the stream has reached `seq`.
  void reached(uint64_t seq) noexcept;
  size_t bytes() const noexcept { return bytes_; }

 private:
  struct Piece {
    size_t begin, end;
    uint64_t seq;
  };
  bool is_free(size_t begin, size_t end) const noexcept;

  GpuDevice& device_;
  const size_t bytes_;
  char* memory_ = nullptr;
  std::deque<Piece> pieces_;  // in the order in which they were taken
  size_t next_ = 0, taken_ = 0;
};

}  // namespace naru::backends::gpu
