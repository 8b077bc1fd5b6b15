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

}  // namespace naru::host
