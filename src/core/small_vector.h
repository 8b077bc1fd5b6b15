// SmallVector: a vector that stores up to N elements inline.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <utility>
#include <vector>

namespace naru {

template <class T, size_t N>
class SmallVector {
 public:
  SmallVector() = default;
  SmallVector(std::initializer_list<T> list) {
    for (const T& value : list) push_back(value);
  }
  void push_back(T value) {
    if (size_ < N && more_.empty()) {
      inline_[size_++] = std::move(value);
      return;
    }
    if (more_.empty())
      for (size_t i = 0; i < N; ++i) more_.push_back(std::move(inline_[i]));
    more_.push_back(std::move(value));
    ++size_;
  }
  void pop_back() {
    --size_;
    if (more_.empty())
      inline_[size_] = T();
    else
      more_.pop_back();
  }
  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* begin() noexcept { return more_.empty() ? inline_.data() : more_.data(); }
  const T* begin() const noexcept { return more_.empty() ? inline_.data() : more_.data(); }
  T* end() noexcept { return begin() + size_; }
  const T* end() const noexcept { return begin() + size_; }
  T& back() noexcept { return begin()[size_ - 1]; }
  T& operator[](size_t i) noexcept { return begin()[i]; }
  const T& operator[](size_t i) const noexcept { return begin()[i]; }

 private:
  std::array<T, N> inline_{};
  std::vector<T> more_;  // all elements, once there are more than N
  size_t size_ = 0;
};

// Reserves room for n more elements, so that adding them can't fail. Grows geometrically, as push_back does.
template <class T>
void make_room(std::vector<T>& list, size_t n) {
  if (list.capacity() - list.size() < n) list.reserve(std::max(list.size() + n, 2 * list.size()));
}

}  // namespace naru
