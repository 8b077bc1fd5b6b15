// Page-locked memory through which copies from and to other memory of the host pass: the driver would wait for the stream first, and copy within its call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>

namespace naru::backends::cuda {

class CudaDevice;

// A ring of one stream: pieces are taken one behind another, and each is free again when the stream has reached the number it was last used by. Not
// thread-safe.
class Staging {
 public:
  Staging(CudaDevice& device, size_t bytes) : device_(device), bytes_(bytes) {}
  ~Staging();
  Staging(const Staging&) = delete;

  // The memory is taken at the first call; false where there is none to be had.
  bool available();
  // `reach` returns when the stream has reached a number. At most half of all bytes at a time.
  char* take(size_t bytes, const std::function<void(uint64_t)>& reach);
  // The piece taken last is in use until the stream reaches `seq`.
  void use_until(uint64_t seq);
  // The stream has reached it.
  void reached(uint64_t seq) noexcept;
  size_t bytes() const noexcept { return bytes_; }

 private:
  struct Piece {
    size_t begin, end;
    uint64_t seq;
  };
  bool is_free(size_t begin, size_t end) const noexcept;

  CudaDevice& device_;
  const size_t bytes_;
  char* memory_ = nullptr;
  std::deque<Piece> pieces_;  // in the order in which they were taken
  size_t next_ = 0, taken_ = 0;
};

}  // namespace naru::backends::cuda
