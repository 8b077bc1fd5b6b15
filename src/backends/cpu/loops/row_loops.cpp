// Loops over rows: cummax and cummin with indices, triangles of matrices, margin losses.
#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "backends/cpu/exec/layout.h"
#include "backends/cpu/exec/simd.h"
#include "backends/cpu/loops/loops.h"

namespace naru::cpu {

using ir::HostLoop;

namespace {

// kRows rows at a time, so that their comparison chains run in parallel. Of equal elements the later index wins. After the first NaN the
// values stay NaN, and the index is that of the latest NaN.
template <class T, bool kGreatest, int kRows>
void running_rows(const T* x, int64_t n, T* values, int64_t* places) {
  T best[kRows];
  int64_t at[kRows];
  for (int r = 0; r < kRows; ++r) best[r] = x[r * n], at[r] = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int r = 0; r < kRows; ++r) {
      const T v = x[r * n + i];
      const bool nan = v != v, was_nan = best[r] != best[r];
      const bool better = nan | (kGreatest ? v >= best[r] : v <= best[r]);
      at[r] = better ? i : at[r];
      best[r] = better & !was_nan ? v : best[r];
      values[r * n + i] = best[r];
      places[r * n + i] = at[r];
    }
}

template <class T, bool kGreatest>
void running_all(const HostLoop& loop) {
  constexpr int kTogether = 4;
  const auto &x = loop.arrays[0], &values = loop.arrays[1], &places = loop.arrays[2];
  const int64_t n = x.sizes[x.sizes.size() - 1];
  split(x.numel() / n, 1.0 * static_cast<double>(x.numel()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end;) {
      const int64_t rows = end - row < kTogether ? 1 : kTogether, at = row * n;
      const auto run = rows == 1 ? running_rows<T, kGreatest, 1> : running_rows<T, kGreatest, kTogether>;
      run(x.as<T>() + at, n, values.as<T>() + at, places.as<int64_t>() + at);
      row += rows;
    }
  });
}

}  // namespace

void running_extremes(const HostLoop& loop) {
  with_type<float, double, int32_t, int64_t>(
      loop.arrays[0].dtype, [&]<class T>(T) { loop.numbers[0] ? running_all<T, true>(loop) : running_all<T, false>(loop); });
}

void triangles(const HostLoop& loop) {
  const auto &x = loop.arrays[0], &out = loop.arrays[1];
  const auto rank = x.sizes.size();
  const int64_t rows = x.sizes[rank - 2], columns = x.sizes[rank - 1], diagonal = loop.numbers[0];
  const auto item = static_cast<int64_t>(size_of(x.dtype));
  const bool lower = loop.numbers[1] != 0;
  split(x.numel() / columns, 0.1 * static_cast<double>(x.numel() * item), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      // Elements before the cut are kept (lower) or set to 0 (upper).
      const int64_t cut = std::clamp<int64_t>(i % rows + diagonal + (lower ? 1 : 0), 0, columns);
      const char* const from = x.as<char>() + i * columns * item;
      char* const to = out.as<char>() + i * columns * item;
      const auto front = static_cast<size_t>(cut * item), behind = static_cast<size_t>((columns - cut) * item);
      if (lower)
        std::memcpy(to, from, front), std::memset(to + front, 0, behind);
      else
        std::memset(to, 0, front), std::memcpy(to + front, from + front, behind);
    }
  });
}

namespace {

constexpr int64_t kLanes = 64;

// Adds up a chunk as reductions of contiguous elements do (ir/reduce.h). x is padded with 0 to whole lanes.
template <class T>
[[gnu::always_inline]] inline T sum_of_lanes(const T* x, int64_t n) {
  const auto tree = [](T * lanes, int64_t count) __attribute__((always_inline)) {
    for (int64_t width = count / 2; width > 0; width /= 2)
      for (int64_t l = 0; l < width; ++l) lanes[l] += lanes[l + width];
    return lanes[0];
  };
  if (constexpr int64_t kFew = 16; n > 0 && n <= kFew) {  // adding the other lanes, which are 0, changes no lane: none is -0
    T lanes[kFew];
    for (int64_t l = 0; l < kFew; ++l) lanes[l] = T(0) + x[l];
    return tree(lanes, kFew);
  }
  T lanes[kLanes] = {};
  for (int64_t first = 0; first < n; first += kLanes)
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] += x[first + l];
  return tree(lanes, kLanes);
}
// max(0, base + x); 0 stays 0 and NaN stays NaN.
template <class T>
[[gnu::always_inline]] inline T hinge(T base, T x) {
  const T v = base + x;
  return v < T(0) ? T(0) : v;
}

