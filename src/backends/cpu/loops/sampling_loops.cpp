// Loops over floats: grid samples of images, and distances between pairs of rows. They keep the order of operations of the instructions
// that devices run instead.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backends/cpu/exec/buffer.h"
#include "backends/cpu/exec/layout.h"
#include "backends/cpu/exec/simd.h"
#include "backends/cpu/loops/loops.h"

namespace naru::cpu {

using ir::HostLoop;

namespace {

// A block of sample positions of one image: the elements that each reads, and their weights.
template <class T>
struct Samples {
  static constexpr int64_t kMost = 256;
  using Number = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;  // as wide as the elements, so that a vector holds as many
  Number element[4][kMost];
  T weight[4][kMost];
  Number there[4][kMost];  // 1: inside the image, 0: outside
  bool all_there = true;
};

struct Sampling {
  int64_t height, width;
  bool bilinear, border, align_corners;
};

// Converts coordinates in [-1, 1] to positions among `size` elements.
template <class T>
[[gnu::always_inline]] inline void find_places(T* __restrict at, int64_t n, T size, const Sampling& s) {
  const T last = size - T(1);
  if (s.align_corners)
    for (int64_t i = 0; i < n; ++i) at[i] = (at[i] + T(1)) / T(2) * last;
  else
    for (int64_t i = 0; i < n; ++i) at[i] = ((at[i] + T(1)) * size - T(1)) / T(2);
  for (int64_t i = 0; i < n && s.border; ++i) at[i] = at[i] > T(0) ? (at[i] < last ? at[i] : last) : T(0);  // NaN becomes 0, too
}

// Rounds to nearest, ties to even, as the host does; values too large for a fraction are already integers.
template <class T>
[[gnu::always_inline]] inline T round_of(T v) {
  return sizeof(T) == 4 ? __builtin_nearbyintf(v) : __builtin_nearbyint(v);
}
template <class T>
[[gnu::always_inline]] inline T floor_of(T v) {
  return sizeof(T) == 4 ? __builtin_floorf(v) : __builtin_floor(v);
}

// Corner c of sample i is the element at integers y and x, or 0 if that is outside the image; NaN is outside.
template <class T>
[[gnu::always_inline]] inline void set_corner(Samples<T>& to, int c, int64_t i, T y, T x, T weight, const Sampling& s) {
  using Number = typename Samples<T>::Number;
  const T bottom = static_cast<T>(s.height - 1), end = static_cast<T>(s.width - 1);
  const bool there = (y >= T(0)) & (y <= bottom) & (x >= T(0)) & (x <= end);
  const T inside_y = there ? y : T(0), inside_x = there ? x : T(0);
  to.there[c][i] = there;
  to.element[c][i] = static_cast<Number>(inside_y) * static_cast<Number>(s.width) + static_cast<Number>(inside_x);
  to.weight[c][i] = weight;
}

template <class T>
[[gnu::always_inline]] inline void find_samples_of(const T* __restrict grid, int64_t n, const Sampling& given, Samples<T>& __restrict to) {
  const Sampling s = given;
  T x[Samples<T>::kMost], y[Samples<T>::kMost];
  for (int64_t i = 0; i < n; ++i) x[i] = grid[2 * i], y[i] = grid[2 * i + 1];
  find_places(x, n, static_cast<T>(s.width), s), find_places(y, n, static_cast<T>(s.height), s);
  if (!s.bilinear)
    for (int64_t i = 0; i < n; ++i) set_corner(to, 0, i, round_of(y[i]), round_of(x[i]), T(1), s);
  else
    for (int64_t i = 0; i < n; ++i) {
      const T left = floor_of(x[i]), top = floor_of(y[i]);
      const T right = left + T(1), below = top + T(1);
      const T before = right - x[i], behind = x[i] - left, above = below - y[i], beneath = y[i] - top;
      set_corner(to, 0, i, top, left, above * before, s);
      set_corner(to, 1, i, top, right, above * behind, s);
      set_corner(to, 2, i, below, left, beneath * before, s);
      set_corner(to, 3, i, below, right, beneath * behind, s);
    }
  typename Samples<T>::Number all = 1;
  for (int c = 0; c < (s.bilinear ? 4 : 1); ++c)
    for (int64_t i = 0; i < n; ++i) all &= to.there[c][i];
  to.all_there = all;
}

template <class T>
[[gnu::always_inline]] inline void take_samples_of(const T* __restrict image, const Samples<T>& __restrict at, int64_t n, bool bilinear,
                                                   T* __restrict out) {
  const auto value = [&](int c, int64_t i) __attribute__((always_inline)) {
    const T v = image[at.element[c][i]];
    return at.there[c][i] ? v : T(0);
  };
  if (!bilinear)
    for (int64_t i = 0; i < n; ++i) out[i] = value(0, i);
  else if (at.all_there)
    for (int64_t i = 0; i < n; ++i) {
      const auto term = [&](int c) __attribute__((always_inline)) { return image[at.element[c][i]] * at.weight[c][i]; };
      out[i] = term(0) + term(1) + term(2) + term(3);
    }
  else
    for (int64_t i = 0; i < n; ++i)
      out[i] =
          value(0, i) * at.weight[0][i] + value(1, i) * at.weight[1][i] + value(2, i) * at.weight[2][i] + value(3, i) * at.weight[3][i];
}
#define NARU_SAMPLES(T)                                                                                                            \
  NARU_WIDE void find_samples(const T* grid, int64_t n, const Sampling& s, Samples<T>& to) { find_samples_of<T>(grid, n, s, to); } \
  NARU_WIDE void take_samples(const T* image, const Samples<T>& at, int64_t n, bool bilinear, T* out) {                            \
    take_samples_of<T>(image, at, n, bilinear, out);                                                                               \
  }
NARU_SAMPLES(float)
NARU_SAMPLES(double)
#undef NARU_SAMPLES

}  // namespace

void grid_sample(const HostLoop& loop) {
  const auto &x = loop.arrays[0], &grid = loop.arrays[1], &out = loop.arrays[2];
  const Sampling s{x.sizes[2], x.sizes[3], loop.numbers[0] != 0, loop.numbers[1] != 0, loop.numbers[2] != 0};
  const int64_t channels = x.sizes[1], area = s.height * s.width, places = grid.sizes[1] * grid.sizes[2];
  with_type<float, double>(x.dtype, [&]<class T>(T) {
    constexpr int64_t kMost = Samples<T>::kMost;
    const int64_t blocks = (places + kMost - 1) / kMost;
    split(x.sizes[0] * blocks, 1.5 * static_cast<double>(out.numel()), 1, [&](int64_t begin, int64_t end) {
      Samples<T> samples;
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t image = unit / blocks, first = unit % blocks * kMost, n = std::min(kMost, places - first);
        find_samples(grid.as<T>() + (image * places + first) * 2, n, s, samples);
        for (int64_t c = image * channels; c < (image + 1) * channels; ++c)
          take_samples(x.as<T>() + c * area, samples, n, s.bilinear, out.as<T>() + c * places + first);
      }
    });
  });
}

