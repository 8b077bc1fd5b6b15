// Dims: a short list of int64 (sizes, strides, dimensions); up to six entries are stored inline.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace naru {

class Dims {
 public:
  using value_type = int64_t;
  // An element of a braced list, of any integer type: {0, x.dim() - 1}, {rows.size(), 3}.
  struct Entry {
    int64_t value;
    template <class T>
    requires((std::integral<T> && !std::same_as<T, bool>) || std::is_enum_v<T>) Entry(T n) : value(static_cast<int64_t>(n)) {}
  };
  static constexpr size_t kInline = 6;

  Dims() noexcept : size_(0), capacity_(kInline) {}
  explicit Dims(size_t n, int64_t value) : Dims() {
    resize(n);
    for (auto& d : *this) d = value;
  }
  // One entry: zeros(3), x.sum(0).
  template <std::integral T>
  requires(!std::same_as<T, bool>) Dims(T one) : Dims() { push_back(static_cast<int64_t>(one)); }
  Dims(std::initializer_list<Entry> list) : Dims() {
    resize(list.size());
    int64_t* to = data();
    for (const Entry entry : list) *to++ = entry.value;
  }
  Dims(const std::vector<int64_t>& list) : Dims() { assign(list.data(), list.size()); }
  // Only std::span itself converts implicitly; types that convert to a span need Dims(array). A template, because with a plain span
  // parameter the compiler would test every vector or list argument for being a range, which costs more compile time than the rest of this
  // header.
  template <std::same_as<std::span<const int64_t>> S>
  Dims(S list) : Dims() {
    assign(list.data(), list.size());
  }
  template <class R>
  requires(std::is_class_v<R> && !std::is_base_of_v<Dims, R> && !std::same_as<R, std::vector<int64_t>> &&
           !std::same_as<R, std::initializer_list<Entry>> && !std::same_as<R, std::span<const int64_t>> &&
           std::is_convertible_v<const R&, std::span<const int64_t>>) explicit Dims(const R& list)
      : Dims(std::span<const int64_t>(list)) {}
  Dims(const Dims& o) : Dims() { assign(o.data(), o.size_); }
  Dims(Dims&& o) noexcept : size_(o.size_), capacity_(o.capacity_) {
    entries_ = o.entries_;
    o.capacity_ = kInline;
    o.size_ = 0;
  }
  Dims& operator=(const Dims& o) {
    if (this != &o) assign(o.data(), o.size_);
    return *this;
  }
  Dims& operator=(Dims&& o) noexcept {
    if (this != &o) {
      if (on_heap()) free_heap();
      size_ = o.size_, capacity_ = o.capacity_;
      entries_ = o.entries_;
      o.capacity_ = kInline, o.size_ = 0;
    }
    return *this;
  }
  ~Dims() {
    if (on_heap()) free_heap();
  }

  size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  int64_t* data() noexcept { return on_heap() ? entries_.heap : entries_.here; }
  const int64_t* data() const noexcept { return on_heap() ? entries_.heap : entries_.here; }
  int64_t& operator[](size_t i) noexcept { return data()[i]; }
  int64_t operator[](size_t i) const noexcept { return data()[i]; }
  int64_t* begin() noexcept { return data(); }
  int64_t* end() noexcept { return data() + size_; }
  const int64_t* begin() const noexcept { return data(); }
  const int64_t* end() const noexcept { return data() + size_; }
  int64_t front() const noexcept { return data()[0]; }
  std::vector<int64_t> vec() const { return {begin(), end()}; }
  // n entries, from `from` on.
  Dims slice(size_t from, size_t n) const { return std::span<const int64_t>(data() + from, n); }
  int64_t& back() noexcept { return data()[size_ - 1]; }
  int64_t back() const noexcept { return data()[size_ - 1]; }

  // New entries are 0.
  void resize(size_t n) {
    reserve(n);
    if (n > size_) std::memset(data() + size_, 0, (n - size_) * sizeof(int64_t));
    size_ = static_cast<uint32_t>(n);
  }
  void push_back(int64_t v) {
    reserve(size_ + 1);
    data()[size_++] = v;
  }
  void insert(size_t at, int64_t v) {
    push_back(v);
    for (size_t i = size_ - 1; i > at; --i) data()[i] = data()[i - 1];
    data()[at] = v;
  }
  void erase(size_t at) {
    for (size_t i = at; i + 1 < size_; ++i) data()[i] = data()[i + 1];
    --size_;
  }
  void clear() noexcept { size_ = 0; }

  operator std::span<const int64_t>() const noexcept { return {data(), size_}; }
  std::string str() const;  // "[2, 3]"

  friend bool operator==(const Dims& a, const Dims& b) noexcept {
    return a.size_ == b.size_ && std::memcmp(a.data(), b.data(), a.size_ * sizeof(int64_t)) == 0;
  }

 private:
  bool on_heap() const noexcept { return capacity_ > kInline; }
  void assign(const int64_t* p, size_t n) {
    reserve(n);
    if (n) std::memmove(data(), p, n * sizeof(int64_t));  // memmove must not be called with null
    size_ = static_cast<uint32_t>(n);
  }
  void reserve(size_t n) {
    if (n > capacity_) grow(n);
  }
  // Out of line to avoid inlining them at each use.
  void grow(size_t n);
  void free_heap() noexcept;

  uint32_t size_, capacity_;
  union Entries {
    int64_t here[kInline];
    int64_t* heap;
  } entries_;
};

// Dims as constructor arguments, so that MaxPool2d({2, 2}) means a list and not a copy of a MaxPool2d built from two numbers.
class DimList : public Dims {
 public:
  DimList() = default;
  DimList(std::initializer_list<Entry> list) : Dims(list) {}
  DimList(const std::vector<int64_t>& list) : Dims(list) {}
  DimList(Dims list) : Dims(std::move(list)) {}
};

// Optional Dims as function arguments: {} or std::nullopt is none; an integer, braces or Dims are a list (Dims{} is an empty one).
class OptionalDims : public std::optional<Dims> {
 public:
  OptionalDims() = default;
  OptionalDims(std::nullopt_t) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) OptionalDims(T one) : optional(Dims(one)) {}
  OptionalDims(std::initializer_list<Dims::Entry> list) : optional(Dims(list)) {}
  OptionalDims(const std::vector<int64_t>& list) : optional(Dims(list)) {}
  OptionalDims(Dims list) : optional(std::move(list)) {}
  OptionalDims(std::optional<Dims> list) : optional(std::move(list)) {}
};

int64_t product(std::span<const int64_t> dims) noexcept;
// Row-major strides, in elements, for these sizes (a size of 0 counts as 1, as in PyTorch).
Dims contiguous_strides(std::span<const int64_t> sizes);
// The broadcast shape of both. Throws RuntimeError with PyTorch's text if they don't broadcast.
Dims broadcast_shapes(const Dims& a, const Dims& b);
// Wraps a negative `dim`. Throws IndexError with PyTorch's text if it is outside [-rank, rank-1] (a rank of 0 counts as 1).
int64_t wrap_dim(int64_t dim, int64_t rank);

}  // namespace naru
