// Fourier transforms along one dimension at its present length: the building blocks of torch.fft. All are recorded for autograd.
#pragma once

#include "naru/ops.h"

namespace naru::ops {

// Complex to complex: scale * sum over j of t[j] exp(-2 pi i j k / n); exp(+...) if `inverse`.
Tensor fft_complex(const Tensor& t, int64_t dim, bool inverse, double scale);
// Real to half spectrum: n real numbers give the first n / 2 + 1 values.
// Half spectrum to real: n / 2 + 1 complex numbers, half of n with conjugate symmetry, give n real ones.
Tensor fft_real_to_half(const Tensor& t, int64_t dim, bool inverse, double scale);
Tensor fft_half_to_real(const Tensor& t, int64_t dim, int64_t n, bool inverse, double scale);

// Converts t to the dtype that its transform is computed in: floating point, or complex if `complex`. NotImplementedError for 16-bit types.
Tensor fft_operand(const Tensor& t, bool complex);

}  // namespace naru::ops
