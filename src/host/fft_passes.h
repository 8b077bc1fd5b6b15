// The loops of Fourier transforms over `count` numbers side by side (see fft_plan.h). Compiled for several kinds of processors, with the same bits.
#pragma once

#include <cstdint>

#include "host/fft_plan.h"

namespace naru::host {

// One pass: for each p < m, and each of `count` numbers behind it, takes in[p + m * j], j < radix, transforms them, and writes them, times w[p][j], to
// out[radix * p + j]; each index counts `count` numbers. w: pairs, for j = 1 ... radix - 1. roots: pairs, exp(-2 pi i j / radix), for radices other than 2 to 5.
void fft_pass(int64_t radix, int64_t m, int64_t count, Lanes<const float> in, Lanes<float> out, const float* w, const float* roots);
void fft_pass(int64_t radix, int64_t m, int64_t count, Lanes<const double> in, Lanes<double> out, const double* w, const double* roots);

// x[k] times f[k] (pairs, or their conjugates), each for `lanes` numbers, to y, whose parts are exchanged where `swap`.
void fft_scale(int64_t n, int64_t lanes, Lanes<const float> x, const float* f, bool swap, Lanes<float> y);
void fft_scale(int64_t n, int64_t lanes, Lanes<const double> x, const double* f, bool swap, Lanes<double> y);

// Numbers whose parts lie side by side, to parts that lie apart; and back, times a factor for each part.
void fft_split(int64_t count, const float* from, Lanes<float> to);
void fft_split(int64_t count, const double* from, Lanes<double> to);
void fft_join(int64_t count, Lanes<const float> from, float re, float im, float* to);
void fft_join(int64_t count, Lanes<const double> from, double re, double im, double* to);

// Of the transform of n numbers, each two real ones, to the first n + 1 of the transform of the 2 n; and from those, with imaginary parts times `sign`, to what
// gives the real ones back, its parts exchanged. w: FftPlan::half_turns.
void fft_unpack(int64_t n, int64_t lanes, Lanes<const float> x, const float* w, Lanes<float> y);
void fft_unpack(int64_t n, int64_t lanes, Lanes<const double> x, const double* w, Lanes<double> y);
void fft_pack(int64_t n, int64_t lanes, Lanes<const float> x, const float* w, float sign, Lanes<float> y);
void fft_pack(int64_t n, int64_t lanes, Lanes<const double> x, const double* w, double sign, Lanes<double> y);

}  // namespace naru::host
