// Window functions: those of torch.signal.windows, symmetric or (sym false) periodic, float32 or float64; and the older ones in torch,
// periodic by default, of any floating-point dtype. Throw ValueError (the older ones RuntimeError) for negative lengths, other dtypes, and
// invalid parameters.
#pragma once

#include <optional>
#include <vector>

#include "naru/ops.h"

namespace naru::signal::windows {

Tensor bartlett(int64_t m, bool sym = true, const Options& options = {});
Tensor blackman(int64_t m, bool sym = true, const Options& options = {});
Tensor cosine(int64_t m, bool sym = true, const Options& options = {});
// exp(-|i - center| / tau). The default center is the middle; another one is allowed only if sym is false.
Tensor exponential(int64_t m, std::optional<double> center = {}, double tau = 1, bool sym = true, const Options& options = {});
// exp(-((i - middle) / std)^2 / 2)
Tensor gaussian(int64_t m, double std = 1, bool sym = true, const Options& options = {});
// general_cosine: the sum of (-1)^k a[k] cos(2 pi k i / (m - 1)). general_hamming: alpha - (1 - alpha) cos(...). The others are special
// cases.
Tensor general_cosine(int64_t m, const std::vector<double>& a, bool sym = true, const Options& options = {});
Tensor general_hamming(int64_t m, double alpha = 0.54, bool sym = true, const Options& options = {});
Tensor hamming(int64_t m, bool sym = true, const Options& options = {});
Tensor hann(int64_t m, bool sym = true, const Options& options = {});
Tensor nuttall(int64_t m, bool sym = true, const Options& options = {});
// I0(beta sqrt(1 - x^2)) / I0(beta), x from -1 to 1.
Tensor kaiser(int64_t m, double beta = 12, bool sym = true, const Options& options = {});

}  // namespace naru::signal::windows

namespace naru {

Tensor bartlett_window(int64_t length, bool periodic = true, const Options& options = {});
Tensor blackman_window(int64_t length, bool periodic = true, const Options& options = {});
Tensor hann_window(int64_t length, bool periodic = true, const Options& options = {});
Tensor hamming_window(int64_t length, bool periodic = true, double alpha = 0.54, double beta = 0.46, const Options& options = {});
Tensor kaiser_window(int64_t length, bool periodic = true, double beta = 12, const Options& options = {});

}  // namespace naru
