// Loops over floats: grid samples of images, and distances between pairs of rows. They keep the order of operations of the instructions
// that devices run instead.
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "backends/cpu/exec/buffer.h"
#include "backends/cpu/exec/layout.h"
#include "backends/cpu/exec/simd.h"
#include "backends/cpu/loops/loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

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

// Bilinear samples inside the image, of floats: the two elements of a row are neighbours, which one gather of pairs reads.
#if defined(__x86_64__)
__attribute__((target("arch=x86-64-v4"))) void take_pairs(const float* image, const Samples<float>& at, int64_t n, float* out) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  for (int64_t i = 0; i < n; i += 16) {
    const auto lanes = static_cast<__mmask16>(n - i >= 16 ? 0xffff : (1 << (n - i)) - 1);
    const auto terms = [&](int left) __attribute__((target("arch=x86-64-v4"))) {
      const __m512i places = _mm512_loadu_si512(at.element[left] + i), none = _mm512_setzero_si512();
      const __m512i low = _mm512_mask_i32gather_epi64(none, static_cast<__mmask8>(lanes), _mm512_castsi512_si256(places), image, 4);
      const __m512i high =
          _mm512_mask_i32gather_epi64(none, static_cast<__mmask8>(lanes >> 8), _mm512_extracti64x4_epi64(places, 1), image, 4);
      const __m512 lefts = _mm512_castsi512_ps(_mm512_permutex2var_epi32(low, even, high));
      const __m512 rights = _mm512_castsi512_ps(_mm512_permutex2var_epi32(low, odd, high));
      return std::pair(_mm512_mul_ps(lefts, _mm512_loadu_ps(at.weight[left] + i)),
                       _mm512_mul_ps(rights, _mm512_loadu_ps(at.weight[left + 1] + i)));
    };
    const auto [a, b] = terms(0);
    const auto [c, d] = terms(2);
    _mm512_mask_storeu_ps(out + i, lanes, _mm512_add_ps(_mm512_add_ps(_mm512_add_ps(a, b), c), d));
  }
}
#endif

// Whether take_pairs() has done it.
template <class T>
bool took_pairs([[maybe_unused]] const T* image, [[maybe_unused]] const Samples<T>& at, [[maybe_unused]] int64_t n,
                [[maybe_unused]] T* out) {
#if defined(__x86_64__)
  if constexpr (sizeof(T) == 4)
    if (wide_level() == 2) return take_pairs(image, at, n, out), true;
#endif
  return false;
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
          if (!s.bilinear || !samples.all_there || !took_pairs(x.as<T>() + c * area, samples, n, out.as<T>() + c * places + first))
            take_samples(x.as<T>() + c * area, samples, n, s.bilinear, out.as<T>() + c * places + first);
      }
    });
  });
}

namespace {

constexpr int64_t kLanes = 64;
template <class T>
constexpr int64_t kWidth = static_cast<int64_t>(64 / sizeof(T));

// Squared distances between `row` and the kWidth rows of y in a block at once, whose k-th numbers follow each other, kWidth each: 64 lanes over the
// depth, then their tree (ir/reduce.h).
template <class T>
[[gnu::always_inline]] inline void sums_of_squares(const T* block, const T* row, int64_t depth, T* out) {
  typedef T Wide __attribute__((vector_size(64)));
  typedef T Anywhere __attribute__((vector_size(64), aligned(sizeof(T)), may_alias));
  const auto add_square = [&](int64_t k, Wide & sum) __attribute__((always_inline)) {
    const Wide difference = *reinterpret_cast<const Anywhere*>(block + k * kWidth<T>) - row[k];
    sum += difference * difference;
  };
  // The first value of a lane. Adding it to 0 would not change it, as no square is -0; a lane without elements stays 0.
  const auto set_square = [&](int64_t k, Wide & sum) __attribute__((always_inline)) {
    const Wide difference = *reinterpret_cast<const Anywhere*>(block + k * kWidth<T>) - row[k];
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

// A block of kWidth rows of y, and the distances to them from rows [begin, end) of x. pairs: x and y are the same `n` rows, and out has those of all
// pairs of them.
template <class T>
struct DistanceBlock {
  const T *block, *x;
  int64_t depth, first, n;
  bool pairs;
  T* out;
};
template <class T>
[[gnu::always_inline]] inline void distances_of(const DistanceBlock<T>& b, int64_t begin, int64_t end) {
  constexpr int64_t kStep = kWidth<T>;
  const int64_t last = std::min(kStep, b.n - b.first);
  for (int64_t i = begin; i < end; ++i) {
    const int64_t from = b.pairs ? std::max<int64_t>(i + 1 - b.first, 0) : 0;
    if (from >= last) return;  // so are those behind
    T sums[kStep];
    sums_of_squares(b.block, b.x + i * b.depth, b.depth, sums);
    for (T& s : sums) s = sizeof(T) == 4 ? __builtin_sqrtf(s) : __builtin_sqrt(s);
    T* const to = b.out + (b.pairs ? i * (2 * b.n - 1 - i) / 2 - (i + 1) : i * b.n) + b.first;
    if (from == 0 && last == kStep)
      std::memcpy(to, sums, sizeof sums);
    else
      for (int64_t j = from; j < last; ++j) to[j] = sums[j];
  }
}
#define NARU_DISTANCES(T) \
  NARU_WIDE void block_distances(const DistanceBlock<T>& b, int64_t begin, int64_t end) { distances_of(b, begin, end); }
NARU_DISTANCES(float)
NARU_DISTANCES(double)
#undef NARU_DISTANCES

}  // namespace

void distances(const HostLoop& loop) {
  const bool pairs = loop.arrays.size() == 2;  // pairs of rows of the same matrix
  const auto &x = loop.arrays[0], &y = loop.arrays[pairs ? 0 : 1], &out = loop.arrays.back();
  const int64_t rows = pairs ? x.sizes[0] - 1 : x.sizes[0], n = y.sizes[0], depth = x.sizes[1];
  with_type<float, double>(x.dtype, [&]<class T>(T) {
    constexpr int64_t kStep = kWidth<T>;
    // Blocks of rows of y, transposed: one stays in the cache for all rows of x. Rows behind the last are 0; their distances are not used.
    const int64_t blocks = (n + kStep - 1) / kStep;
    const Buffer memory = make_buffer({blocks, depth, kStep}, sizeof(T));
    T* const columns = reinterpret_cast<T*>(memory.get());
    std::fill_n(columns + (blocks - 1) * depth * kStep, depth * kStep, T(0));
    for (int64_t i = 0; i < n; ++i) {
      T* const to = columns + i / kStep * depth * kStep + i % kStep;
      for (int64_t k = 0; k < depth; ++k) to[k * kStep] = y.as<T>()[i * depth + k];
    }
    split(rows, 0.1 * static_cast<double>(out.numel() * depth), 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = pairs ? (begin + 1) / kStep : 0; b < blocks; ++b)
        block_distances({columns + b * depth * kStep, x.as<T>(), depth, b * kStep, n, pairs, out.as<T>()}, begin, end);
    });
  });
}

}  // namespace naru::cpu
