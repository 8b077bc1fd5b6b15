// Sums and maxima of windows. A row of results at a time; where channels are neighbours in memory, a position's channels at a time.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "host/buffer.h"
#include "host/instructions.h"
#include "host/kernels.h"
#include "host/layout.h"
#include "host/product_types.h"
#include "host/window_rows.h"
#include "naru/error.h"

namespace naru::host {
namespace {

using ir::Windows;
using Op = Windows::Op;

// A place of the last dimension, for the positions [begin, end) that have it: element first + (p - begin) * step, or by the table (step 0).
struct Run {
  int64_t begin = 0, end = 0, first = 0, step = 0, place = 0;
};

// Looks for a regular step in a row of the table.
Run run_of(const int64_t* index, int64_t n) {
  Run r;
  while (r.begin < n && index[r.begin] < 0) ++r.begin;
  r.end = n;
  while (r.end > r.begin && index[r.end - 1] < 0) --r.end;
  if (r.begin == r.end) return r;
  r.first = index[r.begin];
  r.step = r.end - r.begin > 1 ? index[r.begin + 1] - r.first : 1;
  for (int64_t p = r.begin; p < r.end; ++p)
    if (index[p] != r.first + (p - r.begin) * r.step) r.step = 0;
  return r;
}

// The positions that have a place: with a regular step all together, else those in the middle that see neighbours by themselves (a padded image's).
void add_runs(const int64_t* index, int64_t n, int64_t place, std::vector<Run>& runs) {
  constexpr int64_t kWorthIt = 16;
  Run whole = run_of(index, n), middle;
  whole.place = place;
  for (int64_t begin = whole.begin, end; whole.step == 0 && begin < whole.end; begin = end) {
    for (end = begin + 1; end < whole.end && index[end] == index[end - 1] + 1; ++end) {
    }
    if (index[begin] >= 0 && end - begin > middle.end - middle.begin) middle = {begin, end, index[begin], 1, place};
  }
  if (middle.end - middle.begin < kWorthIt) return runs.push_back(whole);
  runs.push_back({whole.begin, middle.begin, 0, 0, place});
  runs.push_back(middle);
  runs.push_back({middle.end, whole.end, 0, 0, place});
}

template <class T>
T least() {
  if constexpr (std::is_floating_point_v<T>)
    return -std::numeric_limits<T>::infinity();
  else
    return std::numeric_limits<T>::min();
}

template <class T>
class Job {
 public:
  explicit Job(const Windows& q) : q_(q) {
    for (size_t d = 0; d < 3; ++d) {
      const Windows::Table& t = q.tables[d];
      index_[d] = static_cast<const int64_t*>(t.index), weight_[d] = static_cast<const T*>(t.weight);
      places_[d] = t.index ? t.places : 1;
      weighs_ = weighs_ || t.weight;
    }
    if (!index_[2]) {
      own_.resize(static_cast<size_t>(q.result[2]));
      for (size_t p = 0; p < own_.size(); ++p) own_[p] = static_cast<int64_t>(p);
      index_[2] = own_.data();
    }
    for (int64_t t = 0; t < places_[2]; ++t) add_runs(index_[2] + t * q.result[2], q.result[2], t, runs_);
    moves_ = moves();
  }

  void run() const {
    const auto& r = q_.result;
    if (q_.op == Op::Pick && spread_evenly()) return scatter();
    if (by_planes()) return planes();
    const double time = 0.6 * static_cast<double>(product(q_.sizes_of_y())) * static_cast<double>(places_[0] * places_[1] * places_[2]);
    if (q_.channels > 1 && q_.x.strides[1] == 1 && q_.y.strides[1] == 1 && (q_.op == Op::Sum || q_.indices.strides[1] == 1))
      return split(q_.batch * r[0] * r[1] * r[2], time, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) position(i / (r[0] * r[1] * r[2]), i / (r[1] * r[2]) % r[0], i / r[2] % r[1], i % r[2]);
      });
    split(q_.batch * q_.channels * r[0] * r[1], time, 1, [&](int64_t begin, int64_t end) {
      int64_t p1 = begin % r[1], p0 = begin / r[1] % r[0], channel = begin / (r[0] * r[1]) % q_.channels;
      int64_t image = begin / (r[0] * r[1] * q_.channels);
      for (int64_t i = begin; i < end; ++i) {
        row(image, channel, p0, p1);
        if (++p1 < r[1]) continue;
        p1 = 0;
        if (++p0 < r[0]) continue;
        p0 = 0;
        if (++channel < q_.channels) continue;
        channel = 0, ++image;
      }
    });
  }

