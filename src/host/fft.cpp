// Fourier transforms: rows side by side, as many as a processor's vectors like, each on one thread.
#include <algorithm>
#include <vector>

#include "host/buffer.h"
#include "host/fft_plan.h"
#include "host/instructions.h"
#include "host/layout.h"

namespace naru::host {
namespace {

using ir::Fft;

// One block of rows, while it is transformed. `line`: the plan's length; n / 2 where two real numbers count as a complex one.
template <class T>
struct Block {
  const Fft& op;
  int64_t line, lanes;
  Lanes<T> x;
  const T* const* from;
  T* const* to;
  const T* roots;  // of packed real rows: exp(-2 pi i k / n), k <= n / 2, as pairs

  // Places of a row are walked over a few at a time, so that neither side is left for long.
  template <class F>
  void each(int64_t count, F f) const {
    constexpr int64_t kFew = 16;
    for (int64_t first = 0; first < count; first += kFew)
      for (int64_t l = 0; l < lanes; ++l)
        for (int64_t k = first; k < std::min(first + kFew, count); ++k) f(k, l, k * lanes + l);
  }

  void load_complex() const {
    T* const re = op.inverse ? x.im : x.re;
    T* const im = op.inverse ? x.re : x.im;
    each(line, [&](int64_t k, int64_t l, int64_t at) {
      const T* const p = from[l] + k * op.in.step;
      re[at] = p[0], im[at] = p[1];
    });
  }
  void store_complex() const {
    const T* const re = op.inverse ? x.im : x.re;
    const T* const im = op.inverse ? x.re : x.im;
    const T scale = static_cast<T>(op.scale);
    each(line, [&](int64_t k, int64_t l, int64_t at) {
      T* const p = to[l] + k * op.out.step;
      p[0] = re[at] * scale, p[1] = im[at] * scale;
    });
  }

  // Real rows of odd length: complex ones whose imaginary parts are 0. Of even length: element 2 k and 2 k + 1 are number k.
  void load_real() const {
    const bool packed = line != op.n;
    each(line, [&](int64_t k, int64_t l, int64_t at) {
      const T* const p = from[l] + k * op.in.step * (packed ? 2 : 1);
      x.re[at] = p[0], x.im[at] = packed ? p[op.in.step] : T{0};
    });
  }
  void store_half() const {
    const T scale = static_cast<T>(op.scale), sign = op.inverse ? T{-1} : T{1};
    const bool packed = line != op.n;
    each(op.made(), [&](int64_t k, int64_t l, int64_t at) {
      T re = x.re[packed && k == line ? l : at], im = x.im[packed && k == line ? l : at];
      if (packed) {
        // Z_k = E_k + i O_k, of which the conjugate of Z_(line - k) tells both apart.
        const int64_t other = (k == 0 ? 0 : line - k) * lanes + l;
        const T a = x.re[other], b = -x.im[other];
        const T even_re = (re + a) / 2, even_im = (im + b) / 2, odd_re = (im - b) / 2, odd_im = (a - re) / 2;
        const T c = roots[2 * k], s = roots[2 * k + 1];
        re = even_re + (odd_re * c - odd_im * s), im = even_im + (odd_re * s + odd_im * c);
      }
      T* const p = to[l] + k * op.out.step;
      p[0] = re * scale, p[1] = im * (scale * sign);
    });
  }

