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
  any_.store(true, std::memory_order_release);
}

void History::set_written(Mark m) {
  const Guard guard(locked_);
  written_ = m;
  read_.clear();
  any_.store(true, std::memory_order_release);
}

void History::reached(Mark m) {
  const auto past = [&](const Mark& k) { return k.stream == m.stream && k.seq <= m.seq; };
  const Guard guard(locked_);
  if (past(written_)) written_ = {};
  std::erase_if(read_, past);
  any_.store(written_.stream || !read_.empty(), std::memory_order_release);
}

std::vector<Mark> History::take() {
  if (empty()) return {};
  const Guard guard(locked_);
  std::vector<Mark> all = std::exchange(read_, {});
  if (written_.stream) add_mark(all, std::exchange(written_, {}));
  any_.store(false, std::memory_order_release);
  return all;
}

void History::inherit(const std::vector<Mark>& marks) {
  if (marks.empty()) return;
  const Guard guard(locked_);
  for (const Mark m : marks) add_mark(read_, m);
  any_.store(true, std::memory_order_release);
}

}  // namespace naru