 private:
  // Do y's positions follow each other, however far apart?
  bool spread_evenly() const {
    const auto& s = q_.y.strides;
    return (s[3] == s[4] * q_.result[2] || q_.result[1] == 1) && (s[2] == s[4] * q_.result[2] * q_.result[1] || q_.result[0] == 1);
  }
  // Pick the other way round: x goes where its number says, in the same order.
  void scatter() const {
    const int64_t positions = q_.result[0] * q_.result[1] * q_.result[2], seen = q_.size[0] * q_.size[1] * q_.size[2];
    split(q_.batch * q_.channels, 2.0 * static_cast<double>(q_.batch * q_.channels * (positions + seen)), 1,
          [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
              const int64_t image = i / q_.channels, channel = i % q_.channels;
              const auto &sx = q_.x.strides, &sy = q_.y.strides, &si = q_.indices.strides;
              T* y = static_cast<T*>(q_.y.data) + image * sy[0] + channel * sy[1];
              for (int64_t p = 0; p < positions; ++p) y[p * sy[4]] = T(0);
              for (int64_t e0 = 0; e0 < q_.size[0]; ++e0)
                for (int64_t e1 = 0; e1 < q_.size[1]; ++e1) {
                  const T* x = static_cast<const T*>(q_.x.data) + image * sx[0] + channel * sx[1] + e0 * sx[2] + e1 * sx[3];
                  const int64_t* number =
                      static_cast<const int64_t*>(q_.indices.data) + image * si[0] + channel * si[1] + e0 * si[2] + e1 * si[3];
                  for (int64_t e2 = 0; e2 < q_.size[2]; ++e2) {
                    if (number[e2 * si[4]] < 0) continue;  // a window that saw nothing
                    T& to = y[number[e2 * si[4]] * sy[4]];
                    to = plus(to, x[e2 * sx[4]]);
                  }
                }
            }
          });
  }

  // Short rows of windows that see no regular places are not worth going through by rows: several channels at a time, a result of each.
  bool by_planes() const {
    constexpr int64_t kShort = 16;
    if (q_.op == Op::Pick || weighs_ || moves_ || q_.result[2] > kShort) return false;
    return std::any_of(runs_.begin(), runs_.end(), [](const Run& r) { return r.step == 0; });
  }
  void planes() const {
    constexpr int64_t kTogether = 8;
    const int64_t all = q_.batch * q_.channels, whole = all / kTogether;
    const double time = 0.3 * static_cast<double>(product(q_.sizes_of_y())) * static_cast<double>(places_[0] * places_[1] * places_[2]);
    split(whole + all % kTogether, time, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        if (i < whole)
          some_planes<kTogether>(i * kTogether);
        else
          some_planes<1>(whole * kTogether + i - whole);
    });
  }
  template <int64_t kPlanes>
  void some_planes(int64_t first) const {
    const auto &sx = q_.x.strides, &sy = q_.y.strides, &si = q_.indices.strides;
    const T* x[kPlanes];
    int64_t to[kPlanes], to_index[kPlanes];
    for (int64_t c = 0; c < kPlanes; ++c) {
      const int64_t image = (first + c) / q_.channels, channel = (first + c) % q_.channels;
      x[c] = static_cast<const T*>(q_.x.data) + image * sx[0] + channel * sx[1];
      to[c] = image * sy[0] + channel * sy[1], to_index[c] = image * si[0] + channel * si[1];
    }
    T value[kPlanes];
    int64_t place[kPlanes];
    for (int64_t p0 = 0; p0 < q_.result[0]; ++p0)
      for (int64_t p1 = 0; p1 < q_.result[1]; ++p1)
        for (int64_t p2 = 0; p2 < q_.result[2]; ++p2) {
          see<kPlanes>(x, p0, p1, p2, value, place);
          for (int64_t c = 0; c < kPlanes; ++c) {
            static_cast<T*>(q_.y.data)[to[c] + p0 * sy[2] + p1 * sy[3] + p2 * sy[4]] = value[c];
            if (q_.op == Op::Max) static_cast<int64_t*>(q_.indices.data)[to_index[c] + p0 * si[2] + p1 * si[3] + p2 * si[4]] = place[c];
          }
        }
  }
  // What one position of each plane sees.
  template <int64_t kPlanes>
  void see(const T* const (&x)[kPlanes], int64_t p0, int64_t p1, int64_t p2, T (&result)[kPlanes], int64_t (&numbers)[kPlanes]) const {
    T value[kPlanes];
    int64_t place[kPlanes];
    const bool sums = q_.op == Op::Sum;
    for (int64_t c = 0; c < kPlanes; ++c) value[c] = sums ? T(0) : least<T>(), place[c] = -1;
    each_outer(p0, p1, [&](int64_t i0, int64_t i1, T) {
      const int64_t row = i0 * q_.x.strides[2] + i1 * q_.x.strides[3], number = (i0 * q_.size[1] + i1) * q_.size[2];
      for (int64_t t = 0; t < places_[2]; ++t) {
        const int64_t i2 = index_[2][t * q_.result[2] + p2];
        if (i2 < 0) continue;
        const int64_t at = row + i2 * q_.x.strides[4];
        if (sums) {
#pragma GCC unroll 8
          for (int64_t c = 0; c < kPlanes; ++c) value[c] = plus<T>(value[c], x[c][at]);
          continue;
        }
#pragma GCC unroll 8
        for (int64_t c = 0; c < kPlanes; ++c) {
          const T v = x[c][at];
          if (v > value[c] || v != v || place[c] < 0) value[c] = v, place[c] = number + i2;
        }
      }
    });
    for (int64_t c = 0; c < kPlanes; ++c) result[c] = value[c], numbers[c] = place[c];
  }

  // Results and, for Max, their places, on this thread's scratch memory.
  struct Held {
    T* value;
    int64_t* place;
    Held(int64_t n, Op op) {
      place = reinterpret_cast<int64_t*>(scratch(static_cast<size_t>(n) * (sizeof(T) + 8) + 64));
      value = reinterpret_cast<T*>(place + n);
      std::fill_n(value, n, op == Op::Max ? least<T>() : T(0));
      if (op == Op::Max) std::fill_n(place, n, int64_t{-1});
    }
  };
  int64_t at(size_t d, int64_t place, int64_t p) const { return index_[d] ? index_[d][place * q_.result[d] + p] : p; }
  T weight(size_t d, int64_t place, int64_t p) const { return weight_[d] ? weight_[d][place * q_.result[d] + p] : T(1); }

  // f(index, index, weight of both) for each place of the first two dimensions that is there.
  template <class F>
  void each_outer(int64_t p0, int64_t p1, F f) const {
    for (int64_t t0 = 0; t0 < places_[0]; ++t0) {
      const int64_t i0 = at(0, t0, p0);
      for (int64_t t1 = 0; i0 >= 0 && t1 < places_[1]; ++t1)
        if (const int64_t i1 = at(1, t1, p1); i1 >= 0) f(i0, i1, weight(0, t0, p0) * weight(1, t1, p1));
    }
  }

  // Each position sees one element, as it is: nothing is held.
  bool moves() const { return q_.op == Op::Sum && !weighs_ && places_[0] * places_[1] * places_[2] == 1 && q_.y.strides[4] == 1; }
  static constexpr int64_t kFew = 8;  // are moved by themselves
  void moved_row(int64_t image, int64_t channel, int64_t p0, int64_t p1) const {
    const auto &s = q_.x.strides, &sy = q_.y.strides;
    const int64_t n = q_.result[2], i0 = at(0, 0, p0), i1 = at(1, 0, p1);
    T* y = static_cast<T*>(q_.y.data) + image * sy[0] + channel * sy[1] + p0 * sy[2] + p1 * sy[3];
    if (i0 < 0 || i1 < 0) return void(std::fill_n(y, n, T(0)));
    const T* x = static_cast<const T*>(q_.x.data) + image * s[0] + channel * s[1] + i0 * s[2] + i1 * s[3];
    int64_t done = 0;
    for (const Run& r : runs_) {
      std::fill(y + done, y + r.begin, T(0));
      done = r.end;
      if (r.end - r.begin > kFew) {
        move({r.first, r.step, s[4], index_[2] + r.begin}, x, r.end - r.begin, y + r.begin);
        continue;
      }
      for (int64_t p = r.begin; p < r.end; ++p) y[p] = index_[2][p] < 0 ? T(0) : plus<T>(T(0), x[index_[2][p] * s[4]]);
    }
    std::fill(y + done, y + n, T(0));
  }

  void row(int64_t image, int64_t channel, int64_t p0, int64_t p1) const {
    if (moves_) return moved_row(image, channel, p0, p1);
    const int64_t n = q_.result[2], move = q_.x.strides[4], index_move = q_.indices.strides[4];
    const Held held(n, q_.op);
    const auto &s = q_.x.strides, &si = q_.indices.strides;
    each_outer(p0, p1, [&](int64_t i0, int64_t i1, T scale) {
      const T* x = static_cast<const T*>(q_.x.data) + image * s[0] + channel * s[1] + i0 * s[2] + i1 * s[3];
      const int64_t* seen = static_cast<const int64_t*>(q_.indices.data) + image * si[0] + channel * si[1] + i0 * si[2] + i1 * si[3];
      const int64_t number = (i0 * q_.size[1] + i1) * q_.size[2], own = (p0 * q_.result[1] + p1) * n;
      for (const Run& r : runs_) {
        const int64_t* index = index_[2] + r.place * n;
        const T* w = weight_[2] ? weight_[2] + r.place * n : nullptr;
        const int64_t count = r.end - r.begin;
        const Places places{r.first, r.step, move, index + r.begin};
        if (q_.op == Op::Sum)
          add(places, x, w ? w + r.begin : nullptr, scale, weighs_, count, held.value + r.begin);
        else if (q_.op == Op::Max)
          greater(places, x, number, count, held.value + r.begin, held.place + r.begin);
        else
          pick(places, x, seen, index_move, own + r.begin, 1, count, held.value + r.begin);
      }
    });
    const auto& sy = q_.y.strides;
    T* y = static_cast<T*>(q_.y.data) + image * sy[0] + channel * sy[1] + p0 * sy[2] + p1 * sy[3];
    for (int64_t p = 0; p < n; ++p) y[p * sy[4]] = held.value[p];
    if (q_.op != Op::Max) return;
    int64_t* indices = static_cast<int64_t*>(q_.indices.data) + image * si[0] + channel * si[1] + p0 * si[2] + p1 * si[3];
    for (int64_t p = 0; p < n; ++p) indices[p * si[4]] = held.place[p];
  }

  void position(int64_t image, int64_t p0, int64_t p1, int64_t p2) const {
    const int64_t n = q_.channels;
    const Held held(n, q_.op);
    const auto &s = q_.x.strides, &si = q_.indices.strides;
    const int64_t own = (p0 * q_.result[1] + p1) * q_.result[2] + p2;
    each_outer(p0, p1, [&](int64_t i0, int64_t i1, T scale) {
      for (int64_t t = 0; t < places_[2]; ++t) {
        const int64_t i2 = at(2, t, p2);
        if (i2 < 0) continue;
        const T* x = static_cast<const T*>(q_.x.data) + image * s[0] + i0 * s[2] + i1 * s[3] + i2 * s[4];
        const Places channels{0, 1, 1, nullptr};
        if (q_.op == Op::Sum)
          add(channels, x, nullptr, weight_[2] ? scale * weight(2, t, p2) : scale, weighs_, n, held.value);
        else if (q_.op == Op::Max)
          greater(Places{(i0 * q_.size[1] + i1) * q_.size[2] + i2, 0, 1, nullptr}, x, 0, n, held.value, held.place);
        else
          pick(channels, x, static_cast<const int64_t*>(q_.indices.data) + image * si[0] + i0 * si[2] + i1 * si[3] + i2 * si[4], 1, own, 0,
               n, held.value);
      }
    });
    const auto& sy = q_.y.strides;
    std::copy_n(held.value, n, static_cast<T*>(q_.y.data) + image * sy[0] + p0 * sy[2] + p1 * sy[3] + p2 * sy[4]);
    if (q_.op == Op::Max)
      std::copy_n(held.place, n, static_cast<int64_t*>(q_.indices.data) + image * si[0] + p0 * si[2] + p1 * si[3] + p2 * si[4]);
  }

  const Windows& q_;
  const int64_t* index_[3];
  const T* weight_[3];
  int64_t places_[3];
  bool weighs_ = false, moves_ = false;
  std::vector<int64_t> own_;  // positions, where the last dimension has no table
  std::vector<Run> runs_;     // of the places of the last dimension, in their order
};