  // What an inverse transform takes: exchanged parts do the inverse. Forwards, the conjugates are taken first.
  void load_half() const {
    const T sign = op.inverse ? T{1} : T{-1};
    const auto part = [&](int64_t l, int64_t k, T& re, T& im) {
      const T* const p = from[l] + k * op.in.step;
      re = p[0], im = k == 0 || 2 * k == op.n ? T{0} : p[1] * sign;
    };
    const bool packed = line != op.n;
    each(line, [&](int64_t k, int64_t l, int64_t at) {
      T re, im, a, b;
      if (!packed) {
        const bool second = 2 * k > op.n;
        part(l, second ? op.n - k : k, re, im);
        x.im[at] = re, x.re[at] = second ? -im : im;
        return;
      }
      part(l, k, re, im), part(l, line - k, a, b);
      const T even_re = re + a, even_im = im - b, odd_re = re - a, odd_im = im + b;
      const T c = roots[2 * k], s = -roots[2 * k + 1];
      const T turned_re = odd_re * c - odd_im * s, turned_im = odd_re * s + odd_im * c;
      x.im[at] = even_re - turned_im, x.re[at] = even_im + turned_re;
    });
  }
  void store_real() const {
    const T scale = static_cast<T>(op.scale);
    const bool packed = line != op.n;
    each(line, [&](int64_t k, int64_t l, int64_t at) {
      T* const p = to[l] + k * op.out.step * (packed ? 2 : 1);
      p[0] = x.im[at] * scale;
      if (packed) p[op.out.step] = x.re[at] * scale;
    });
  }

  void load() const { op.kind == Fft::Kind::Complex ? load_complex() : op.kind == Fft::Kind::RealToHalf ? load_real() : load_half(); }
  void store() const { op.kind == Fft::Kind::Complex ? store_complex() : op.kind == Fft::Kind::RealToHalf ? store_half() : store_real(); }
};

template <class T>
std::vector<T> roots_of(const Fft& op, int64_t line) {
  std::vector<T> roots;
  for (int64_t k = 0; line != op.n && k <= line; ++k) {
    const Unit w = unit_root(k, op.n);
    roots.push_back(static_cast<T>(w.cosine)), roots.push_back(static_cast<T>(-w.sine));
  }
  return roots;
}

template <class T>
void run_typed(const Fft& op, const Space& space) {
  const int64_t rows = space.numel(), line = op.kind != Fft::Kind::Complex && op.n % 2 == 0 ? op.n / 2 : op.n;
  const auto plan = FftPlan<T>::of(line);
  const std::vector<T> roots = roots_of<T>(op, line);
  // Vectors' worth of rows, fewer of long ones. What each row is computed with does not depend on it.
  constexpr int64_t kVector = 64 / sizeof(T), kCache = 1 << 20;
  const int64_t room = plan->room(), fitting = kCache / (4 * static_cast<int64_t>(sizeof(T)) * room);
  const int64_t most = std::clamp<int64_t>(fitting / 4 * 4, 4, kVector);
  const double each = plan->nanoseconds() + 2.0 * static_cast<double>(op.n);
  split((rows + most - 1) / most, each * static_cast<double>(rows), 1, [&](int64_t begin, int64_t end) {
    const Buffer buffer = make_buffer({4, room, std::min(most, rows)}, sizeof(T));
    const int64_t part = room * std::min(most, rows);
    T* const memory = reinterpret_cast<T*>(buffer.get());
    const Lanes<T> first{memory, memory + part}, second{memory + 2 * part, memory + 3 * part};
    std::vector<const T*> from(static_cast<size_t>(most));
    std::vector<T*> to(static_cast<size_t>(most));
    Walk walk(space, space.rank);
    walk.seek(begin * most);
    for (int64_t b = begin; b < end; ++b) {
      const int64_t lanes = std::min(most, rows - b * most);
      for (int64_t l = 0; l < lanes; ++l, walk.next())
        from[static_cast<size_t>(l)] = reinterpret_cast<const T*>(walk.at(0)),
        to[static_cast<size_t>(l)] = reinterpret_cast<T*>(walk.at(1));
      Block<T> block{op, line, lanes, first, from.data(), to.data(), roots.data()};
      block.load();
      block.x = plan->run(first, second, lanes);
      block.store();
    }
  });
}

}  // namespace

void run(const ir::Fft& op) {
  Space space(op.shape);
  space.add({op.in.data, op.dtype, op.in.strides});
  space.add({op.out.data, op.dtype, op.out.strides});
  space.drop_ones();
  space.merge();
  if (space.numel() == 0) return;
  op.dtype == DType::F32 ? run_typed<float>(op, space) : run_typed<double>(op, space);
}

}  // namespace naru::host
