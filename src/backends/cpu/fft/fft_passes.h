// Inner loops of FFTs over `count` values at once (see fft_plan.h). Compiled for several instruction sets, with the same bits.
#pragma once

#include <cstdint>

#include "backends/cpu/fft/fft_plan.h"

namespace naru::cpu {

// One pass. For each p < m, over `count` consecutive values: transforms in[p + m * j], j < radix, and stores the results times w[p][j] at
// out[radix * p + j]. One index step is `count` values. w: complex factors for j = 1 ... radix - 1. roots: exp(-2 pi i j / radix), for
// radices other than 2 to 5. Both are interleaved pairs.
void fft_pass(int64_t radix, int64_t m, int64_t count, Lanes<const float> in, Lanes<float> out, const float* w, const float* roots);
void fft_pass(int64_t radix, int64_t m, int64_t count, Lanes<const double> in, Lanes<double> out, const double* w, const double* roots);

// y[k] = x[k] * f[k] for `lanes` values each; f holds interleaved pairs. swap: exchanges the real and imaginary parts of y.
void fft_scale(int64_t n, int64_t lanes, Lanes<const float> x, const float* f, bool swap, Lanes<float> y);
void fft_scale(int64_t n, int64_t lanes, Lanes<const double> x, const double* f, bool swap, Lanes<double> y);

// Converts interleaved complex values to separate real and imaginary arrays, and back; fft_join also multiplies each part by its factor.
void fft_split(int64_t count, const float* from, Lanes<float> to);
void fft_split(int64_t count, const double* from, Lanes<double> to);
void fft_join(int64_t count, Lanes<const float> from, float re, float im, float* to);
void fft_join(int64_t count, Lanes<const double> from, double re, double im, double* to);

// fft_unpack: the transform of n complex values, each made of two real ones, to the first n + 1 values of the transform of the 2 n real
// values. fft_pack: the inverse step. It multiplies imaginary parts by `sign`, and exchanges the real and imaginary parts of its result. w:
// FftPlan::half_turns.
void fft_unpack(int64_t n, int64_t lanes, Lanes<const float> x, const float* w, Lanes<float> y);
void fft_unpack(int64_t n, int64_t lanes, Lanes<const double> x, const double* w, Lanes<double> y);
void fft_pack(int64_t n, int64_t lanes, Lanes<const float> x, const float* w, float sign, Lanes<float> y);
void fft_pack(int64_t n, int64_t lanes, Lanes<const double> x, const double* w, double sign, Lanes<double> y);

}  // namespace naru::cpu
