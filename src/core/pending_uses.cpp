#include "core/pending_uses.h"

#include <algorithm>
#include <utility>

namespace naru {

void add_point(std::vector<StreamPoint>& points, StreamPoint m) {
  for (StreamPoint& old : points)
    if (old.stream == m.stream) {
      old.seq = std::max(old.seq, m.seq);
      return;
    }
  points.push_back(m);
}

void PendingUses::tell() noexcept {
  const runtime::DeviceStream* one = written_.stream ? written_.stream : read_.empty() ? nullptr : read_.front().stream;
  any_.store(one != nullptr, std::memory_order_release);
  for (const StreamPoint& m : read_)
    if (m.stream != one) one = nullptr;
  only_.store(one, std::memory_order_release);
}

StreamPoint PendingUses::written() const {
  if (empty()) return {};
  const Guard guard(locked_);
  return written_;
}

std::vector<StreamPoint> PendingUses::points() const {
  if (empty()) return {};
  const Guard guard(locked_);
  std::vector<StreamPoint> all = read_;
  if (written_.stream) add_point(all, written_);
  return all;
}

void PendingUses::add_read(StreamPoint m) {
  const Guard guard(locked_);
  add_point(read_, m);
  tell();
}

void PendingUses::set_written(StreamPoint m) noexcept {
  const Guard guard(locked_);
  written_ = m;
  read_.clear();
  tell();
}

void PendingUses::reached(StreamPoint m) noexcept {
  const auto past = [&](const StreamPoint& k) { return k.stream == m.stream && k.seq <= m.seq; };
  const Guard guard(locked_);
  if (past(written_)) written_ = {};
  std::erase_if(read_, past);
  tell();
}

ReleasedUses PendingUses::take() noexcept {
  if (empty()) return {};
  const Guard guard(locked_);
  ReleasedUses all{std::exchange(written_, {}), std::exchange(read_, {})};
  tell();
  return all;
}

void PendingUses::inherit(const ReleasedUses& uses) {
  if (!uses.written.stream && uses.read.empty()) return;
  const Guard guard(locked_);
  read_.reserve(read_.size() + uses.read.size() + 1);
  uses.each([&](StreamPoint m) { add_point(read_, m); });
  tell();
}

}  // namespace naru
