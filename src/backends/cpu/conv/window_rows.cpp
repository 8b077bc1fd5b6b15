#include "backends/cpu/conv/window_rows.h"

#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "backends/cpu/exec/simd.h"
#include "backends/cpu/gemm/product_types.h"

namespace naru::cpu {
namespace {

template <class T>
bool is_nan(T v) {
  if constexpr (std::is_floating_point_v<T>)
    return v != v;
  else
    return false;
}
struct Next {
  int64_t first;
  static bool there(int64_t) { return true; }
  int64_t element(int64_t i) const { return first + i; }
  int64_t offset(int64_t i) const { return first + i; }
};
struct Stepped {
  int64_t first, step, move;
  static bool there(int64_t) { return true; }
  int64_t element(int64_t i) const { return first + i * step; }
  int64_t offset(int64_t i) const { return (first + i * step) * move; }
};
struct Listed {
  const int64_t* index;
  int64_t move;
  bool there(int64_t i) const { return index[i] >= 0; }
  int64_t element(int64_t i) const { return index[i]; }
  int64_t offset(int64_t i) const { return index[i] * move; }
};
template <class F>
[[gnu::always_inline]] inline void with(const Places& p, F f) {
  if (p.step == 0)
    f(Listed{p.index, p.move});
  else if (p.step == 1 && p.move == 1)
    f(Next{p.first});
  else
    f(Stepped{p.first, p.step, p.move});
}

// Adds elements times weight * scale, times scale, or unchanged.
template <class T, class At>
[[gnu::always_inline]] inline void add_row(const At& at, const T* x, const T* weight, T scale, bool weighs, int64_t n, T* sums) {
  const auto each = [&](auto value) __attribute__((always_inline)) {
    for (int64_t i = 0; i < n; ++i)
      if (at.there(i)) sums[i] = plus<T>(sums[i], value(x[at.offset(i)], i));
  };
  if (weight)
    each([&](T v, int64_t i) __attribute__((always_inline)) { return v * (scale * weight[i]); });
  else if (weighs)
    each([&](T v, int64_t) __attribute__((always_inline)) { return v * scale; });
  else
    each([&](T v, int64_t) __attribute__((always_inline)) { return v; });
}
template <class T, class At>
[[gnu::always_inline]] inline void move_row(const At& at, const T* x, int64_t n, T* y) {
  for (int64_t i = 0; i < n; ++i) y[i] = at.there(i) ? plus<T>(T(0), x[at.offset(i)]) : T(0);
}
template <class T, class At>
[[gnu::always_inline]] inline void greater_row(const At& at, const T* x, int64_t number, int64_t n, T* best, int64_t* place) {
  for (int64_t i = 0; i < n; ++i) {
    if (!at.there(i)) continue;
    const T v = x[at.offset(i)];
    const bool better = v > best[i] || is_nan(v) || place[i] < 0;
    best[i] = better ? v : best[i];
    place[i] = better ? number + at.element(i) : place[i];
  }
}
template <class T>
[[gnu::always_inline]] inline void rows_apart(const T* x, int64_t move, int64_t n, int64_t step, int64_t each, T* to) {
  if (step == 2 && move == 1) {
    T* const odd = to + each;
    for (int64_t i = 0; i < n / 2; ++i) to[i] = x[2 * i], odd[i] = x[2 * i + 1];
    if (n % 2) to[n / 2] = x[n - 1];
    return;
  }
  for (int64_t s = 0; s < step; ++s)
    for (int64_t i = s, j = s * each; i < n; i += step, ++j) to[j] = x[i * move];
}
template <class T, class At>
[[gnu::always_inline]] inline void pick_row(const At& at, const T* x, const int64_t* seen, int64_t seen_move, int64_t own, int64_t step,
                                            int64_t n, T* sums) {
  for (int64_t i = 0; i < n; ++i)
    if (at.there(i)) sums[i] = plus<T>(sums[i], seen[at.element(i) * seen_move] == own + i * step ? x[at.offset(i)] : T(0));
}

// 32 bytes of neighbouring channels (comparisons of wider vectors become scalar code): values, and numbers of the same size.
template <class T>
struct Lanes {
  static constexpr int64_t kCount = 32 / sizeof(T);
  using Number = ElementNumber<T>;
  typedef T Values __attribute__((vector_size(32)));
  typedef std::conditional_t<std::is_floating_point_v<T>, T, std::make_unsigned_t<std::conditional_t<std::is_floating_point_v<T>, int, T>>>
      Sums __attribute__((vector_size(32)));  // integers wrap
  typedef Number Numbers __attribute__((vector_size(32)));
  typedef int64_t Places __attribute__((vector_size(8 * kCount)));
};
// Calls f<vectors>(first channel) for groups of four vectors of channels and for single ones. Returns the first channel that is left.
template <class T, class F>
[[gnu::always_inline]] inline int64_t each_vector(int64_t n, F f) {
  int64_t c = 0;
  for (; c + 4 * Lanes<T>::kCount <= n; c += 4 * Lanes<T>::kCount) f(std::integral_constant<int, 4>(), c);
  for (; c + Lanes<T>::kCount <= n; c += Lanes<T>::kCount) f(std::integral_constant<int, 1>(), c);
  return c;
}
// Calls f(0), f(1) ... with constants: arrays that are indexed by them stay in registers, which those of loops that are unrolled later don't.
template <int kCount, class F>
[[gnu::always_inline]] inline void each_of(F f) {
  [&]<int... J>(std::integer_sequence<int, J...>) __attribute__((always_inline)) { (f(std::integral_constant<int, J>()), ...); }
  (std::make_integer_sequence<int, kCount>());
}
template <class V, class T>
[[gnu::always_inline]] inline V vector_at(const T* x) {
  V v;
  std::memcpy(&v, x, sizeof v);
  return v;
}
template <class T>
[[gnu::always_inline]] inline void sums_of_channels(const T* x, const ChannelElement<T>* e, int64_t count, bool weighs, int64_t n, T* out) {
  using L = Lanes<T>;
  using Sums = typename L::Sums;
  int64_t c = each_vector<T>(
      n, [&](auto vectors, int64_t first) __attribute__((always_inline)) {
        Sums sum[vectors()];
        each_of<vectors()>([&](auto j) __attribute__((always_inline)) { sum[j()] = Sums{}; });
        for (int64_t k = 0; k < count; ++k) {
          const T* const at = x + e[k].offset + first;
          const Sums weight = Sums{} + static_cast<std::remove_cvref_t<decltype(sum[0][0])>>(e[k].weight);
          if (weighs)
            each_of<vectors()>([&](auto j) __attribute__((always_inline)) { sum[j()] += vector_at<Sums>(at + j() * L::kCount) * weight; });
          else
            each_of<vectors()>([&](auto j) __attribute__((always_inline)) { sum[j()] += vector_at<Sums>(at + j() * L::kCount); });
        }
        each_of<vectors()>([&](auto j)
                               __attribute__((always_inline)) { std::memcpy(out + first + j() * L::kCount, &sum[j()], sizeof sum[j()]); });
      });
  for (; c < n; ++c) {
    T sum(0);
    for (int64_t k = 0; k < count; ++k) sum = plus<T>(sum, weighs ? x[e[k].offset + c] * e[k].weight : x[e[k].offset + c]);
    out[c] = sum;
  }
}
template <class T>
[[gnu::always_inline]] inline void maxima_of_channels(const T* x, const ChannelElement<T>* e, int64_t count, int64_t n, T* out,
                                                      int64_t* places) {
  using L = Lanes<T>;
  using Values = typename L::Values;
  using Numbers = typename L::Numbers;
  int64_t c = each_vector<T>(
      n, [&](auto vectors, int64_t first) __attribute__((always_inline)) {
        Values best[vectors()];
        Numbers place[vectors()];
        // The first element is always taken.
        each_of<vectors()>([&](auto j) __attribute__((always_inline)) {
          best[j()] = vector_at<Values>(x + e[0].offset + first + j() * L::kCount);
          place[j()] = Numbers{} + static_cast<typename L::Number>(e[0].number);
        });
        for (int64_t k = 1; k < count; ++k) {
          const Numbers number = Numbers{} + static_cast<typename L::Number>(e[k].number);
          each_of<vectors()>([&](auto j) __attribute__((always_inline)) {
            const Values v = vector_at<Values>(x + e[k].offset + first + j() * L::kCount);
            const Numbers better = (v > best[j()]) | (v != v);
            best[j()] = better ? v : best[j()];
            place[j()] = better ? number : place[j()];
          });
        }
        each_of<vectors()>([&](auto j) __attribute__((always_inline)) {
          const int64_t at = first + j() * L::kCount;
          std::memcpy(out + at, &best[j()], sizeof best[j()]);
          const auto wide = __builtin_convertvector(place[j()], typename L::Places);
          std::memcpy(places + at, &wide, sizeof wide);
        });
      });
  for (; c < n; ++c) {
    out[c] = x[e[0].offset + c], places[c] = e[0].number;
    for (int64_t k = 1; k < count; ++k)
      if (const T v = x[e[k].offset + c]; v > out[c] || is_nan(v)) out[c] = v, places[c] = e[k].number;
  }
}
template <class T>
[[gnu::always_inline]] inline void maxima_of_rows(const RowElement<T>* e, int64_t count, int64_t step, int64_t n, T* best,
                                                  ElementNumber<T>* place) {
  using L = Lanes<T>;
  using Number = typename L::Number;
  using Numbers = typename L::Numbers;
  const auto one = [&](int64_t i) __attribute__((always_inline)) {
    T b = std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::min();
    Number p = -1;
    for (int64_t k = 0; k < count; ++k)
      if (i >= e[k].begin && i < e[k].end)
        if (const T v = e[k].x[i]; v > b || is_nan(v) || p < 0) b = v, p = static_cast<Number>(e[k].number + i * step);
    best[i] = b, place[i] = p;
  };
  int64_t first = 0, last = count > 0 ? n : 0;
  for (int64_t k = 0; k < count; ++k) first = first > e[k].begin ? first : e[k].begin, last = last < e[k].end ? last : e[k].end;
  int64_t i = 0;
  for (; i < first && i < n; ++i) one(i);
  Numbers lanes;
  for (int64_t j = 0; j < L::kCount; ++j) lanes[j] = static_cast<Number>(j * step);
  const auto several = [&](int64_t at) __attribute__((always_inline)) {
    auto b = vector_at<typename L::Values>(e[0].x + at);
    Numbers p = lanes + static_cast<Number>(e[0].number + at * step);
    for (int64_t k = 1; k < count; ++k) {
      const auto v = vector_at<typename L::Values>(e[k].x + at);
      const Numbers better = (v > b) | (v != v);
      b = better ? v : b, p = better ? lanes + static_cast<Number>(e[k].number + at * step) : p;
    }
    std::memcpy(best + at, &b, sizeof b), std::memcpy(place + at, &p, sizeof p);
  };
  if (last - first >= L::kCount) {
    for (; i + L::kCount <= last; i += L::kCount) several(i);
    if (i < last) several(last - L::kCount), i = last;
  }
  for (; i < n; ++i) one(i);
}

// Loads one element of each channel.
template <class T, class Values>
[[gnu::always_inline]] inline void set_elements(const T* const (&x)[kPlanes], int64_t at, Values& v) {
  v = Values{x[0][at], x[1][at], x[2][at], x[3][at], x[4][at], x[5][at], x[6][at], x[7][at]};
}
template <class T>
[[gnu::always_inline]] inline void sums_of_planes(const T* const (&x)[kPlanes], const PlaneWindows& w, T* out) {
  typedef T Values __attribute__((vector_size(kPlanes * sizeof(T))));
  for (int64_t p = 0; p < w.n; ++p, out += kPlanes) {
    const auto [begin, end] = w.windows[p];
    Values sum{};
    for (int64_t r = 0; r < w.row_count; ++r)
      for (int64_t e = begin; e < end; ++e) {
        Values v;
        set_elements(x, w.rows[r].offset + e * w.move, v);
        if constexpr (std::is_floating_point_v<T>) {
          sum += v;
        } else {
          typedef std::make_unsigned_t<T> Wrapping __attribute__((vector_size(kPlanes * sizeof(T))));
          sum = reinterpret_cast<Values>(reinterpret_cast<Wrapping>(sum) + reinterpret_cast<Wrapping>(v));
        }
      }
    std::memcpy(out, &sum, sizeof sum);
  }
}
template <class T>
[[gnu::always_inline]] inline void maxima_of_planes(const T* const (&x)[kPlanes], const PlaneWindows& w, T* out, int32_t* places) {
  typedef T Values __attribute__((vector_size(kPlanes * sizeof(T))));
  using Number = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  typedef Number Numbers __attribute__((vector_size(kPlanes * sizeof(T))));
  for (int64_t p = 0; p < w.n; ++p, out += kPlanes, places += kPlanes) {
    const auto [begin, end] = w.windows[p];
    Values best = Values{} + (std::is_floating_point_v<T> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::min());
    Numbers place = Numbers{} - 1;
    // The first element is always taken, even if it equals the initial value.
    if (w.row_count > 0 && begin < end) {
      set_elements(x, w.rows[0].offset + begin * w.move, best);
      place = Numbers{} + static_cast<Number>(w.rows[0].number + begin);
    }
    for (int64_t r = 0; r < w.row_count; ++r)
      for (int64_t e = begin; e < end; ++e) {
        Values v;
        set_elements(x, w.rows[r].offset + e * w.move, v);
        const Numbers better = (v > best) | (v != v), number = Numbers{} + static_cast<Number>(w.rows[r].number + e);
        best = better ? v : best;
        place = better ? number : place;
      }
    std::memcpy(out, &best, sizeof best);
    for (int64_t c = 0; c < kPlanes; ++c) places[c] = static_cast<int32_t>(place[c]);
  }
}

}  // namespace

// The same functions for each type, compiled for several instruction sets.
#define NARU_ROWS(T)                                                                                                             \
  NARU_WIDE void add(const Places& p, const T* x, const T* weight, T scale, bool weighs, int64_t n, T* sums) {                   \
    with(                                                                                                                        \
        p, [&](auto at) __attribute__((always_inline)) { add_row<T>(at, x, weight, scale, weighs, n, sums); });                  \
  }                                                                                                                              \
  NARU_WIDE void channel_sums(const T* x, const ChannelElement<T>* e, int64_t count, bool weighs, int64_t n, T* sums) {          \
    sums_of_channels<T>(x, e, count, weighs, n, sums);                                                                           \
  }                                                                                                                              \
  NARU_WIDE void channel_maxima(const T* x, const ChannelElement<T>* e, int64_t count, int64_t n, T* best, int64_t* places) {    \
    maxima_of_channels<T>(x, e, count, n, best, places);                                                                         \
  }                                                                                                                              \
  NARU_WIDE void plane_sums(const T* const(&x)[kPlanes], const PlaneWindows& w, T* sums) { sums_of_planes<T>(x, w, sums); }      \
  NARU_WIDE void plane_maxima(const T* const(&x)[kPlanes], const PlaneWindows& w, T* best, int32_t* places) {                    \
    maxima_of_planes<T>(x, w, best, places);                                                                                     \
  }                                                                                                                              \
  NARU_WIDE void greater(const Places& p, const T* x, int64_t number, int64_t n, T* best, int64_t* place) {                      \
    with(                                                                                                                        \
        p, [&](auto at) __attribute__((always_inline)) { greater_row<T>(at, x, number, n, best, place); });                      \
  }                                                                                                                              \
  NARU_WIDE void row_maxima(const RowElement<T>* e, int64_t count, int64_t step, int64_t n, T* best, ElementNumber<T>* place) {  \
    maxima_of_rows<T>(e, count, step, n, best, place);                                                                           \
  }                                                                                                                              \
  NARU_WIDE void apart(const T* x, int64_t move, int64_t n, int64_t step, int64_t each, T* to) {                                 \
    rows_apart<T>(x, move, n, step, each, to);                                                                                   \
  }                                                                                                                              \
  NARU_WIDE void move(const Places& p, const T* x, int64_t n, T* y) {                                                            \
    with(                                                                                                                        \
        p, [&](auto at) __attribute__((always_inline)) { move_row<T>(at, x, n, y); });                                           \
  }                                                                                                                              \
  NARU_WIDE void pick(const Places& p, const T* x, const int64_t* seen, int64_t seen_move, int64_t own, int64_t step, int64_t n, \
                      T* sums) {                                                                                                 \
    with(                                                                                                                        \
        p, [&](auto at) __attribute__((always_inline)) { pick_row<T>(at, x, seen, seen_move, own, step, n, sums); });            \
  }

NARU_ROWS(float)
NARU_ROWS(double)
NARU_ROWS(int32_t)
NARU_ROWS(int64_t)
#undef NARU_ROWS

}  // namespace naru::cpu
