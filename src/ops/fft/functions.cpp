// torch.fft's functions: they choose lengths, dimensions and factors, then transform one dimension after another (ops/fft/fft.h).
#include "naru/ops/fft.h"

#include <cmath>

#include "core/sizes.h"
#include "ops/call/wrapped.h"
#include "ops/fft/fft.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru::fft {
namespace {

// The normalization factor of a transform of this many points.
double factor(Norm norm, int64_t points, bool inverse) {
  const std::string_view word = norm.value_or("backward");
  const auto n = static_cast<double>(points);
  if (word == "ortho") return 1 / std::sqrt(n);
  if (word == "backward") return inverse ? 1 / n : 1;
  if (word == "forward") return inverse ? 1 : 1 / n;
  throw RuntimeError("Invalid normalization mode: \"{}\"", word);
}

void require_points(int64_t n) {
  if (n < 1) throw RuntimeError("Invalid number of data points ({}) specified", n);
}

// The default number of real points for a half spectrum of this length.
int64_t doubled(int64_t half) { return times(2, half - 1); }

// Truncates, or pads with zeros, to a length.
Tensor resized(const Tensor& t, int64_t dim, int64_t length) {
  const int64_t n = t.size(dim);
  if (n == length) return t;
  if (n > length) return t.narrow(dim, 0, length);
  Dims missing = t.sizes();
  missing[static_cast<size_t>(dim)] = length - n;
  return cat({t, zeros(missing, Options(t.dtype(), t.device()))}, dim);
}

int64_t dim_of(const Tensor& t, int64_t dim, const char* op) {
  ops::require_defined(t, op, "input");
  if (t.dim() == 0) throw IndexError("Dimension specified as {} but tensor has no dimensions", dim);
  return wrap_dim(dim, t.dim());
}

Tensor to_complex(const Tensor& given, Length n, int64_t dim, Norm norm, bool inverse, const char* op) {
  if (auto y = ops::wrapped(op, to_complex, given, n, dim, norm, inverse, op)) return *std::move(y);
  const int64_t d = dim_of(given, dim, op);
  const Tensor t = ops::fft_operand(given, true);
  const int64_t points = n.value_or(t.size(d));
  require_points(points);
  return ops::fft_complex(resized(t, d, points), d, inverse, factor(norm, points, inverse));
}

Tensor to_half(const Tensor& given, Length n, int64_t dim, Norm norm, bool inverse, const char* op) {
  if (auto y = ops::wrapped(op, to_half, given, n, dim, norm, inverse, op)) return *std::move(y);
  ops::require_defined(given, op, "input");
  if (is_complex(given.dtype())) throw TypeError("{} expects a real input tensor, but got {}", op, ops::torch_name(given.dtype()));
  const int64_t d = dim_of(given, dim, op);
  const Tensor t = ops::fft_operand(given, false);
  const int64_t points = n.value_or(t.size(d));
  require_points(points);
  return ops::fft_real_to_half(resized(t, d, points), d, inverse, factor(norm, points, inverse));
}

Tensor to_real(const Tensor& given, Length n, int64_t dim, Norm norm, bool inverse, const char* op) {
  if (auto y = ops::wrapped(op, to_real, given, n, dim, norm, inverse, op)) return *std::move(y);
  const int64_t d = dim_of(given, dim, op);
  const Tensor t = ops::fft_operand(given, true);
  const int64_t points = n.value_or(doubled(t.size(d)));
  require_points(points);
  return ops::fft_half_to_real(resized(t, d, points / 2 + 1), d, points, inverse, factor(norm, points, inverse));
}

// The dimensions of a multidimensional transform, and the number of points in each. `half`: the last dimension of the input is a half spectrum.
struct Plan {
  Dims dims, points;
  double scale;
};
Plan plan_of(const Tensor& t, const OptionalDims& s, const OptionalDims& dims, Norm norm, bool inverse, bool half, const char* op) {
  ops::require_defined(t, op, "input");
  Plan p;
  if (dims) {
    if (s && s->size() != dims->size()) throw RuntimeError("When given, dim and shape arguments must have the same length");
    uint64_t seen = 0;
    for (const int64_t given : *dims) {
      const int64_t d = dim_of(t, given, op);
      if (seen >> d & 1) throw RuntimeError("FFT dims must be unique");
      seen |= uint64_t{1} << d;
      p.dims.push_back(d);
    }
  } else {
    const auto rank = t.sizes().size(), count = s ? s->size() : rank;
    if (count > rank) throw RuntimeError("Got shape with {} values but input tensor only has {} dimensions.", count, rank);
    for (size_t d = rank - count; d < rank; ++d) p.dims.push_back(static_cast<int64_t>(d));
  }
  int64_t all = 1;
  for (size_t i = 0; i < p.dims.size(); ++i) {
    const int64_t size = t.size(p.dims[i]), whole = half && i + 1 == p.dims.size() ? doubled(size) : size;
    const int64_t points = s && (*s)[i] != -1 ? (*s)[i] : whole;
    require_points(points);
    p.points.push_back(points);
    all = times(all, points);
  }
  p.scale = factor(norm, all, inverse);
  return p;
}

Tensor all_but_last(Tensor t, const Plan& p, bool inverse) {
  for (size_t i = 0; i + 1 < p.dims.size(); ++i) t = ops::fft_complex(resized(t, p.dims[i], p.points[i]), p.dims[i], inverse, 1);
  return t;
}

Tensor to_complex_n(const Tensor& given, const OptionalDims& s, const OptionalDims& dims, Norm norm, bool inverse, const char* op) {
  if (auto y = ops::wrapped(op, to_complex_n, given, s, dims, norm, inverse, op)) return *std::move(y);
  const Plan p = plan_of(given, s, dims, norm, inverse, false, op);
  const Tensor t = ops::fft_operand(given, true);
  if (p.dims.empty()) return t.is(given) ? t.clone() : t;
  return ops::fft_complex(resized(all_but_last(t, p, inverse), p.dims.back(), p.points.back()), p.dims.back(), inverse, p.scale);
}

Tensor to_half_n(const Tensor& given, const OptionalDims& s, const OptionalDims& dims, Norm norm, bool inverse, const char* op) {
  if (auto y = ops::wrapped(op, to_half_n, given, s, dims, norm, inverse, op)) return *std::move(y);
  ops::require_defined(given, op, "input");
  if (is_complex(given.dtype())) {
    if (inverse) throw TypeError("Only supports floating-point dtypes, but found: {}", ops::torch_name(given.dtype()));
    throw TypeError("{} expects a real-valued input tensor, but got {}", op, ops::torch_name(given.dtype()));
  }
  const Plan p = plan_of(given, s, dims, norm, inverse, false, op);
  if (p.dims.empty()) throw RuntimeError("{} must transform at least one axis", op);
  const Tensor t = ops::fft_operand(given, false);
  return all_but_last(ops::fft_real_to_half(resized(t, p.dims.back(), p.points.back()), p.dims.back(), inverse, p.scale), p, inverse);
}

Tensor to_real_n(const Tensor& given, const OptionalDims& s, const OptionalDims& dims, Norm norm, bool inverse, const char* op) {
  if (auto y = ops::wrapped(op, to_real_n, given, s, dims, norm, inverse, op)) return *std::move(y);
  ops::require_defined(given, op, "input");
  const bool none = dims ? dims->empty() : s ? s->empty() : given.dim() == 0;
  if (none) throw RuntimeError("{} must transform at least one axis", op);
  const Plan p = plan_of(given, s, dims, norm, inverse, true, op);
  const Tensor t = all_but_last(ops::fft_operand(given, true), p, inverse);
  const int64_t last = p.dims.back(), points = p.points.back();
  return ops::fft_half_to_real(resized(t, last, points / 2 + 1), last, points, inverse, p.scale);
}

}  // namespace

