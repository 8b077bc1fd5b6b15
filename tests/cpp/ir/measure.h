// Measures the error of functions over the primitives, run by the interpreter, against a more precise reference.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/expr.h"

namespace naru::ir::testing {

// The error of `got` in units of the last place of float (24 digits) or double (53 digits) at the exact value `want`. Infinite if only one is
// NaN, or if one is an infinity and the other does not round to it.
double ulps(double got, long double want, VType type);

struct Worst {
  double ulps = 0;
  double x = 0, y = 0, got = 0;
  long double want = 0;
  void take(double error, double at_x, double at_y, double value, long double truth);
};

using Unary = V (*)(V);
using Binary = V (*)(V, V);
// f(x[i]) or f(x[i], y[i]), evaluated by the interpreter in F32 or F64.
std::vector<double> evaluate(Unary f, VType type, std::span<const double> x);
std::vector<double> evaluate(Binary f, VType type, std::span<const double> x, std::span<const double> y);

// Every float16 value (NaNs included).
std::vector<double> all_halves();
// Values of the type: `each` per exponent and sign, with random last bits, and all special values.
std::vector<double> stratified(VType type, int each, uint64_t seed);
// Uniform values of the type in [low, high].
std::vector<double> uniform(VType type, double low, double high, int n, uint64_t seed);

}  // namespace naru::ir::testing