template <class T>
[[gnu::always_inline]] inline T margin_row(const T* x, int64_t classes, int64_t target, T margin, bool squared, T* held) {
  const T base = margin - x[target];
  for (int64_t c = 0; c < classes; ++c) {
    const T v = hinge(base, x[c]);
    held[c] = squared ? v * v : v;
  }
  held[target] = 0;
  return sum_of_lanes(held, classes);
}

// One row of `labels` labels: the hinge terms of each label with all classes; classes that are labels count 0.
template <class T>
[[gnu::always_inline]] inline T label_row(const T* x, int64_t classes, const int64_t* target, int64_t labels, const uint8_t* is_label,
                                          T* held) {
  for (int64_t j = 0; j < labels; ++j) {
    const T base = T(1) - x[target[j]];
    for (int64_t c = 0; c < classes; ++c) {
      const T v = hinge(base, x[c]);
      held[j * classes + c] = is_label[c] ? T(0) : v;
    }
  }
  return sum_of_lanes(held, labels * classes);
}

#define NARU_MARGINS(T)                                                                                                         \
  NARU_WIDE T margin_sum(const T* x, int64_t classes, int64_t target, T margin, bool squared, T* held) {                        \
    return margin_row(x, classes, target, margin, squared, held);                                                               \
  }                                                                                                                             \
  NARU_WIDE T label_sum(const T* x, int64_t classes, const int64_t* target, int64_t labels, const uint8_t* is_label, T* held) { \
    return label_row(x, classes, target, labels, is_label, held);                                                               \
  }
NARU_MARGINS(float)
NARU_MARGINS(double)
#undef NARU_MARGINS

// Zeroed memory for n values, padded to whole lanes.
template <class T>
std::vector<T> held_for(int64_t n) {
  return std::vector<T>(static_cast<size_t>((n + kLanes - 1) / kLanes * kLanes));
}

}  // namespace

void margins(const HostLoop& loop) {
  const auto &x = loop.arrays[0], &target = loop.arrays[1], &out = loop.arrays[2];
  const int64_t rows = x.sizes[0], classes = x.sizes[1];
  check_positions(target, classes, 1, "gather");
  with_type<float, double>(x.dtype, [&]<class T>(T) {
    const T margin = static_cast<T>(std::bit_cast<double>(loop.numbers[1]));
    split(rows, 0.5 * static_cast<double>(x.numel()), 1, [&](int64_t begin, int64_t end) {
      std::vector<T> held = held_for<T>(classes);
      for (int64_t row = begin; row < end; ++row)
        out.as<T>()[row] =
            margin_sum(x.as<T>() + row * classes, classes, target.as<int64_t>()[row], margin, loop.numbers[0] == 2, held.data());
    });
  });
}

void label_margins(const HostLoop& loop) {
  const auto &x = loop.arrays[0], &target = loop.arrays[1], &out = loop.arrays[2];
  const int64_t rows = x.sizes[0], classes = x.sizes[1];
  with_type<float, double>(x.dtype, [&]<class T>(T) {
    split(rows, 0.2 * static_cast<double>(x.numel() * classes), 1, [&](int64_t begin, int64_t end) {
      std::vector<T> held;
      std::vector<uint8_t> is_label(static_cast<size_t>(classes));
      for (int64_t row = begin; row < end; ++row) {
        const int64_t* const labels = target.as<int64_t>() + row * classes;
        int64_t count = 0;
        std::fill(is_label.begin(), is_label.end(), uint8_t{0});
        for (; count < classes && labels[count] >= 0; ++count) {
          if (labels[count] >= classes) check_positions(target, classes, 1, "gather");
          is_label[static_cast<size_t>(labels[count])] = 1;
        }
        // Clear the padding: an earlier row may have left values there.
        const int64_t used = count * classes, whole = (used + kLanes - 1) / kLanes * kLanes;
        if (static_cast<int64_t>(held.size()) < whole) held.resize(static_cast<size_t>(whole));
        std::fill(held.begin() + used, held.begin() + whole, T(0));
        out.as<T>()[row] = label_sum(x.as<T>() + row * classes, classes, labels, count, is_label.data(), held.data());
      }
    });
  });
}

}  // namespace naru::cpu