namespace {

constexpr int64_t kLanes = 64;
template <class T>
constexpr int64_t kWidth = static_cast<int64_t>(64 / sizeof(T));

// Squared distances between `row` and kWidth columns at once: 64 lanes over the depth, then their tree (ir/reduce.h).
template <class T>
[[gnu::always_inline]] inline void sums_of_squares(const T* columns, int64_t pitch, const T* row, int64_t depth, T* out) {
  typedef T Wide __attribute__((vector_size(64)));
  typedef T Anywhere __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));
  const auto add_square = [&](int64_t k, Wide & sum) __attribute__((always_inline)) {
    const Wide difference = *reinterpret_cast<const Anywhere*>(columns + k * pitch) - row[k];
    sum += difference * difference;
  };
  // The first value of a lane. Adding it to 0 would not change it, as no square is -0; a lane without elements stays 0.
  const auto set_square = [&](int64_t k, Wide & sum) __attribute__((always_inline)) {
    const Wide difference = *reinterpret_cast<const Anywhere*>(columns + k * pitch) - row[k];
    sum = difference * difference;
  };
  // The sums that remain when the tree is eight lanes wide.
  Wide rest[8] = {};
  if (depth <= 8) {
    for (int64_t k = 0; k < depth; ++k) set_square(k, rest[k]);
  } else {
#pragma GCC unroll 8  // so that they stay in registers
    for (int64_t l = 0; l < 8; ++l) {
      Wide lane[8] = {};  // lanes l, l + 8 ...
      int64_t first = l;
      if (depth >= kLanes) {
        for (int64_t i = 0; i < 8; ++i) set_square(first + 8 * i, lane[i]);
        for (first += kLanes; first - l + kLanes <= depth; first += kLanes)
          for (int64_t i = 0; i < 8; ++i) add_square(first + 8 * i, lane[i]);
      }
      for (int64_t i = 0; i < 8 && depth % kLanes != 0; ++i)
        if (first + 8 * i < depth) add_square(first + 8 * i, lane[i]);
      rest[l] = ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
    }
  }
  for (int64_t width = 4; width > 0; width /= 2)
    for (int64_t l = 0; l < width; ++l) rest[l] += rest[l + width];
  std::memcpy(out, &rest[0], sizeof rest[0]);
}