Tensor fft(const Tensor& t, Length n, int64_t dim, Norm norm) { return to_complex(t, n, dim, norm, false, "fft"); }
Tensor ifft(const Tensor& t, Length n, int64_t dim, Norm norm) { return to_complex(t, n, dim, norm, true, "ifft"); }
Tensor rfft(const Tensor& t, Length n, int64_t dim, Norm norm) { return to_half(t, n, dim, norm, false, "rfft"); }
Tensor irfft(const Tensor& t, Length n, int64_t dim, Norm norm) { return to_real(t, n, dim, norm, true, "irfft"); }
Tensor hfft(const Tensor& t, Length n, int64_t dim, Norm norm) { return to_real(t, n, dim, norm, false, "hfft"); }
Tensor ihfft(const Tensor& t, Length n, int64_t dim, Norm norm) { return to_half(t, n, dim, norm, true, "ihfft"); }

Tensor fftn(const Tensor& t, const OptionalDims& s, const OptionalDims& dims, Norm norm) {
  return to_complex_n(t, s, dims, norm, false, "fftn");
}
Tensor ifftn(const Tensor& t, const OptionalDims& s, const OptionalDims& dims, Norm norm) {
  return to_complex_n(t, s, dims, norm, true, "ifftn");
}
Tensor rfftn(const Tensor& t, const OptionalDims& s, const OptionalDims& dims, Norm norm) {
  return to_half_n(t, s, dims, norm, false, "rfftn");
}
Tensor irfftn(const Tensor& t, const OptionalDims& s, const OptionalDims& dims, Norm norm) {
  return to_real_n(t, s, dims, norm, true, "irfftn");
}
Tensor hfftn(const Tensor& t, const OptionalDims& s, const OptionalDims& dims, Norm norm) {
  return to_real_n(t, s, dims, norm, false, "hfftn");
}
Tensor ihfftn(const Tensor& t, const OptionalDims& s, const OptionalDims& dims, Norm norm) {
  return to_half_n(t, s, dims, norm, true, "ihfftn");
}
Tensor fft2(const Tensor& t, const OptionalDims& s, const Dims& dims, Norm norm) { return fftn(t, s, dims, norm); }
Tensor ifft2(const Tensor& t, const OptionalDims& s, const Dims& dims, Norm norm) { return ifftn(t, s, dims, norm); }
Tensor rfft2(const Tensor& t, const OptionalDims& s, const Dims& dims, Norm norm) { return rfftn(t, s, dims, norm); }
Tensor irfft2(const Tensor& t, const OptionalDims& s, const Dims& dims, Norm norm) { return irfftn(t, s, dims, norm); }
Tensor hfft2(const Tensor& t, const OptionalDims& s, const Dims& dims, Norm norm) { return hfftn(t, s, dims, norm); }
Tensor ihfft2(const Tensor& t, const OptionalDims& s, const Dims& dims, Norm norm) { return ihfftn(t, s, dims, norm); }

