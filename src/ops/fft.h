// Transforms along one dimension, of the length it has: what torch.fft's functions are made of. All are recorded.
#pragma once

#include "naru/ops.h"

namespace naru::ops {

// scale * sum over j of t[j] exp(-2 pi i j k / n) (plus i where `inverse`), of complex numbers.
Tensor fft_complex(const Tensor& t, int64_t dim, bool inverse, double scale);
// Of n real numbers, the first n / 2 + 1; of n / 2 + 1 complex ones, the first half of n with conjugate symmetry, all n, which are real.
Tensor fft_real_to_half(const Tensor& t, int64_t dim, bool inverse, double scale);
Tensor fft_half_to_real(const Tensor& t, int64_t dim, int64_t n, bool inverse, double scale);

// t in the type that a transform of it is computed in: floating point, or complex where `complex`. NotImplementedError for 16-bit types.
Tensor fft_operand(const Tensor& t, bool complex);

}  // namespace naru::ops
