// torch.nn.init: functions that initialize a tensor in place and return it, without recording history. C++ and Python draw the same
// numbers.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "naru/random.h"
#include "naru/tensor.h"

namespace naru::nn::init {

// The recommended gain for a nonlinearity ("relu", "tanh", "leaky_relu" ...); param: leaky_relu's slope. Throws ValueError for other names.
double calculate_gain(std::string_view nonlinearity, std::optional<double> param = {});
// The number of inputs and outputs that a weight connects (fan-in, fan-out). Throws ValueError below 2 dimensions.
std::pair<int64_t, int64_t> fan_in_and_fan_out(const Tensor& t);

Tensor uniform_(const Tensor& t, double a = 0, double b = 1, Generator* generator = nullptr);
Tensor normal_(const Tensor& t, double mean = 0, double std = 1, Generator* generator = nullptr);
// Normal numbers in [a, b]: those outside are redrawn.
Tensor trunc_normal_(const Tensor& t, double mean = 0, double std = 1, double a = -2, double b = 2, Generator* generator = nullptr);
Tensor constant_(const Tensor& t, Scalar value);
Tensor ones_(const Tensor& t);
Tensor zeros_(const Tensor& t);
// Fills a matrix with the identity. Throws ValueError for other ranks.
Tensor eye_(const Tensor& t);
// Fills a convolution's weight so that channels pass through unchanged. Throws ValueError unless it has 3 to 5 dimensions and groups
// divides the first.
Tensor dirac_(const Tensor& t, int64_t groups = 1);
// Uniform in ± gain sqrt(6 / (fan_in + fan_out)); normal with standard deviation gain sqrt(2 / (fan_in + fan_out)).
Tensor xavier_uniform_(const Tensor& t, double gain = 1, Generator* generator = nullptr);
Tensor xavier_normal_(const Tensor& t, double gain = 1, Generator* generator = nullptr);
// Uniform in ± gain sqrt(3 / fan); normal with standard deviation gain / sqrt(fan). mode: "fan_in" or "fan_out" (ValueError for others).
// Does nothing but warn if there are no elements.
Tensor kaiming_uniform_(const Tensor& t, double a = 0, std::string_view mode = "fan_in", std::string_view nonlinearity = "leaky_relu",
                        Generator* generator = nullptr);
Tensor kaiming_normal_(const Tensor& t, double a = 0, std::string_view mode = "fan_in", std::string_view nonlinearity = "leaky_relu",
                       Generator* generator = nullptr);
// A (semi-)orthogonal matrix; the dimensions after the first are flattened. Throws ValueError below 2 dimensions.
Tensor orthogonal_(const Tensor& t, double gain = 1, Generator* generator = nullptr);
// Normal numbers, with a fraction `sparsity` of each column set to 0. Throws ValueError unless t is a matrix.
Tensor sparse_(const Tensor& t, double sparsity, double std = 0.01, Generator* generator = nullptr);

}  // namespace naru::nn::init