Dims dims_of(const std::array<int64_t, 5>& a) { return Dims(std::span<const int64_t>(a)); }

// x (and y) as arrays of the type computed in.
void run_converted(const Windows& asked, DType wide) {
  const size_t item = size_of(wide);
  Windows q = asked;
  q.dtype = q.out = wide;
  // In the order of the given strides, so that neighbours stay neighbours.
  const bool last = asked.x.strides[1] == 1 && asked.channels > 1;
  const auto plain = [&](const std::array<int64_t, 5>& s) -> std::array<int64_t, 5> {
    const int64_t c = s[1], d = s[2], h = s[3], w = s[4];
    if (last) return {c * d * h * w, 1, h * w * c, w * c, c};
    return {c * d * h * w, d * h * w, h * w, w, 1};
  };
  Buffer held[2];
  const auto convert_to = [&](Windows::Array& a, const std::array<int64_t, 5>& sizes, Buffer& to) {
    to = make_buffer({product(sizes)}, item);
    a = {to.get(), plain(sizes)};
  };
  if (asked.dtype != wide) {
    convert_to(q.x, q.sizes_of_x(), held[0]);
    run(ir::copy_of(dims_of(q.sizes_of_x()), {asked.x.data, asked.dtype, dims_of(asked.x.strides)},
                    {q.x.data, wide, dims_of(q.x.strides)}));
  }
  if (asked.out != wide) convert_to(q.y, q.sizes_of_y(), held[1]);
  run(q);
  if (asked.out != wide)
    run(ir::copy_of(dims_of(q.sizes_of_y()), {q.y.data, wide, dims_of(q.y.strides)}, {asked.y.data, asked.out, dims_of(asked.y.strides)}));
}

}  // namespace

void run(const Windows& q) {
  if (product(q.sizes_of_y()) == 0) return;
  constexpr PerDType<DType> kWide{DType::I32, DType::I32, DType::I32, DType::I32, DType::I32,
                                  DType::I64, DType::F32, DType::F32, DType::F32, DType::F64};
  const DType wide = kWide[q.dtype];
  if (q.dtype != wide || q.out != wide) return run_converted(q, wide);
  switch (wide) {
    case DType::F32:
      return Job<float>(q).run();
    case DType::F64:
      return Job<double>(q).run();
    case DType::I32:
      return Job<int32_t>(q).run();
    default:
      return Job<int64_t>(q).run();
  }
}

}  // namespace naru::host
