#include "runtime/device/launching.h"

#include <utility>

#include "naru/error.h"

namespace naru::runtime {

void Scratch::release() noexcept {
  for (const Piece& p : pieces_)
    if (p.memory) memory_.put_back(p.memory, p.bytes);
  pieces_.clear();
}

void* Scratch::take(size_t bytes) {
  if (used_ == pieces_.size()) pieces_.push_back({nullptr, 0});
  Piece& p = pieces_[used_++];
  if (p.bytes >= bytes) return p.memory;
  if (p.memory) {
    memory_.finish();  // submitted work uses the old piece
    memory_.put_back(p.memory, p.bytes);
  }
  p = {nullptr, 0};
  const size_t wanted = (bytes + bytes / 2 + 4095) / 4096 * 4096;
  void* const memory = memory_.get(wanted);
  if (!memory)
    throw OutOfMemoryError("{}: no memory for {} bytes of intermediate values. Use smaller tensors, or free some", device_.str(), wanted);
  p = {memory, wanted};
  return memory;
}

int FaultRecords::take(int count, uint64_t seq, Error error) {
  if (next_ + count > kCount) return -1;
  const int first = next_;
  suspects_.push_back({seq, first, count, std::move(error)});
  next_ += count;
  suspicious_.store(true, std::memory_order_release);
  return first;
}

std::vector<int> FaultRecords::judge(uint64_t seq, const std::vector<Fault>& records, DeferredErrors& errors) {
  std::vector<int> written;
  while (!suspects_.empty() && suspects_.front().seq <= seq) {
    const Suspect suspect = std::move(suspects_.front());
    suspects_.pop_front();
    for (int i = 0; i < suspect.count; ++i) {
      const Fault& found = records[static_cast<size_t>(suspect.first + i)];
      if (found.found == Fault::kNothing) continue;
      errors.keep(suspect.error(i, found.found, found.value));
      written.push_back(suspect.first + i);
    }
  }
  suspicious_.store(!suspects_.empty(), std::memory_order_release);
  return written;
}

}  // namespace naru::runtime
