// Discrete Fourier transforms, as torch.fft has them: of any length, batched, float32 and float64 (integers count as the default type) and their complex
// types; differentiable, gradients too. Computed on the cpu by code of its own, the same bits on every processor; other devices but virtual ones fall back
// to it (naru/fallback.h).
//
// n, s: the lengths that the input is cut or padded with zeros to. norm: "backward" (the default; the inverse ones divide by the number of points), "ortho"
// (both divide by its root), "forward". Errors: RuntimeError for lengths below 1, for dimensions named twice, and other words for norm; TypeError for complex
// numbers where real ones are wanted; NotImplementedError for 16-bit types.
#pragma once

#include <optional>
#include <string_view>

#include "naru/ops.h"

namespace naru::fft {

using Length = std::optional<int64_t>;
using Norm = std::optional<std::string_view>;

Tensor fft(const Tensor& t, Length n = {}, int64_t dim = -1, Norm norm = {});
Tensor ifft(const Tensor& t, Length n = {}, int64_t dim = -1, Norm norm = {});
// Of real numbers: the first n / 2 + 1 results, of which the others are conjugates; and back, to n (2 (m - 1) of m) real numbers.
Tensor rfft(const Tensor& t, Length n = {}, int64_t dim = -1, Norm norm = {});
Tensor irfft(const Tensor& t, Length n = {}, int64_t dim = -1, Norm norm = {});
// The same with the directions exchanged: of half a signal with conjugate symmetry its real spectrum, and back.
Tensor hfft(const Tensor& t, Length n = {}, int64_t dim = -1, Norm norm = {});
Tensor ihfft(const Tensor& t, Length n = {}, int64_t dim = -1, Norm norm = {});

// Over several dimensions: the last of them, as many as s has, or all; -1 in s keeps a length. Of the real and the half ones it is the last dimension
// that is real or halved.
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

// The frequencies that the results stand for, d apart in time: 0, 1, ... -2, -1 over n d; of rfft 0 ... n / 2 over n d.
Tensor fftfreq(int64_t n, double d = 1, const Options& options = {});
Tensor rfftfreq(int64_t n, double d = 1, const Options& options = {});
// With frequency 0 in the middle of dimensions (all, unless named), and back.
Tensor fftshift(const Tensor& t, const OptionalDims& dims = {});
Tensor ifftshift(const Tensor& t, const OptionalDims& dims = {});

}  // namespace naru::fft

namespace naru {

// Short-time Fourier transforms of signals (T) or (B, T): (..., n_fft / 2 + 1, frames), or n_fft rows unless onesided. window: of win_length numbers, in the
// middle of n_fft; ones if undefined. center pads n_fft / 2 numbers on both sides, by pad_mode ("reflect", "constant" ...), or align_to_window says where frames of
// a shorter window begin. return_complex false: real and imaginary parts in a last dimension (with PyTorch's warning). RuntimeError for sizes that do not fit.
struct StftOptions {
  std::optional<int64_t> hop_length = {}, win_length = {};  // n_fft / 4, n_fft
  bool center = true;
  std::string_view pad_mode = "reflect";
  bool normalized = false;
  std::optional<bool> onesided = {}, return_complex = {}, align_to_window = {};
};
Tensor stft(const Tensor& t, int64_t n_fft, const Tensor& window, const StftOptions& options);
// The signals that such transforms are of: overlapping frames are added, and divided by the sum of the windows' squares (RuntimeError where that is 0).
// length: the result is cut, or padded with zeros, to it.
struct IstftOptions {
  std::optional<int64_t> hop_length = {}, win_length = {};
  bool center = true, normalized = false;
  std::optional<bool> onesided = {};
  std::optional<int64_t> length = {};
  bool return_complex = false;
};
Tensor istft(const Tensor& t, int64_t n_fft, const Tensor& window, const IstftOptions& options);

}  // namespace naru
