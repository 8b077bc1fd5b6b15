#include "backends/cpu/fft/fft_passes.h"

#include "backends/cpu/exec/simd.h"

namespace naru::cpu {
namespace {

// Addresses of the values of one p: in[j] and out[j], with strides.
template <class T>
struct Places {
  const T* __restrict re, * __restrict im;
  T* __restrict out_re, * __restrict out_im;
  int64_t in_step, out_step, count;
};

template <class T>
struct Complex {
  T re, im;
};
template <class T>
[[gnu::always_inline]] inline Complex<T> operator+(Complex<T> a, Complex<T> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class T>
[[gnu::always_inline]] inline Complex<T> operator-(Complex<T> a, Complex<T> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class T>
[[gnu::always_inline]] inline Complex<T> operator*(T f, Complex<T> a) {
  return {f * a.re, f * a.im};
}
template <class T>
[[gnu::always_inline]] inline Complex<T> operator*(Complex<T> a, Complex<T> w) {
  return {a.re * w.re - a.im * w.im, a.re * w.im + a.im * w.re};
}
// -i a
template <class T>
[[gnu::always_inline]] inline Complex<T> turned(Complex<T> a) {
  return {a.im, -a.re};
}

template <class T>
[[gnu::always_inline]] inline Complex<T> load(const Places<T>& x, int64_t j, int64_t q) {
  return {x.re[j * x.in_step + q], x.im[j * x.in_step + q]};
}
template <class T>
[[gnu::always_inline]] inline void store(const Places<T>& x, int64_t j, int64_t q, Complex<T> a) {
  x.out_re[j * x.out_step + q] = a.re, x.out_im[j * x.out_step + q] = a.im;
}
template <class T>
[[gnu::always_inline]] inline Complex<T> pair(const T* w, int64_t j) {
  return {w[2 * j], w[2 * j + 1]};
}

template <class T>
[[gnu::always_inline]] inline void two(const Places<T>& x, const T* w) {
  const Complex<T> w1 = pair(w, 0);
#pragma GCC ivdep
  for (int64_t q = 0; q < x.count; ++q) {
    const Complex<T> a = load(x, 0, q), b = load(x, 1, q);
    store(x, 0, q, a + b), store(x, 1, q, (a - b) * w1);
  }
}

template <class T>
[[gnu::always_inline]] inline void three(const Places<T>& x, const T* w) {
  const Complex<T> w1 = pair(w, 0), w2 = pair(w, 1);
  constexpr T kHalf = T{0.5}, kSine = static_cast<T>(0.86602540378443864676);
#pragma GCC ivdep
  for (int64_t q = 0; q < x.count; ++q) {
    const Complex<T> a = load(x, 0, q), b = load(x, 1, q), c = load(x, 2, q);
    const Complex<T> sum = b + c, middle = a - kHalf * sum, side = kSine * turned(b - c);
    store(x, 0, q, a + sum), store(x, 1, q, (middle + side) * w1), store(x, 2, q, (middle - side) * w2);
  }
}

template <class T>
[[gnu::always_inline]] inline void four(const Places<T>& x, const T* w) {
  const Complex<T> w1 = pair(w, 0), w2 = pair(w, 1), w3 = pair(w, 2);
#pragma GCC ivdep
  for (int64_t q = 0; q < x.count; ++q) {
    const Complex<T> a = load(x, 0, q), b = load(x, 1, q), c = load(x, 2, q), d = load(x, 3, q);
    const Complex<T> s = a + c, u = a - c, v = b + d, t = turned(b - d);
    store(x, 0, q, s + v), store(x, 1, q, (u + t) * w1), store(x, 2, q, (s - v) * w2), store(x, 3, q, (u - t) * w3);
  }
}

template <class T>
[[gnu::always_inline]] inline void five(const Places<T>& x, const T* w) {
  const Complex<T> w1 = pair(w, 0), w2 = pair(w, 1), w3 = pair(w, 2), w4 = pair(w, 3);
  constexpr T kCos1 = static_cast<T>(0.30901699437494742410), kCos2 = static_cast<T>(-0.80901699437494742410);
  constexpr T kSin1 = static_cast<T>(0.95105651629515357212), kSin2 = static_cast<T>(0.58778525229247312917);
#pragma GCC ivdep
  for (int64_t q = 0; q < x.count; ++q) {
    const Complex<T> a = load(x, 0, q), b = load(x, 1, q), c = load(x, 2, q), d = load(x, 3, q), e = load(x, 4, q);
    const Complex<T> s1 = b + e, s2 = c + d, d1 = turned(b - e), d2 = turned(c - d);
    const Complex<T> m1 = a + (kCos1 * s1 + kCos2 * s2), m2 = a + (kCos2 * s1 + kCos1 * s2);
    const Complex<T> n1 = kSin1 * d1 + kSin2 * d2, n2 = kSin2 * d1 - kSin1 * d2;
    store(x, 0, q, a + (s1 + s2));
    store(x, 1, q, (m1 + n1) * w1), store(x, 2, q, (m2 + n2) * w2), store(x, 3, q, (m2 - n2) * w3), store(x, 4, q, (m1 - n1) * w4);
  }
}

// Any radix: each result is a sum of products.
template <class T>
[[gnu::always_inline]] inline void any(const Places<T>& x, int64_t radix, const T* w, const T* roots) {
  for (int64_t k = 0; k < radix; ++k) {
#pragma GCC ivdep
    for (int64_t q = 0; q < x.count; ++q) store(x, k, q, load(x, 0, q));
    for (int64_t j = 1; j < radix; ++j) {
      const Complex<T> root = pair(roots, j * k % radix);
#pragma GCC ivdep
      for (int64_t q = 0; q < x.count; ++q) {
        const Complex<T> sum{x.out_re[k * x.out_step + q], x.out_im[k * x.out_step + q]};
        store(x, k, q, sum + load(x, j, q) * root);
      }
    }
    if (k == 0) continue;
    const Complex<T> factor = pair(w, k - 1);
#pragma GCC ivdep
    for (int64_t q = 0; q < x.count; ++q) {
      const Complex<T> sum{x.out_re[k * x.out_step + q], x.out_im[k * x.out_step + q]};
      store(x, k, q, sum * factor);
    }
  }
}

template <class T>
[[gnu::always_inline]] inline void pass(int64_t radix, int64_t m, int64_t count, Lanes<const T> in, Lanes<T> out, const T* w,
                                        const T* roots) {
  for (int64_t p = 0; p < m; ++p, w += 2 * (radix - 1)) {
    const Places<T> x{
        in.re + p * count, in.im + p * count, out.re + radix * p * count, out.im + radix * p * count, m * count, count, count};
    switch (radix) {
      case 2:
        two(x, w);
        break;
      case 3:
        three(x, w);
        break;
      case 4:
        four(x, w);
        break;
      case 5:
        five(x, w);
        break;
      default:
        any(x, radix, w, roots);
    }
  }
}

template <class T>
[[gnu::always_inline]] inline void scale(int64_t n, int64_t lanes, Lanes<const T> x, const T* f, bool swap, Lanes<T> y) {
  T* const re = swap ? y.im : y.re;
  T* const im = swap ? y.re : y.im;
  for (int64_t k = 0; k < n; ++k) {
    const Complex<T> factor = pair(f, k);
#pragma GCC ivdep
    for (int64_t l = k * lanes; l < (k + 1) * lanes; ++l) {
      const Complex<T> z = Complex<T>{x.re[l], x.im[l]} * factor;
      re[l] = z.re, im[l] = z.im;
    }
  }
}

template <class T>
[[gnu::always_inline]] inline void split(int64_t count, const T* __restrict from, Lanes<T> to) {
  T* __restrict re = to.re, * __restrict im = to.im;
  for (int64_t l = 0; l < count; ++l) re[l] = from[2 * l], im[l] = from[2 * l + 1];
}
template <class T>
[[gnu::always_inline]] inline void join(int64_t count, Lanes<const T> from, T re, T im, T* __restrict to) {
  const T* __restrict a = from.re, * __restrict b = from.im;
  for (int64_t l = 0; l < count; ++l) to[2 * l] = a[l] * re, to[2 * l + 1] = b[l] * im;
}

template <class T>
[[gnu::always_inline]] inline void unpack(int64_t n, int64_t lanes, Lanes<const T> x, const T* w, Lanes<T> y) {
  for (int64_t k = 0; k <= n; ++k) {
    const int64_t here = (k == n ? 0 : k) * lanes, other = (k == 0 || k == n ? 0 : n - k) * lanes, to = k * lanes;
    const Complex<T> turn = pair(w, k);
#pragma GCC ivdep
    for (int64_t l = 0; l < lanes; ++l) {
      // Z_k = E_k + i O_k; the conjugate of Z_(n - k) separates E and O.
      const Complex<T> z{x.re[here + l], x.im[here + l]}, c{x.re[other + l], -x.im[other + l]};
      const Complex<T> sum = T{0.5} * (z + c) + (T{0.5} * turned(z - c)) * turn;
      y.re[to + l] = sum.re, y.im[to + l] = sum.im;
    }
  }
}
template <class T>
[[gnu::always_inline]] inline void pack(int64_t n, int64_t lanes, Lanes<const T> x, const T* w, T sign, Lanes<T> y) {
  for (int64_t k = 0; k < n; ++k) {
    const int64_t here = k * lanes, other = (n - k) * lanes;
    const Complex<T> turn{w[2 * k], -w[2 * k + 1]};
    // The imaginary parts of the first and the last value count as 0.
    const T part = k == 0 ? T{0} : sign;
#pragma GCC ivdep
    for (int64_t l = 0; l < lanes; ++l) {
      const T im = k == 0 ? T{0} : x.im[here + l] * part, b = k == 0 ? T{0} : x.im[other + l] * part;
      const Complex<T> z{x.re[here + l], im}, c{x.re[other + l], -b}, odd = (z - c) * turn, even = z + c;
      y.im[here + l] = even.re - odd.im, y.re[here + l] = even.im + odd.re;
    }
  }
}

}  // namespace

NARU_WIDE void fft_pass(int64_t radix, int64_t m, int64_t count, Lanes<const float> in, Lanes<float> out, const float* w,
                        const float* roots) {
  pass(radix, m, count, in, out, w, roots);
}
NARU_WIDE void fft_pass(int64_t radix, int64_t m, int64_t count, Lanes<const double> in, Lanes<double> out, const double* w,
                        const double* roots) {
  pass(radix, m, count, in, out, w, roots);
}
NARU_WIDE void fft_scale(int64_t n, int64_t lanes, Lanes<const float> x, const float* f, bool swap, Lanes<float> y) {
  scale(n, lanes, x, f, swap, y);
}
NARU_WIDE void fft_scale(int64_t n, int64_t lanes, Lanes<const double> x, const double* f, bool swap, Lanes<double> y) {
  scale(n, lanes, x, f, swap, y);
}

NARU_WIDE void fft_split(int64_t count, const float* from, Lanes<float> to) { split(count, from, to); }
NARU_WIDE void fft_join(int64_t count, Lanes<const float> from, float re, float im, float* to) { join(count, from, re, im, to); }
NARU_WIDE void fft_unpack(int64_t n, int64_t lanes, Lanes<const float> x, const float* w, Lanes<float> y) { unpack(n, lanes, x, w, y); }
NARU_WIDE void fft_pack(int64_t n, int64_t lanes, Lanes<const float> x, const float* w, float sign, Lanes<float> y) {
  pack(n, lanes, x, w, sign, y);
}
NARU_WIDE void fft_split(int64_t count, const double* from, Lanes<double> to) { split(count, from, to); }
NARU_WIDE void fft_join(int64_t count, Lanes<const double> from, double re, double im, double* to) { join(count, from, re, im, to); }
NARU_WIDE void fft_unpack(int64_t n, int64_t lanes, Lanes<const double> x, const double* w, Lanes<double> y) { unpack(n, lanes, x, w, y); }
NARU_WIDE void fft_pack(int64_t n, int64_t lanes, Lanes<const double> x, const double* w, double sign, Lanes<double> y) {
  pack(n, lanes, x, w, sign, y);
}

}  // namespace naru::cpu
