// Loops over integers and indices. The code that makes the instruction has checked dtypes and sizes.
#include "backends/cpu/loops/loops.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <mutex>
#include <vector>

#include "backends/cpu/exec/layout.h"
#include "backends/cpu/exec/simd.h"
#include "ir/bad_index.h"
#include "naru/error.h"

namespace naru::cpu {

using ir::HostLoop;

void run_loop(const HostLoop& loop) {
  constexpr void (*kLoops[])(const HostLoop&) = {gcds,      places,           modes,     scatter_extreme, grid_sample,         distances,
                                                 bag_sums,  running_extremes, triangles, margins,         label_margins,       softmax_rows,
                                                 norm_rows, ctc_forward,      pad,       recurrent_steps, recurrent_gradients, histogram};
  kLoops[static_cast<size_t>(loop.kind)](loop);
}

namespace {

template <class U>
U gcd_of(U a, U b) {
  while (b != 0) {
    const U rest = a % b;
    a = b, b = rest;
  }
  return a;
}

template <class T>
std::make_unsigned_t<T> magnitude(T v) {
  using U = std::make_unsigned_t<T>;
  return v < 0 ? static_cast<U>(U(0) - static_cast<U>(v)) : static_cast<U>(v);
}

template <class T>
void gcd_loop(const T* x, const T* y, T* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t a = magnitude(x[i]), b = magnitude(y[i]);
    const uint64_t g = (a | b) >> 32 ? gcd_of(a, b) : gcd_of(static_cast<uint32_t>(a), static_cast<uint32_t>(b));
    out[i] = static_cast<T>(g);
  }
}

}  // namespace

void gcds(const HostLoop& loop) {
  const auto &x = loop.arrays[0], &y = loop.arrays[1], &out = loop.arrays[2];
  with_type<uint8_t, int8_t, int16_t, int32_t, int64_t>(x.dtype, [&]<class T>(T) {
    const int64_t n = x.numel();
    split(n, 8.0 * static_cast<double>(n), 512,
          [&](int64_t begin, int64_t end) { gcd_loop(x.as<T>() + begin, y.as<T>() + begin, out.as<T>() + begin, end - begin); });
  });
}

namespace {

constexpr int64_t kTogether = 64;

// For `count` values at once: how many of the n sorted elements come before each. A binary search with power-of-two steps, largest first,
// without branches, which would be unpredictable.
template <class T, class Count, bool kRight>
[[gnu::always_inline]] inline void find_places(const T* __restrict order, int64_t n, const T* __restrict values, int64_t count,
                                               int64_t* __restrict out) {
  Count below[kTogether] = {};
  Count step = 1;
  while (step <= n / 2) step = static_cast<Count>(step * 2);
  const auto all = static_cast<Count>(n);
  for (; step > 0; step = static_cast<Count>(step / 2))
    for (int64_t i = 0; i < count; ++i) {
      const Count more = below[i] + step, at = more < all ? more : all;
      const T s = order[at - 1], v = values[i];
      const Count next = (kRight ? s <= v : s < v) ? more : below[i];
      below[i] = more <= all ? next : below[i];
    }
  for (int64_t i = 0; i < count; ++i) out[i] = values[i] == values[i] ? below[i] : n;
}
template <class T, bool kRight>
[[gnu::always_inline]] inline void find_places(const T* order, int64_t n, const T* values, int64_t count, int64_t* out) {
  // Counts as wide as the elements, so that a vector holds as many of them.
  if (sizeof(T) == 4 && n < std::numeric_limits<int32_t>::max() / 2)
    find_places<T, int32_t, kRight>(order, n, values, count, out);
  else
    find_places<T, int64_t, kRight>(order, n, values, count, out);
}
#define NARU_PLACES(T)                                                                                                    \
  NARU_WIDE void find_places(bool right, const T* order, int64_t n, const T* values, int64_t count, int64_t* below) {     \
    right ? find_places<T, true>(order, n, values, count, below) : find_places<T, false>(order, n, values, count, below); \
  }
NARU_PLACES(float)
NARU_PLACES(double)
NARU_PLACES(int32_t)
NARU_PLACES(int64_t)
#undef NARU_PLACES

}  // namespace

