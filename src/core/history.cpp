#include "core/history.h"

#include <algorithm>
#include <utility>

namespace naru {

void add_mark(std::vector<Mark>& marks, Mark m) {
  for (Mark& old : marks)
    if (old.stream == m.stream) {
      old.seq = std::max(old.seq, m.seq);
      return;
    }
  marks.push_back(m);
}

void History::tell() noexcept {
  const runtime::DeviceStream* one = written_.stream ? written_.stream : read_.empty() ? nullptr : read_.front().stream;
  any_.store(one != nullptr, std::memory_order_release);
  for (const Mark& m : read_)
    if (m.stream != one) one = nullptr;
  only_.store(one, std::memory_order_release);
}

Mark History::written() const {
  if (empty()) return {};
  const Guard guard(locked_);
  return written_;
}

std::vector<Mark> History::marks() const {
  if (empty()) return {};
  const Guard guard(locked_);
  std::vector<Mark> all = read_;
  if (written_.stream) add_mark(all, written_);
  return all;
}

void History::add_read(Mark m) {
  const Guard guard(locked_);
  add_mark(read_, m);
  tell();
}

void History::set_written(Mark m) {
  const Guard guard(locked_);
  written_ = m;
  read_.clear();
  tell();
}

void History::reached(Mark m) {
  const auto past = [&](const Mark& k) { return k.stream == m.stream && k.seq <= m.seq; };
  const Guard guard(locked_);
  if (past(written_)) written_ = {};
  std::erase_if(read_, past);
  tell();
}

std::vector<Mark> History::take() {
  if (empty()) return {};
  const Guard guard(locked_);
  std::vector<Mark> all = std::exchange(read_, {});
  if (written_.stream) add_mark(all, std::exchange(written_, {}));
  tell();
  return all;
}

void History::inherit(const std::vector<Mark>& marks) {
  if (marks.empty()) return;
  const Guard guard(locked_);
  for (const Mark m : marks) add_mark(read_, m);
  tell();
}

}  // namespace naru
