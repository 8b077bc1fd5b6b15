// torch.nn.init: functions that fill a tensor in place with starting values, and return it. None of them is recorded. Both languages draw the same
// numbers.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "naru/random.h"
#include "naru/tensor.h"

namespace naru::nn::init {

// The factor by which weights before a function ("relu", "tanh", "leaky_relu" ...) are scaled; param: leaky_relu's slope. ValueError for other words.
double calculate_gain(std::string_view nonlinearity, std::optional<double> param = {});
// How many inputs and outputs an element of a weight's output and input connects to. ValueError for less than 2 dimensions.
std::pair<int64_t, int64_t> fan_in_and_fan_out(const Tensor& t);

Tensor uniform_(const Tensor& t, double a = 0, double b = 1, Generator* generator = nullptr);
Tensor normal_(const Tensor& t, double mean = 0, double std = 1, Generator* generator = nullptr);
// Normal numbers that lie in [a, b]: those outside are drawn again.
Tensor trunc_normal_(const Tensor& t, double mean = 0, double std = 1, double a = -2, double b = 2, Generator* generator = nullptr);
Tensor constant_(const Tensor& t, Scalar value);
Tensor ones_(const Tensor& t);
Tensor zeros_(const Tensor& t);
// A matrix as the identity. ValueError for other ranks.
Tensor eye_(const Tensor& t);
// The weight of a convolution that passes its channels through. ValueError unless it has 3 to 5 dimensions, and the first divides by groups.
Tensor dirac_(const Tensor& t, int64_t groups = 1);
// Uniform in ± gain sqrt(6 / (fan_in + fan_out)); normal with deviation gain sqrt(2 / (fan_in + fan_out)).
Tensor xavier_uniform_(const Tensor& t, double gain = 1, Generator* generator = nullptr);
Tensor xavier_normal_(const Tensor& t, double gain = 1, Generator* generator = nullptr);
// Uniform in ± gain sqrt(3 / fan); normal with deviation gain / sqrt(fan). mode: "fan_in" or "fan_out" (ValueError for others). Nothing is done, with
// a warning, where there are no elements.
Tensor kaiming_uniform_(const Tensor& t, double a = 0, std::string_view mode = "fan_in", std::string_view nonlinearity = "leaky_relu",
                        Generator* generator = nullptr);
Tensor kaiming_normal_(const Tensor& t, double a = 0, std::string_view mode = "fan_in", std::string_view nonlinearity = "leaky_relu",
                       Generator* generator = nullptr);
// A (semi-)orthogonal matrix, the dimensions after the first taken together. ValueError for less than 2 dimensions.
Tensor orthogonal_(const Tensor& t, double gain = 1, Generator* generator = nullptr);
// Normal numbers, of which the share `sparsity` of each column is 0. ValueError unless it is a matrix.
Tensor sparse_(const Tensor& t, double sparsity, double std = 0.01, Generator* generator = nullptr);

}  // namespace naru::nn::init
