// Discrete Fourier transforms, after torch.fft: any length, batched, for float32, float64 and their complex types (integers convert to the
// default dtype); differentiable to any order. naru's own code computes them on cpu, with the same bits on every processor; devices other
// than virtual ones fall back to it (naru/device/fallback.h).
//
// n, s: the lengths to which the input is truncated or zero-padded. norm: "backward" (the default: inverse transforms divide by the number
// of points), "ortho" (both directions divide by its square root), "forward" (forward transforms divide). Throws RuntimeError for lengths
// below 1, dimensions named twice, or other values of norm; TypeError for complex input where real input is expected; NotImplementedError
// for 16-bit types.
#pragma once

#include <optional>
#include <string_view>

#include "naru/ops.h"

namespace naru::fft {

using Length = std::optional<int64_t>;
using Norm = std::optional<std::string_view>;

Tensor fft(const Tensor& t, Length n = {}, int64_t dim = -1, Norm norm = {});
Tensor ifft(const Tensor& t, Length n = {}, int64_t dim = -1, Norm norm = {});
// rfft: for real input, the first n / 2 + 1 results; the others are their conjugates. irfft: the inverse, to n real numbers (default: 2 (m
// - 1) for m inputs).
Tensor rfft(const Tensor& t, Length n = {}, int64_t dim = -1, Norm norm = {});
Tensor irfft(const Tensor& t, Length n = {}, int64_t dim = -1, Norm norm = {});
// hfft: the real spectrum of a signal with conjugate symmetry, of which half is given. ihfft: the inverse.
Tensor hfft(const Tensor& t, Length n = {}, int64_t dim = -1, Norm norm = {});
Tensor ihfft(const Tensor& t, Length n = {}, int64_t dim = -1, Norm norm = {});

// Over several dimensions: dims, or the last ones, as many as s has, or all. -1 in s keeps a length. In the real and Hermitian transforms,
// the last dimension is the real or halved one.
Tensor fftn(const Tensor& t, const OptionalDims& s = {}, const OptionalDims& dims = {}, Norm norm = {});
Tensor ifftn(const Tensor& t, const OptionalDims& s = {}, const OptionalDims& dims = {}, Norm norm = {});
Tensor rfftn(const Tensor& t, const OptionalDims& s = {}, const OptionalDims& dims = {}, Norm norm = {});
Tensor irfftn(const Tensor& t, const OptionalDims& s = {}, const OptionalDims& dims = {}, Norm norm = {});
Tensor hfftn(const Tensor& t, const OptionalDims& s = {}, const OptionalDims& dims = {}, Norm norm = {});
Tensor ihfftn(const Tensor& t, const OptionalDims& s = {}, const OptionalDims& dims = {}, Norm norm = {});
Tensor fft2(const Tensor& t, const OptionalDims& s = {}, const Dims& dims = {-2, -1}, Norm norm = {});
Tensor ifft2(const Tensor& t, const OptionalDims& s = {}, const Dims& dims = {-2, -1}, Norm norm = {});
Tensor rfft2(const Tensor& t, const OptionalDims& s = {}, const Dims& dims = {-2, -1}, Norm norm = {});
Tensor irfft2(const Tensor& t, const OptionalDims& s = {}, const Dims& dims = {-2, -1}, Norm norm = {});
Tensor hfft2(const Tensor& t, const OptionalDims& s = {}, const Dims& dims = {-2, -1}, Norm norm = {});
Tensor ihfft2(const Tensor& t, const OptionalDims& s = {}, const Dims& dims = {-2, -1}, Norm norm = {});

// The frequencies of the results for sample spacing d: fftfreq 0, 1, ... -2, -1 divided by n d; rfftfreq 0 ... n / 2 divided by n d.
Tensor fftfreq(int64_t n, double d = 1, const Options& options = {});
Tensor rfftfreq(int64_t n, double d = 1, const Options& options = {});
// fftshift moves frequency 0 to the middle of dimensions (default: all); ifftshift is the inverse.
Tensor fftshift(const Tensor& t, const OptionalDims& dims = {});
Tensor ifftshift(const Tensor& t, const OptionalDims& dims = {});

}  // namespace naru::fft

namespace naru {

// Short-time Fourier transform of signals (T) or (B, T): (..., n_fft / 2 + 1, frames), or n_fft rows unless onesided. window: win_length
// numbers, centered in n_fft; ones if undefined. center: pads n_fft / 2 numbers on both sides with pad_mode ("reflect", "constant" ...).
// align_to_window: where frames of a shorter window begin. return_complex false: real and imaginary parts in a last dimension (with
// PyTorch's warning). Throws RuntimeError for sizes that do not fit.
struct StftOptions {
  std::optional<int64_t> hop_length = {}, win_length = {};  // default: n_fft / 4, n_fft
  bool center = true;
  std::string_view pad_mode = "reflect";
  bool normalized = false;
  std::optional<bool> onesided = {}, return_complex = {}, align_to_window = {};
};
Tensor stft(const Tensor& t, int64_t n_fft, const Tensor& window, const StftOptions& options);
// The inverse of stft: adds overlapping frames, and divides by the sum of the squared windows (RuntimeError where that is 0). length:
// truncates or zero-pads the result.
struct IstftOptions {
  std::optional<int64_t> hop_length = {}, win_length = {};
  bool center = true, normalized = false;
  std::optional<bool> onesided = {};
  std::optional<int64_t> length = {};
  bool return_complex = false;
};
Tensor istft(const Tensor& t, int64_t n_fft, const Tensor& window, const IstftOptions& options);

}  // namespace naru
