// Sums and maxima over windows (ir::Windows). Computes a row of results at a time; with channels-last layouts, the channels of a position
// at a time.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "backends/cpu/conv/window_rows.h"
#include "backends/cpu/exec/buffer.h"
#include "backends/cpu/exec/instructions.h"
#include "backends/cpu/exec/kernels.h"
#include "backends/cpu/exec/layout.h"
#include "backends/cpu/gemm/product_types.h"
#include "naru/error.h"

namespace naru::cpu {
namespace {

using ir::Windows;
using Op = Windows::Op;

// One kernel position along the last dimension, for the positions [begin, end) for which it exists: it reads element first + (p - begin) *
// step, or the table's element if step is 0.
struct Run {
  int64_t begin = 0, end = 0, first = 0, step = 0, place = 0;
};

// Detects a constant step in a row of the table.
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

// Adds the positions for which the kernel position exists. With a constant step they are one run. Otherwise the longest run of consecutive
// elements (the middle of a padded image) becomes a separate run.
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
    moves_ = moves();
    channels_last_ = q.channels > 1 && q.x.strides[1] == 1 && q.y.strides[1] == 1 && (q.op == Op::Sum || q.indices.strides[1] == 1) &&
                     product(q.size) < std::numeric_limits<int32_t>::max();
    planes_ = !q.apart && by_planes();
    for (int64_t t = 0; t < places_[2] && !planes_ && !channels_last_; ++t) add_runs(index_[2] + t * q.result[2], q.result[2], t, runs_);
    step_ = q.op == Op::Max && product(q.size) < std::numeric_limits<int32_t>::max() ? common_step() : 0;
  }