namespace {

// (0 ... count - 1) / (n d); from index `turn` on, n is subtracted first.
Tensor frequencies(int64_t n, int64_t count, int64_t turn, double d, const Options& options, const char* op) {
  if (options.dtype && !is_inexact(*options.dtype)) throw RuntimeError("{} requires a floating point or complex dtype", op);
  if (n < 0) throw RuntimeError("Trying to create tensor with negative dimension {}: [{}]", n, n);
  Options o = options;
  o.requires_grad = false;
  if (!o.dtype) o.dtype = default_dtype();
  Tensor t = arange(0, count, 1, o);
  if (turn < count) t = cat({t.narrow(0, 0, turn), arange(turn - n, 0, 1, o)}, 0);
  t = t * (1 / (static_cast<double>(n) * d));
  return options.requires_grad ? t.requires_grad_() : t;
}

Tensor rolled(const Tensor& t, const OptionalDims& given, const char* op, bool back) {
  ops::require_defined(t, op, "input");
  Dims dims, shifts;
  if (given)
    dims = *given;
  else
    for (int64_t d = 0; d < t.dim(); ++d) dims.push_back(d);
  for (int64_t& d : dims) {
    d = wrap_dim(d, t.dim());
    shifts.push_back((t.size(d) + (back ? 1 : 0)) / 2);
  }
  if (dims.empty()) throw RuntimeError("`shifts` required ({} of a tensor without dimensions)", op);
  return roll(t, shifts, dims);
}

}  // namespace

Tensor fftfreq(int64_t n, double d, const Options& options) { return frequencies(n, n, n - n / 2, d, options, "fftfreq"); }
Tensor rfftfreq(int64_t n, double d, const Options& options) { return frequencies(n, n / 2 + 1, n / 2 + 1, d, options, "rfftfreq"); }
Tensor fftshift(const Tensor& t, const OptionalDims& dims) { return rolled(t, dims, "fftshift", false); }
Tensor ifftshift(const Tensor& t, const OptionalDims& dims) { return rolled(t, dims, "ifftshift", true); }

}  // namespace naru::fft