void places(const HostLoop& loop) {
  const auto &sorted = loop.arrays[0], &values = loop.arrays[1], &out = loop.arrays[2];
  const int64_t n = sorted.sizes[sorted.sizes.size() - 1], rows = sorted.numel() / n, each = values.numel() / rows;
  with_type<float, double, int32_t, int64_t>(sorted.dtype, [&]<class T>(T) {
    const int64_t blocks = (each + kTogether - 1) / kTogether;
    split(rows * blocks, 6.0 * static_cast<double>(values.numel()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t row = unit / blocks, first = unit % blocks * kTogether, at = row * each + first;
        find_places(loop.numbers[0] != 0, sorted.as<T>() + row * n, n, values.as<T>() + at, std::min(kTogether, each - first),
                    out.as<int64_t>() + at);
      }
    });
  });
}

namespace {

// Index of the last element of the longest run of equal elements; the first such run. NaN equals nothing: if no value repeats, it is chosen if it
// was the first element of the row before the sort, which put it last.
template <class T>
int64_t end_of_longest(const T* row, const int64_t* order, int64_t n) {
  int64_t longest = 0, found = 0;
  for (int64_t begin = 0, end; begin < n; begin = end) {
    for (end = begin + 1; end < n && row[end] == row[end - 1]; ++end) {
    }
    if (end - begin > longest) longest = end - begin, found = end - 1;
  }
  if (longest > 1) return found;
  int64_t nan = n;
  while (nan > 0 && row[nan - 1] != row[nan - 1]) --nan;
  return nan < n && order[nan] == 0 ? nan : found;
}

}  // namespace

void modes(const HostLoop& loop) {
  const auto &sorted = loop.arrays[0], &order = loop.arrays[1], &values = loop.arrays[2], &indices = loop.arrays[3];
  const int64_t n = sorted.sizes[sorted.sizes.size() - 1], rows = sorted.numel() / n;
  with_type<float, double, int32_t, int64_t>(sorted.dtype, [&]<class T>(T) {
    split(rows, 1.5 * static_cast<double>(sorted.numel()), 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t at = row * n + end_of_longest(sorted.as<T>() + row * n, order.as<int64_t>() + row * n, n);
        values.as<T>()[row] = sorted.as<T>()[at];
        indices.as<int64_t>()[row] = order.as<int64_t>()[at];
      }
    });
  });
}

void check_positions(const HostLoop::Array& positions, int64_t bound, int dimension, ir::IndexName op) {
  const int64_t* const at = positions.as<int64_t>();
  const int64_t n = positions.numel();
  uint64_t outside = 0;
  for (int64_t i = 0; i < n; ++i) outside |= static_cast<uint64_t>(static_cast<uint64_t>(at[i]) >= static_cast<uint64_t>(bound));
  if (!outside) return;
  int64_t i = 0;
  while (static_cast<uint64_t>(at[i]) < static_cast<uint64_t>(bound)) ++i;
  const ir::IndexOperand index{{positions.data, DType::I64, contiguous_strides(positions.sizes)}, bound, 1, dimension, false, op.raises()};
  std::rethrow_exception(ir::bad_index(index, positions.sizes, 0, i, at[i], op, 0));
}

namespace {

// Calls f(element of index and source, offset in out) for each element of index, in order. `sizes` and `strides` are those of index and
// out; the last dimension is the inner loop.
template <class F>
void each_place(const Dims& sizes, const Dims& strides, int64_t dim, const int64_t* index, F f) {
  const auto rank = sizes.size();
  const int64_t n = sizes[rank - 1], rows = product(sizes) / n;
  const int64_t moved = strides[static_cast<size_t>(dim)], inner = static_cast<size_t>(dim) == rank - 1 ? 0 : strides[rank - 1];
  Dims at(rank, 0);
  for (int64_t row = 0, element = 0, base = 0; row < rows; ++row) {
    for (int64_t i = 0; i < n; ++i, ++element) f(element, base + i * inner + index[element] * moved);
    for (size_t d = rank - 1; d-- > 0;) {
      const int64_t step = static_cast<int64_t>(d) == dim ? 0 : strides[d];
      base += step;
      if (++at[d] < sizes[d]) break;
      base -= step * at[d];
      at[d] = 0;
    }
  }
}

// naru's maximum and minimum: NaN if either is NaN, the second of two equal ones.
template <class T>
T greater_of(T a, T b) {
  return a != a ? a : a > b ? a : b;
}
template <class T>
T lesser_of(T a, T b) {
  return a != a ? a : a < b ? a : b;
}

template <class T, T (*kBetter)(T, T)>
void extreme_loop(const HostLoop& loop) {
  const auto &index = loop.arrays[0], &source = loop.arrays[1], &out = loop.arrays[2];
  const int64_t* const at = index.as<int64_t>();
  const T* const from = source.as<T>();
  T* const to = out.as<T>();
  const Dims strides = contiguous_strides(out.sizes);
  if (loop.numbers[2] & 1)
    return each_place(index.sizes, strides, loop.numbers[0], at,
                      [&](int64_t i, int64_t place) { to[place] = kBetter(to[place], from[i]); });
  std::vector<bool> met(static_cast<size_t>(out.numel()));
  each_place(index.sizes, strides, loop.numbers[0], at, [&](int64_t i, int64_t place) {
    to[place] = met[static_cast<size_t>(place)] ? kBetter(to[place], from[i]) : from[i];
    met[static_cast<size_t>(place)] = true;
  });
}

}  // namespace

