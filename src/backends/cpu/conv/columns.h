// im2col for convolutions: the source element that each position reads for each tap of the kernel, and column matrices of those elements.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "ir/instruction.h"

namespace naru::cpu {

// One spatial dimension. Position t writes target element first + t * stride. For tap k it reads source element t * step + offset[k];
// outside [0, size) it reads 0. place[k] is the tap's index in the kernel.
struct Axis {
  int64_t count = 1, first = 0, stride = 1;
  int64_t step = 1, size = 1;
  std::vector<int64_t> place, offset;
  int64_t taps() const noexcept { return static_cast<int64_t>(place.size()); }
};

// Positions that read the source through the same taps.
struct Phase {
  std::array<Axis, 3> axis;
  int64_t positions = 0, taps = 0;
  int64_t weights = 0;  // offset of its packed weights
};

// Computing y from x (Forward) or w (Weight) has one phase. Computing x from y (Input) has one phase for each remainder of a position
// modulo the stride.
std::vector<Phase> phases_of(const ir::Convolution& q);

// Depthwise convolution of float32 (forward and input gradient), for results stored in rows. Returns false, and does nothing, if it does
// not support q.
bool depthwise(const ir::Convolution& q);
// The same for images that lie channels last.
bool depthwise_last(const ir::Convolution& q);
// A pointwise convolution of float32 by products of a library. Returns false, and does nothing, if it is none that this serves.
bool pointwise(const ir::Convolution& q);

// A channel's elements and their strides.
template <class T>
struct Source {
  const T* data;
  int64_t channel;
  std::array<int64_t, 3> strides;
};

template <class T>
void gather_run(const T* from, int64_t move, int64_t n, T* to) {
  if (move == 1) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * move];
  }
}

// Gathers positions [t, t + n) of the innermost dimension from one source row, which must exist.
template <class T>
void gather_row(const Axis& a, int64_t offset, int64_t t, int64_t n, const T* row, int64_t stride, T* to) {
  // Positions inside the source: 0 <= position * step + offset < size.
  int64_t begin = offset >= 0 ? 0 : (-offset + a.step - 1) / a.step;
  int64_t end = a.size <= offset ? 0 : (a.size - 1 - offset) / a.step + 1;
  begin = begin < t ? t : begin > t + n ? t + n : begin;
  end = end > t + n ? t + n : end < begin ? begin : end;
  for (int64_t i = t; i < begin; ++i) *to++ = T(0);
  if (end > begin) gather_run(row + (begin * a.step + offset) * stride, a.step * stride, end - begin, to);
  to += end - begin;
  for (int64_t i = end; i < t + n; ++i) *to++ = T(0);
}

// Gathers rows [first, first + rows) of the column matrix (a row is a channel and a tap; the tap varies fastest), positions [from, from +
// n) of each. Rows are `ld` elements apart.
template <class T>
void gather_windows(const Phase& p, const Source<T>& source, int64_t first, int64_t rows, int64_t from, int64_t n, T* to, int64_t ld) {
  const Axis &d = p.axis[0], &h = p.axis[1], &w = p.axis[2];
  for (int64_t r = first; r < first + rows; ++r, to += ld) {
    const int64_t tap = r % p.taps;
    const size_t kw = static_cast<size_t>(tap % w.taps()), kh = static_cast<size_t>(tap / w.taps() % h.taps()),
                 kd = static_cast<size_t>(tap / w.taps() / h.taps());
    const T* channel = source.data + r / p.taps * source.channel;
    int64_t tw = from % w.count, th = from / w.count % h.count, td = from / w.count / h.count;
    T* at = to;
    for (int64_t left = n; left > 0;) {
      const int64_t run = w.count - tw < left ? w.count - tw : left;
      const int64_t id = td * d.step + d.offset[kd], ih = th * h.step + h.offset[kh];
      if (id < 0 || id >= d.size || ih < 0 || ih >= h.size)
        std::memset(at, 0, static_cast<size_t>(run) * sizeof(T));
      else
        gather_row(w, w.offset[kw], tw, run, channel + id * source.strides[0] + ih * source.strides[1], source.strides[2], at);
      at += run, left -= run, tw = 0;
      if (++th == h.count) th = 0, ++td;
    }
  }
}

// True if the column matrix would equal the source: there is one tap, and each position reads its own element (a 1x1 convolution).
inline bool is_pointwise(const Phase& p) {
  for (const Axis& a : p.axis)
    if (a.taps() != 1 || a.offset[0] != 0 || a.count != a.size || (a.step != 1 && a.count != 1)) return false;
  return true;
}

// Calls f(source element, stride, i, count) for each run of positions in [from, from + n) that have the tap: the run starts at position
// `from` + i, reads `count` elements from that source element on, and has the given stride.
template <class F>
void each_run(const Phase& p, const std::array<int64_t, 3>& strides, int64_t tap, int64_t from, int64_t n, F f) {
  const Axis &d = p.axis[0], &h = p.axis[1], &w = p.axis[2];
  const int64_t ow = w.offset[static_cast<size_t>(tap % w.taps())], oh = h.offset[static_cast<size_t>(tap / w.taps() % h.taps())],
                od = d.offset[static_cast<size_t>(tap / w.taps() / h.taps())];
  // Positions of a row that are inside the source: 0 <= t * step + ow < size.
  const int64_t least = ow >= 0 ? 0 : (-ow + w.step - 1) / w.step, most = w.size <= ow ? 0 : (w.size - 1 - ow) / w.step + 1;
  int64_t tw = from % w.count, th = from / w.count % h.count, td = from / w.count / h.count;
  for (int64_t i = 0; i < n;) {
    const int64_t end = tw + (w.count - tw < n - i ? w.count - tw : n - i);
    const int64_t id = td * d.step + od, ih = th * h.step + oh, first = tw > least ? tw : least, last = end < most ? end : most;
    if (id >= 0 && id < d.size && ih >= 0 && ih < h.size && first < last)
      f(id * strides[0] + ih * strides[1] + (first * w.step + ow) * strides[2], w.step * strides[2], i + first - tw, last - first);
    i += end - tw, tw = 0;
    if (++th == h.count) th = 0, ++td;
  }
}

}  // namespace naru::cpu