  void run() const {
    const auto& r = q_.result;
    if (q_.op == Op::Pick && spread_evenly()) return channels_last_ ? scatter<64>() : scatter<1>();
    if (planes_) return planes();
    if (q_.apart) return apart();
    const double time = 0.6 * static_cast<double>(product(q_.sizes_of_y())) * static_cast<double>(places_[0] * places_[1] * places_[2]);
    if (channels_last_)
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
  // True if y's positions have one common stride.
  bool spread_evenly() const {
    const auto& s = q_.y.strides;
    return (s[3] == s[4] * q_.result[2] || q_.result[1] == 1) && (s[2] == s[4] * q_.result[2] * q_.result[1] || q_.result[0] == 1);
  }
  // Pick in the opposite direction: adds each x to the position that its index names, for kTogether neighbouring channels at once, whose
  // elements must be neighbours in memory if they are several. The order of additions is the same.
  template <int64_t kTogether>
  void scatter() const {
    const int64_t positions = q_.result[0] * q_.result[1] * q_.result[2], seen = q_.size[0] * q_.size[1] * q_.size[2];
    const int64_t groups = (q_.channels + kTogether - 1) / kTogether;
    const auto &sx = q_.x.strides, &sy = q_.y.strides, &si = q_.indices.strides;
    split(q_.batch * groups, 2.0 * static_cast<double>(q_.batch * q_.channels * (positions + seen)), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t image = i / groups, first = i % groups * kTogether, n = std::min(kTogether, q_.channels - first);
        T* const y = static_cast<T*>(q_.y.data) + image * sy[0] + first * sy[1];
        for (int64_t p = 0; p < positions; ++p) std::fill_n(y + p * sy[4], n, T(0));
        for (int64_t e0 = 0; e0 < q_.size[0]; ++e0)
          for (int64_t e1 = 0; e1 < q_.size[1]; ++e1)
            for (int64_t e2 = 0; e2 < q_.size[2]; ++e2) {
              const T* x = static_cast<const T*>(q_.x.data) + image * sx[0] + first * sx[1] + e0 * sx[2] + e1 * sx[3] + e2 * sx[4];
              const int64_t* number =
                  static_cast<const int64_t*>(q_.indices.data) + image * si[0] + first * si[1] + e0 * si[2] + e1 * si[3] + e2 * si[4];
              for (int64_t c = 0; c < n; ++c) {
                if (number[c] < 0) continue;  // a window without elements
                T& to = y[number[c] * sy[4] + c];
                to = plus(to, x[c]);
              }
            }
      }
    });
  }

  // True if results are computed for kPlanes channels at once. Short rows are not worth a loop each. Requires windows of contiguous
  // elements.
  bool by_planes() {
    return q_.op != Op::Pick && !weighs_ && !moves_ && !channels_last_ && q_.result[2] <= kShort &&
           product(q_.size) < std::numeric_limits<int32_t>::max() && windows_of_last();
  }
  // Sets the first and the end element of each window of the last dimension; false if one has gaps.
  bool windows_of_last() {
    for (int64_t p = 0; p < q_.result[2]; ++p) {
      ElementRange& w = windows_[static_cast<size_t>(p)] = {};
      for (int64_t t = 0; t < places_[2]; ++t) {
        const int64_t e = index_[2][t * q_.result[2] + p];
        if (e < 0) continue;
        if (w.begin == w.end) w.begin = w.end = e;
        if (e != w.end++) return false;
      }
    }
    return true;
  }
  void planes() const {
    const int64_t all = q_.batch * q_.channels, groups = (all + kPlanes - 1) / kPlanes, rows = q_.result[0] * q_.result[1];
    const double time = 0.3 * static_cast<double>(product(q_.sizes_of_y())) * static_cast<double>(places_[0] * places_[1] * places_[2]);
    split(groups * rows, time, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) planes_row(i / rows * kPlanes, i % rows / q_.result[1], i % rows % q_.result[1]);
    });
  }
  // Computes a row of results of kPlanes channels. Repeats the last channel if there are fewer.
  void planes_row(int64_t first, int64_t p0, int64_t p1) const {
    const auto &sx = q_.x.strides, &sy = q_.y.strides, &si = q_.indices.strides;
    const int64_t count = std::min(kPlanes, q_.batch * q_.channels - first), n = q_.result[2];
    const T* x[kPlanes];
    int64_t to[kPlanes], to_index[kPlanes];
    for (int64_t c = 0; c < kPlanes; ++c) {
      const int64_t plane = first + std::min(c, count - 1), image = plane / q_.channels, channel = plane % q_.channels;
      x[c] = static_cast<const T*>(q_.x.data) + image * sx[0] + channel * sx[1];
      to[c] = image * sy[0] + channel * sy[1] + p0 * sy[2] + p1 * sy[3];
      to_index[c] = image * si[0] + channel * si[1] + p0 * si[2] + p1 * si[3];
    }
    // Scratch memory: the rows that the windows read, then the results.
    char* const memory = scratch(static_cast<size_t>(n * kPlanes) * (sizeof(T) + 4) + static_cast<size_t>(places_[0] * places_[1]) * 16);
    auto* const seen = reinterpret_cast<PlaneRow*>(memory);
    int64_t rows = 0;
    each_outer(p0, p1, [&](int64_t i0, int64_t i1, T) { seen[rows++] = {i0 * sx[2] + i1 * sx[3], (i0 * q_.size[1] + i1) * q_.size[2]}; });
    T* const value = reinterpret_cast<T*>(seen + places_[0] * places_[1]);
    auto* const place = reinterpret_cast<int32_t*>(value + n * kPlanes);
    const PlaneWindows windows{seen, rows, windows_.data(), n, sx[4]};
    if (q_.op == Op::Sum)
      plane_sums(x, windows, value);
    else
      plane_maxima(x, windows, value, place);
    for (int64_t c = 0; c < count; ++c) {
      T* const y = static_cast<T*>(q_.y.data) + to[c];
      for (int64_t p = 0; p < n; ++p) y[p * sy[4]] = value[p * kPlanes + c];
      if (q_.op != Op::Max) continue;
      int64_t* const indices = static_cast<int64_t*>(q_.indices.data) + to_index[c];
      for (int64_t p = 0; p < n; ++p) indices[p * si[4]] = place[p * kPlanes + c];
    }
  }

  // Results and, for Max, their positions, in this thread's scratch memory.
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

  // Calls f(index, index, product of both weights) for each existing kernel position of the first two dimensions.
  template <class F>
  void each_outer(int64_t p0, int64_t p1, F f) const {
    for (int64_t t0 = 0; t0 < places_[0]; ++t0) {
      const int64_t i0 = at(0, t0, p0);
      for (int64_t t1 = 0; i0 >= 0 && t1 < places_[1]; ++t1)
        if (const int64_t i1 = at(1, t1, p1); i1 >= 0) f(i0, i1, weight(0, t0, p0) * weight(1, t1, p1));
    }
  }

  // True if each position copies one element: the results need no accumulators.
  bool moves() const { return q_.op == Op::Sum && !weighs_ && places_[0] * places_[1] * places_[2] == 1 && q_.y.strides[4] == 1; }
  static constexpr int64_t kFew = 8;  // copied by a simple loop
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

  // The step of all runs; 0 if they differ, or have none.
  int64_t common_step() const {
    int64_t step = 0;
    for (const Run& r : runs_) {
      if (r.end - r.begin <= 1) continue;
      if (r.step <= 0 || (step != 0 && step != r.step)) return 0;
      step = r.step;
    }
    return std::max<int64_t>(step, 1);
  }
  // Max where all runs have one step. Rows of x are taken apart by the step, so that what a run reads are neighbours.
  void maxima_row(int64_t image, int64_t channel, int64_t p0, int64_t p1) const {
    using Number = ElementNumber<T>;
    const int64_t n = q_.result[2], each = (q_.size[2] + step_ - 1) / step_, rows = places_[0] * places_[1];
    const auto &s = q_.x.strides, &sy = q_.y.strides, &si = q_.indices.strides;
    const bool copies = step_ > 1 || s[4] != 1;
    const size_t listed = static_cast<size_t>(rows) * runs_.size() * sizeof(RowElement<T>);
    char* const memory = scratch(listed + static_cast<size_t>(n) * (sizeof(T) + sizeof(Number)) +
                                 (copies ? static_cast<size_t>(rows * each * step_) * sizeof(T) : 0));
    auto* const elements = reinterpret_cast<RowElement<T>*>(memory);
    T* const best = reinterpret_cast<T*>(memory + listed);
    auto* const place = reinterpret_cast<Number*>(best + n);
    T* parts = reinterpret_cast<T*>(place + n);
    int64_t count = 0;
    each_outer(p0, p1, [&](int64_t i0, int64_t i1, T) {
      const T* x = static_cast<const T*>(q_.x.data) + image * s[0] + channel * s[1] + i0 * s[2] + i1 * s[3];
      const int64_t number = (i0 * q_.size[1] + i1) * q_.size[2];
      if (copies) cpu::apart(x, s[4], q_.size[2], step_, each, parts);
      for (const Run& r : runs_)
        if (r.begin < r.end)
          elements[count++] = {(copies ? parts + r.first % step_ * each + r.first / step_ : x + r.first) - r.begin,
                               number + r.first - r.begin * step_, r.begin, r.end};
      if (copies) parts += each * step_;
    });
    cpu::row_maxima(elements, count, step_, n, best, place);
    T* const y = static_cast<T*>(q_.y.data) + image * sy[0] + channel * sy[1] + p0 * sy[2] + p1 * sy[3];
    auto* const indices = static_cast<int64_t*>(q_.indices.data) + image * si[0] + channel * si[1] + p0 * si[2] + p1 * si[3];
    for (int64_t p = 0; p < n; ++p) y[p * sy[4]] = best[p];
    for (int64_t p = 0; p < n; ++p) indices[p * si[4]] = place[p];
  }

  void row(int64_t image, int64_t channel, int64_t p0, int64_t p1) const {
    if (moves_) return moved_row(image, channel, p0, p1);
    if (step_ > 0) return maxima_row(image, channel, p0, p1);
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

  // The results of one position, all channels.
  void position(int64_t image, int64_t p0, int64_t p1, int64_t p2) const {
    const int64_t n = q_.channels;
    const auto &s = q_.x.strides, &sy = q_.y.strides, &si = q_.indices.strides;
    T* const y = static_cast<T*>(q_.y.data) + image * sy[0] + p0 * sy[2] + p1 * sy[3] + p2 * sy[4];
    const T* const x = static_cast<const T*>(q_.x.data) + image * s[0];
    auto* const elements = reinterpret_cast<ChannelElement<T>*>(
        scratch(static_cast<size_t>(places_[0] * places_[1] * places_[2]) * sizeof(ChannelElement<T>)));
    int64_t count = 0;
    each_outer(p0, p1, [&](int64_t i0, int64_t i1, T scale) {
      for (int64_t t = 0; t < places_[2]; ++t)
        if (const int64_t i2 = at(2, t, p2); i2 >= 0)
          elements[count++] = {i0 * s[2] + i1 * s[3] + i2 * s[4], (i0 * q_.size[1] + i1) * q_.size[2] + i2, scale * weight(2, t, p2)};
    });
    if (q_.op == Op::Sum) return channel_sums(x, elements, count, weighs_, n, y);
    if (q_.op == Op::Pick) {
      const int64_t own = (p0 * q_.result[1] + p1) * q_.result[2] + p2;
      const auto* const seen = static_cast<const int64_t*>(q_.indices.data) + image * si[0];
      std::fill_n(y, n, T(0));
      for (int64_t k = 0; k < count; ++k) {
        const int64_t number = elements[k].number, i2 = number % q_.size[2], i1 = number / q_.size[2] % q_.size[1];
        const int64_t i0 = number / q_.size[2] / q_.size[1];
        pick({0, 1, 1, nullptr}, x + elements[k].offset, seen + i0 * si[2] + i1 * si[3] + i2 * si[4], 1, own, 0, n, y);
      }
      return;
    }
    auto* const place = static_cast<int64_t*>(q_.indices.data) + image * si[0] + p0 * si[2] + p1 * si[3] + p2 * si[4];
    if (count > 0) return channel_maxima(x, elements, count, n, y, place);
    std::fill_n(y, n, least<T>());
    std::fill_n(place, n, int64_t{-1});
  }

  // How many neighbouring elements of a dimension, at most, a position reads; in terms of their numbers.
  int64_t reach(size_t d) const {
    int64_t most = 1;
    for (int64_t p = 0; p < q_.result[d] && index_[d]; ++p) {
      int64_t first = std::numeric_limits<int64_t>::max(), last = -1;
      for (int64_t t = 0; t < places_[d]; ++t)
        if (const int64_t e = at(d, t, p); e >= 0) first = std::min(first, e), last = std::max(last, e);
      most = std::max(most, last - first + 1);
    }
    return most;
  }
  // The elements of each position of the last dimension, for channel_sums.
  std::pair<std::vector<ChannelElement<T>>, std::vector<int64_t>> elements_of_last() const {
    std::pair<std::vector<ChannelElement<T>>, std::vector<int64_t>> found;
    for (int64_t p = 0; p < q_.result[2]; ++p) {
      found.second.push_back(static_cast<int64_t>(found.first.size()));
      for (int64_t t = 0; t < places_[2]; ++t)
        if (const int64_t e = at(2, t, p); e >= 0) found.first.push_back({e * q_.x.strides[4], 0, weight(2, t, p)});
    }
    found.second.push_back(static_cast<int64_t>(found.first.size()));
    return found;
  }

  // Sums over one dimension after the other, the last one first. A row of x is summed over the last dimension once: the result is kept for
  // the rows of y that read it, in a slot of its own among those that one row of y reads.
  void apart() const {
    const auto& r = q_.result;
    const auto &sx = q_.x.strides, &sy = q_.y.strides;
    const int64_t together = channels_last_ ? q_.channels : 1, length = r[2] * together;
    const int64_t reach0 = reach(0), reach1 = reach(1), rows = r[0] * r[1];
    const bool in_place = sy[4] == together || r[2] == 1;
    const auto [last, last_begin] = channels_last_ ? elements_of_last() : decltype(elements_of_last())();
    const double time = 0.3 * static_cast<double>(product(q_.sizes_of_y())) * static_cast<double>(places_[0] * places_[1] + places_[2]);
    split(q_.batch * q_.channels / together * rows, time, 1, [&](int64_t begin, int64_t end) {
      const int64_t slots = reach0 * reach1, lists = places_[0] + places_[1];
      char* const memory = scratch(static_cast<size_t>(lists) * sizeof(ChannelElement<T>) +
                                   static_cast<size_t>((slots + places_[0] + 1) * length) * sizeof(T) + 64);
      auto* const outer = reinterpret_cast<ChannelElement<T>*>(memory);
      auto* const middle = outer + places_[0];
      T* const kept = reinterpret_cast<T*>(middle + places_[1]);  // the slots, a sum for each place of the first dimension, a row of y
      std::vector<int64_t> holds(static_cast<size_t>(slots), -1);
      const auto summed = [&](const T* x, int64_t plane, int64_t i0, int64_t i1) {
        const int64_t slot = i0 % reach0 * reach1 + i1 % reach1, row = (plane * q_.size[0] + i0) * q_.size[1] + i1;
        if (std::exchange(holds[static_cast<size_t>(slot)], row) == row) return slot;
        T* const to = kept + slot * length;
        x += i0 * sx[2] + i1 * sx[3];
        if (channels_last_) {
          for (int64_t p = 0; p < r[2]; ++p) {
            const auto first = last_begin[static_cast<size_t>(p)];
            channel_sums(x, last.data() + first, last_begin[static_cast<size_t>(p) + 1] - first, weight_[2] != nullptr, q_.channels,
                         to + p * q_.channels);
          }
          return slot;
        }
        std::fill_n(to, length, T(0));
        for (const Run& run : runs_) {
          const T* const w = weight_[2] ? weight_[2] + run.place * r[2] + run.begin : nullptr;
          add({run.first, run.step, sx[4], index_[2] + run.place * r[2] + run.begin}, x, w, T(1), w != nullptr, run.end - run.begin,
              to + run.begin);
        }
        return slot;
      };
      for (int64_t i = begin; i < end; ++i) {
        const int64_t plane = i / rows, p0 = i % rows / r[1], p1 = i % r[1];
        const int64_t image = channels_last_ ? plane : plane / q_.channels, channel = channels_last_ ? 0 : plane % q_.channels;
        const T* const x = static_cast<const T*>(q_.x.data) + image * sx[0] + channel * sx[1];
        T* const y = static_cast<T*>(q_.y.data) + image * sy[0] + channel * sy[1] + p0 * sy[2] + p1 * sy[3];
        T* const result = in_place ? y : kept + (slots + places_[0]) * length;
        int64_t count = 0;
        for (int64_t t0 = 0; t0 < places_[0]; ++t0) {
          const int64_t i0 = at(0, t0, p0);
          if (i0 < 0) continue;
          int64_t in_middle = 0;
          for (int64_t t1 = 0; t1 < places_[1]; ++t1)
            if (const int64_t i1 = at(1, t1, p1); i1 >= 0) middle[in_middle++] = {summed(x, plane, i0, i1) * length, 0, weight(1, t1, p1)};
          T* const to = index_[0] ? kept + (slots + count) * length : result;
          channel_sums(kept, middle, in_middle, weight_[1] != nullptr, length, to);
          outer[count] = {(slots + count) * length, 0, weight(0, t0, p0)};
          ++count;
        }
        if (index_[0]) channel_sums(kept, outer, count, weight_[0] != nullptr, length, result);
        for (int64_t p = 0; p < r[2] && !in_place; ++p) std::copy_n(result + p * together, together, y + p * sy[4]);
      }
    });
  }

  const Windows& q_;
  const int64_t* index_[3];
  const T* weight_[3];
  int64_t places_[3];
  bool weighs_ = false, moves_ = false, channels_last_ = false, planes_ = false;
  std::vector<int64_t> own_;  // identity table, if the last dimension has none
  std::vector<Run> runs_;     // of the kernel positions of the last dimension, in order
  int64_t step_ = 0;          // of all runs of a maximum, if they have one
  static constexpr int64_t kShort = 16;
  std::array<ElementRange, kShort> windows_;  // of the last dimension, if planes_ is set
};