void scatter_extreme(const HostLoop& loop) {
  const auto &index = loop.arrays[0], &out = loop.arrays[2];
  check_positions(index, out.sizes[static_cast<size_t>(loop.numbers[0])], static_cast<int>(loop.numbers[0]),
                  loop.numbers[2] & 2 ? ir::IndexName("index_reduce_") : ir::IndexName("scatter_reduce"));
  with_type<float, double, int32_t, int64_t>(
      out.dtype, [&]<class T>(T) { loop.numbers[1] ? extreme_loop<T, greater_of<T>>(loop) : extreme_loop<T, lesser_of<T>>(loop); });
}

namespace {

// Rows [begin, end) of out: sums of table rows per bag, in order, starting from 0.
template <class T>
[[gnu::always_inline]] inline void bag_rows(const HostLoop& loop, int64_t begin, int64_t end) {
  const auto &index = loop.arrays[0], &weight = loop.arrays[1], &out = loop.arrays[2];
  const int64_t length = index.sizes[1], width = weight.sizes[1];
  const T by = static_cast<T>(loop.numbers[0]);
  for (int64_t bag = begin; bag < end; ++bag) {
    const int64_t* const at = index.as<int64_t>() + bag * length;
    T* const to = out.as<T>() + bag * width;
    for (int64_t first = 0; first < width; first += 64) {
      const int64_t n = std::min<int64_t>(64, width - first);
      T sums[64] = {};
      for (int64_t i = 0; i < length; ++i) {
        const T* const row = weight.as<T>() + at[i] * width + first;
        if (n == 64)
          for (int64_t j = 0; j < 64; ++j) sums[j] += row[j];
        else
          for (int64_t j = 0; j < n; ++j) sums[j] += row[j];
      }
      if (by == 1)
        std::copy_n(sums, n, to + first);
      else
        for (int64_t j = 0; j < n; ++j) to[first + j] = sums[j] / by;
    }
  }
}

NARU_WIDE void bag_rows(float, const HostLoop& loop, int64_t begin, int64_t end) { bag_rows<float>(loop, begin, end); }
NARU_WIDE void bag_rows(double, const HostLoop& loop, int64_t begin, int64_t end) { bag_rows<double>(loop, begin, end); }

}  // namespace

void bag_sums(const HostLoop& loop) {
  const auto &index = loop.arrays[0], &weight = loop.arrays[1], &out = loop.arrays[2];
  check_positions(index, weight.sizes[0], 0, "embedding");
  with_type<float, double>(weight.dtype, [&]<class T>(T) {
    split(out.sizes[0], 0.3 * static_cast<double>(index.numel() * weight.sizes[1]), 1,
          [&](int64_t begin, int64_t end) { bag_rows(T(), loop, begin, end); });
  });
}

namespace {

constexpr int64_t kCounted = 512;  // numbers whose bins are found before any is counted

// The bin of each of n numbers; `bins` for those outside of the bounds.
template <class T>
[[gnu::always_inline]] inline void find_bins(const T* __restrict x, int64_t n, T low, T high, T scale, int32_t bins,
                                             int32_t* __restrict bin) {
  const T end = static_cast<T>(bins);
  for (int64_t i = 0; i < n; ++i) {
    const T at = (x[i] - low) * scale;
    const T within = at >= T(0) ? at < end ? at : T(0) : T(0);
    const int32_t whole = static_cast<int32_t>(within), place = at >= end || whole >= bins ? bins - 1 : whole;
    bin[i] = (x[i] >= low) & (x[i] <= high) ? place : bins;
  }
}
#define NARU_BINS(T)                                                                                       \
  NARU_WIDE void find_bins_of(const T* x, int64_t n, T low, T high, T scale, int32_t bins, int32_t* bin) { \
    find_bins(x, n, low, high, scale, bins, bin);                                                          \
  }
NARU_BINS(float)
NARU_BINS(double)
#undef NARU_BINS

}  // namespace