template <class T>
[[gnu::always_inline]] inline void distances_of_row(const T* columns, int64_t pitch, const T* row, int64_t depth, int64_t begin,
                                                    int64_t end, T* out) {
  constexpr int64_t kStep = kWidth<T>;
  for (int64_t j = begin; j < end; j += kStep, out += kStep) {
    T sums[kStep];
    sums_of_squares(columns + j, pitch, row, depth, sums);
    for (T& s : sums) s = sizeof(T) == 4 ? __builtin_sqrtf(s) : __builtin_sqrt(s);
    std::memcpy(out, sums, static_cast<size_t>(std::min(kStep, end - j)) * sizeof(T));
  }
}
#define NARU_DISTANCES(T)                                                                                                          \
  NARU_WIDE void row_distances(const T* columns, int64_t pitch, const T* row, int64_t depth, int64_t begin, int64_t end, T* out) { \
    distances_of_row(columns, pitch, row, depth, begin, end, out);                                                                 \
  }
NARU_DISTANCES(float)
NARU_DISTANCES(double)
#undef NARU_DISTANCES

}  // namespace

void distances(const HostLoop& loop) {
  const bool pairs = loop.arrays.size() == 2;  // pairs of rows of the same matrix
  const auto &x = loop.arrays[0], &y = loop.arrays[pairs ? 0 : 1], &out = loop.arrays.back();
  const int64_t rows = pairs ? x.sizes[0] - 1 : x.sizes[0], n = y.sizes[0], depth = x.sizes[1];
  with_type<float, double>(x.dtype, [&]<class T>(T) {
    const int64_t pitch = n + kWidth<T>;  // padding: rows past the last are read but not used
    const Buffer memory = make_buffer({depth, pitch}, sizeof(T));
    T* const columns = reinterpret_cast<T*>(memory.get());
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t i = 0; i < n; ++i) columns[k * pitch + i] = y.as<T>()[i * depth + k];
      std::fill_n(columns + k * pitch + n, kWidth<T>, T(0));
    }
    split(rows, 0.1 * static_cast<double>(out.numel() * depth), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        row_distances(columns, pitch, x.as<T>() + i * depth, depth, pairs ? i + 1 : 0, n,
                      out.as<T>() + (pairs ? i * (2 * n - 1 - i) / 2 : i * n));
    });
  });
}

}  // namespace naru::cpu