Dims dims_of(const std::array<int64_t, 5>& a) { return Dims(std::span<const int64_t>(a)); }

// Converts x, y and indices to arrays of the types that are computed in. Indices that are not asked for are computed, too.
void run_converted(const Windows& asked, DType wide) {
  const size_t item = size_of(wide);
  Windows q = asked;
  q.dtype = q.out = wide;
  q.index = DType::I64;
  const bool converts_index = asked.op != Op::Sum && (asked.index != DType::I64 || !asked.indices.data);
  const auto sizes_of_indices = asked.op == Op::Max ? asked.sizes_of_y() : asked.sizes_of_x();
  // Keep the order of the given strides, so that contiguous elements stay contiguous.
  const bool last = asked.x.strides[1] == 1 && asked.channels > 1;
  const auto plain = [&](const std::array<int64_t, 5>& s) -> std::array<int64_t, 5> {
    const int64_t c = s[1], d = s[2], h = s[3], w = s[4];
    if (last) return {c * d * h * w, 1, h * w * c, w * c, c};
    return {c * d * h * w, d * h * w, h * w, w, 1};
  };
  Buffer held[3];
  const auto convert_to = [&](Windows::Array& a, const std::array<int64_t, 5>& sizes, Buffer& to, size_t bytes) {
    to = make_buffer({product(sizes)}, bytes);
    a = {to.get(), plain(sizes)};
  };
  const auto copy = [](const std::array<int64_t, 5>& sizes, const Windows::Array& from, DType of, const Windows::Array& to, DType as) {
    run(ir::copy_of(dims_of(sizes), {from.data, of, dims_of(from.strides)}, {to.data, as, dims_of(to.strides)}));
  };
  if (asked.dtype != wide) {
    convert_to(q.x, q.sizes_of_x(), held[0], item);
    copy(q.sizes_of_x(), asked.x, asked.dtype, q.x, wide);
  }
  if (asked.out != wide) convert_to(q.y, q.sizes_of_y(), held[1], item);
  if (converts_index) {
    convert_to(q.indices, sizes_of_indices, held[2], 8);
    if (asked.op == Op::Pick) copy(sizes_of_indices, asked.indices, asked.index, q.indices, DType::I64);
  }
  run(q);
  if (asked.out != wide) copy(q.sizes_of_y(), q.y, wide, asked.y, asked.out);
  if (converts_index && asked.op == Op::Max && asked.indices.data)
    copy(sizes_of_indices, q.indices, DType::I64, asked.indices, asked.index);
}

}  // namespace

void run(const Windows& q) {
  if (product(q.sizes_of_y()) == 0) return;
  constexpr PerDType<DType> kWide{DType::I32, DType::I32, DType::I32, DType::I32, DType::I32,
                                  DType::I64, DType::F32, DType::F32, DType::F32, DType::F64};
  const DType wide = kWide[q.dtype];
  const bool lacks_indices = q.op == Op::Max && !q.indices.data;
  if (q.dtype != wide || q.out != wide || q.index != DType::I64 || lacks_indices) return run_converted(q, wide);
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

}  // namespace naru::cpu