void histogram(const HostLoop& loop) {
  const auto &x = loop.arrays[0], &out = loop.arrays[1];
  const int64_t bins = out.numel();
  int64_t* const counts = out.as<int64_t>();
  std::fill_n(counts, bins, 0);
  std::mutex adding;
  with_type<float, double>(x.dtype, [&]<class T>(T) {
    const auto number = [&](size_t i) { return static_cast<T>(std::bit_cast<double>(loop.numbers[i])); };
    const T low = number(0), high = number(1), scale = number(2);
    split(x.numel(), 1.0 * static_cast<double>(x.numel()), kCounted, [&](int64_t begin, int64_t end) {
      // Neighbours count in different tables: adding to the number just written would wait for it.
      const int64_t tables = bins <= 1024 ? 4 : 1, pitch = bins + 1;
      std::vector<int64_t> own(static_cast<size_t>(tables * pitch));
      int32_t bin[kCounted];
      for (int64_t first = begin; first < end; first += kCounted) {
        const int64_t n = std::min(kCounted, end - first);
        find_bins_of(x.as<T>() + first, n, low, high, scale, static_cast<int32_t>(bins), bin);
        int64_t *const a = own.data(), *const b = a + (tables > 1 ? pitch : 0), *const c = b + (b - a), *const d = c + (b - a);
        int64_t i = 0;
        for (; i + 4 <= n; i += 4) ++a[bin[i]], ++b[bin[i + 1]], ++c[bin[i + 2]], ++d[bin[i + 3]];
        for (; i < n; ++i) ++a[bin[i]];
      }
      const std::lock_guard lock(adding);
      for (int64_t t = 0; t < tables; ++t)
        for (int64_t i = 0; i < bins; ++i) counts[i] += own[static_cast<size_t>(t * pitch + i)];
    });
  });
}

namespace {

// Copies rows of x and fills the gap before each; the last part also fills the gap at the end.
template <class T>
void pad_rows(const HostLoop& loop, int64_t begin, int64_t end) {
  const auto &x = loop.arrays[0], &out = loop.arrays[1];
  const auto rank = x.sizes.size();
  const Dims strides = contiguous_strides(out.sizes);
  const int64_t n = x.sizes[rank - 1], rows = x.numel() / n;
  const T value = static_cast<T>(loop.numbers[1]);
  const auto place_of = [&](int64_t row) {
    int64_t place = loop.numbers[0];
    for (size_t d = rank - 1; d-- > 0; row /= x.sizes[d]) place += row % x.sizes[d] * strides[d];
    return place;
  };
  int64_t done = begin ? place_of(begin - 1) + n : 0, place = 0;
  const int64_t together = rank > 1 ? x.sizes[rank - 2] : 1, step = rank > 1 ? strides[rank - 2] : 0;
  for (int64_t row = begin; row < end; ++row) {
    place = row == begin || row % together == 0 ? place_of(row) : place + step;
    std::fill(out.as<T>() + done, out.as<T>() + place, value);
    std::copy_n(x.as<T>() + row * n, n, out.as<T>() + place);
    done = place + n;
  }
  if (end == rows) std::fill(out.as<T>() + done, out.as<T>() + out.numel(), value);
}

}  // namespace

void pad(const HostLoop& loop) {
  const auto& x = loop.arrays[0];
  const auto item = static_cast<int64_t>(size_of(x.dtype));
  const int64_t rows = x.numel() / x.sizes[x.sizes.size() - 1];
  const auto part = item == 1 ? pad_rows<uint8_t> : item == 2 ? pad_rows<uint16_t> : item == 4 ? pad_rows<uint32_t> : pad_rows<uint64_t>;
  split(rows, 0.05 * static_cast<double>(loop.arrays[1].numel() * item), 1, [&](int64_t begin, int64_t end) { part(loop, begin, end); });
}

}  // namespace naru::cpu
