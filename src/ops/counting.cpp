#include "naru/counting.h"

#include <cmath>
#include <numbers>
#include <numeric>

#include "naru/autograd.h"
#include "naru/complex.h"
#include "ops/autocast.h"
#include "ops/common.h"
#include "ops/complex.h"
#include "ops/half.h"
#include "ops/host_loop.h"
#include "ops/needs_elements.h"
#include "ops/numbers.h"
#include "ops/reduction.h"
#include "ops/rules.h"
#include "ops/scan.h"
#include "ops/sparse.h"
#include "ops/strides.h"
#include "ops/type_names.h"

namespace naru {
namespace {

constexpr double kLn2 = 0.69314718055994530942;

Options like(const Tensor& t, DType type) { return Options(type, t.device()); }
Tensor places(int64_t n, const Tensor& t) { return arange(0, n, 1, like(t, DType::I64)); }

// 0, 1, 2 ... along `dim`, broadcast over the rest.
Tensor places_along(const Tensor& t, int64_t dim, DType type = DType::I64) {
  Dims line(static_cast<size_t>(t.dim()), 1);
  line[static_cast<size_t>(dim)] = t.size(dim);
  return arange(0, t.size(dim), 1, like(t, type)).reshape(line).expand(t.sizes());
}

// Combines each element with those before it, over distances of 1, 2, 4 ... f(earlier, later).
template <class F>
Tensor scanned(Tensor value, int64_t dim, F f) {
  const int64_t n = value.size(dim);
  for (int64_t step = 1; step < n; step *= 2)
    value = cat({value.narrow(dim, 0, step), f(value.narrow(dim, 0, n - step), value.narrow(dim, step, n - step))}, dim);
  return value;
}

// The greatest so far, and where it stands: the later of equal ones, and of NaNs.
std::pair<Tensor, Tensor> running_greatest(const Tensor& t, int64_t dim, bool greatest) {
  const NoGrad no_history;
  if (dim == t.dim() - 1 && size_of(t.dtype()) >= 4 && ops::takes_host_loop({&t})) {
    const Tensor rows = t.contiguous(), values = ops::make_result(t.sizes(), t.dtype(), t.device(), "cummax"),
                 places = ops::make_result(t.sizes(), DType::I64, t.device(), "cummax");
    ops::run_host_loop(ir::HostLoop::Kind::RunningExtreme, {&rows}, {&values, &places}, {greatest});
    return {values, places};
  }
  const Tensor x = t.detach(), values = ops::running_extreme(x, dim, greatest);
  // Places that float32 holds exactly are faster to go through.
  const bool few = x.size(dim) <= int64_t{1} << 24;
  const Tensor places = places_along(x, dim, few ? DType::F32 : DType::I64);
  const Tensor at = ops::running_extreme(where((x == values) | (x != x), places, -1), dim, true);
  return {values, few ? at.to(DType::I64) : at};
}

std::pair<Tensor, Tensor> running(const Tensor& t, int64_t dim, bool greatest, const char* op) {
  ops::require_defined(t, op, "input");
  ops::refuse_complex(t.dtype(), greatest ? "cummax_helper_cpu" : "cummin_helper_cpu");
  const int64_t d = wrap_dim(dim, t.dim());
  if (t.dim() == 0 || t.numel() == 0) return {t.clone(), zeros(t.sizes(), like(t, DType::I64))};
  const auto [values, at] = running_greatest(t, d, greatest);
  return {t.requires_grad() && grad_enabled() ? gather(t, d, at) : values, at};
}

void require_integers(const Tensor& t, const char* kernel) {
  if (!is_integral(t.dtype()) || t.dtype() == DType::Bool)
    throw NotImplementedError("\"{}\" not implemented for '{}' (wanted integers)", kernel, ops::torch_name(t.dtype()));
}

void require_vector(const Tensor& t, const char* op) {
  ops::require_defined(t, op, "input");
  if (t.dim() != 1) throw RuntimeError("{}: Expect a 1D vector, but got shape {}", op, t.sizes().str());
}

}  // namespace

std::pair<Tensor, Tensor> cummax(const Tensor& t, int64_t dim) { return running(t, dim, true, "cummax"); }
std::pair<Tensor, Tensor> cummin(const Tensor& t, int64_t dim) { return running(t, dim, false, "cummin"); }

Tensor logcumsumexp(const Tensor& t, int64_t dim) {
  ops::require_defined(t, "logcumsumexp", "input");
  if (!is_inexact(t.dtype()))
    throw NotImplementedError("\"logcumsumexp_out_cpu\" not implemented for '{}' (convert to floating point first)",
                              ops::torch_name(t.dtype()));
  const int64_t d = wrap_dim(dim, t.dim());
  if (t.dim() == 0 || t.numel() == 0) return t.clone();
  // Of two that are -inf nothing is left, and no gradient: where both are, logaddexp's would be that of inf - inf.
  const auto together = [](const Tensor& earlier, const Tensor& later) {
    if (is_complex(earlier.dtype())) return logaddexp(earlier, later);
    const Tensor none = logical_and(isneginf(earlier.detach()), isneginf(later.detach()));
    return where(none, -std::numeric_limits<double>::infinity(), logaddexp(where(none, 0.0, earlier), where(none, 0.0, later)));
  };
  const bool half = ops::is_half(t.dtype());
  const Tensor y = scanned(half ? t.to(DType::F32) : t, d, together);
  return (half ? y.to(t.dtype()) : y).contiguous();
}

namespace {

std::pair<Tensor, Tensor> mode_of_rows(const Tensor& t, int64_t d, bool keepdim) {
  const int64_t n = t.size(d);
  const auto [sorted, order] = sort(t.detach(), d);
  if (d == t.dim() - 1 && size_of(t.dtype()) >= 4 && ops::takes_host_loop({&t})) {
    const Dims shape = ops::reduced_shape(t.sizes(), ops::dim_set(d, t.dim()), keepdim);
    const Tensor values = ops::make_result(shape, t.dtype(), t.device(), "mode"),
                 places = ops::make_result(shape, DType::I64, t.device(), "mode");
    const Tensor rows = sorted.contiguous(), numbers = order.contiguous();
    ops::run_host_loop(ir::HostLoop::Kind::Modes, {&rows, &numbers}, {&values, &places});
    return {values, places};
  }
  const Tensor at = places_along(sorted, d);
  // Each element's place in its run; the longest run is met first where its values are least.
  const Tensor same =
      cat({zeros_like(sorted.narrow(d, 0, 1), like(t, DType::Bool)), sorted.narrow(d, 1, n - 1) == sorted.narrow(d, 0, n - 1)}, d);
  const Tensor begins = cummax(where(same, zeros_like(at), at), d).first;
  const Tensor index = gather(order, d, argmax(at - begins, d, true));
  const Tensor value = gather(t, d, index);
  return keepdim ? std::pair(value, index) : std::pair(value.squeeze(d), index.squeeze(d));
}

}  // namespace

// A NaN equals nothing, so that it is met most often only where nothing is met twice; then the first element is the mode if it is one.
std::pair<Tensor, Tensor> mode(const Tensor& t, int64_t dim, bool keepdim) {
  ops::require_defined(t, "mode", "input");
  if (t.dim() == 0) return {t.clone(), zeros({}, like(t, DType::I64))};
  const int64_t d = wrap_dim(dim, t.dim());
  if (t.size(d) == 0) throw IndexError("mode(): Expected reduction dim {} to have non-zero size.", d);
  if (!is_floating(t.dtype()) || t.size(d) == 1 || t.numel() == 0) return mode_of_rows(t, d, keepdim);
  const auto [values, places] = mode_of_rows(t, d, true);
  const Tensor first = t.narrow(d, 0, 1);
  const Tensor alone = logical_and(isnan(first.detach()), sum(eq(t.detach(), values.detach()), Dims{d}, true) <= 1);
  const Tensor value = where(alone, first, values), place = where(alone, Operand(0), places);
  return keepdim ? std::pair(value, place) : std::pair(value.squeeze(d), place.squeeze(d));
}

std::tuple<Tensor, Tensor, Tensor> unique_consecutive(const Tensor& t, std::optional<int64_t> dim) {
  ops::require_defined(t, "unique_consecutive", "input");
  ops::refuse_complex(t.dtype(), "unique");
  if (dim) ops::require_unique_dim(t, *dim);
  const NoGrad no_history;
  const Tensor x = dim ? t.detach().movedim(*dim, 0) : t.detach().reshape({-1});
  const int64_t n = x.size(0);
  if (n == 0) return {dim ? t.clone() : x.clone(), zeros(dim ? Dims{0} : t.sizes(), like(t, DType::I64)), zeros({0}, like(t, DType::I64))};
  Tensor differs = ne(x.narrow(0, 1, n - 1), x.narrow(0, 0, n - 1));
  if (differs.dim() > 1) differs = any(differs.reshape({n - 1, differs.numel() / std::max<int64_t>(n - 1, 1)}), Dims{1});
  differs = cat({ones({1}, like(t, DType::Bool)), differs}, 0);
  const Tensor starts = nonzero(differs).reshape({-1});
  const Tensor ends = cat({starts.narrow(0, 1, starts.numel() - 1), full({1}, n, like(t, DType::I64))}, 0);
  const Tensor inverse = cumsum(differs.to(DType::I64), 0) - 1;
  const Tensor values = index_select(x, 0, starts);
  return {dim ? values.movedim(0, *dim) : values, dim ? inverse : inverse.reshape(t.sizes()), ends - starts};
}

Tensor gcd(const Tensor& a, const Tensor& b) {
  require_integers(a, "gcd_cpu");
  require_integers(b, "gcd_cpu");
  const Operand both[] = {a, b};
  const DType type = ops::result_type(both);
  if (ops::takes_host_loop({&a, &b})) {
    const Dims shape = broadcast_shapes(a.sizes(), b.sizes());
    const Dims strides = ops::elementwise_strides(shape, both);
    const auto laid_out = [&] { return ops::make_result(shape, strides, type, a.device(), "gcd"); };
    const auto operand = [&](const Tensor& t) { return t.sizes() == shape && t.strides() == strides ? t.to(type) : laid_out().copy_(t); };
    const Tensor first = operand(a), second = operand(b), out = laid_out();
    ops::run_host_loop(ir::HostLoop::Kind::Gcd, {&first, &second}, {&out});
    return out;
  }
  Tensor x = abs(a.to(type)), y = abs(b.to(type));
  // Euclid's steps, until all are done.
  while (ops::number_or(any(y != 0), 0) != 0) {
    const Tensor done = y == 0, rest = where(done, y, remainder(x, where(done, ones_like(y), y)));
    x = where(done, x, y);
    y = rest;
  }
  const Tensor shape = x + y;
  return abs(x).expand(shape.sizes()).clone();  // negative where the least number, which has no absolute value, was among the operands
}

Tensor lcm(const Tensor& a, const Tensor& b) {
  require_integers(a, "lcm_cpu");
  require_integers(b, "lcm_cpu");
  const Tensor g = gcd(a, b);
  return where(g == 0, zeros_like(g), abs(floor_divide(a.to(g.dtype()), where(g == 0, ones_like(g), g)) * b.to(g.dtype())));
}

Tensor cov(const Tensor& t, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  ops::require_defined(t, "cov", "input");
  if (t.dim() > 2) throw RuntimeError("cov(): expected input to have two or fewer dimensions but got an input with {} dimensions", t.dim());
  if (t.dtype() == DType::Bool) throw NotImplementedError("cov(): bool dtype is not supported for input");
  Tensor x = t.dim() < 2 ? t.reshape({1, -1}) : t;
  if (!is_inexact(x.dtype())) x = x.to(default_dtype());
  const int64_t n = x.size(1);
  for (const auto& [w, name] : {std::pair(&fweights, "fweights"), std::pair(&aweights, "aweights")})
    if (w->defined() && (w->dim() > 1 || w->numel() != n))
      throw RuntimeError("cov(): expected {} to have the same numel() as there are observations in the input but got {} != {}", name,
                         w->numel(), n);
  const Dims shape = x.size(0) == 1 ? Dims{} : Dims{x.size(0), x.size(0)};  // one variable's is a number
  if (n > 0) x = x - x.detach().narrow(1, 0, 1);                            // a great mean leaves no digits to what differs
  Tensor weights = fweights.defined() ? fweights : Tensor();
  if (aweights.defined()) weights = weights.defined() ? weights * aweights : aweights;
  if (!weights.defined()) {
    const Tensor centered = x - mean(x, Dims{1}, true);
    return (matmul(centered, conj(centered.t())) / static_cast<double>(std::max<int64_t>(n - correction, 0))).reshape(shape);
  }
  const Tensor total = sum(weights);
  const Tensor centered = x - (sum(x * weights, Dims{1}, true) / total);
  const Tensor norm = aweights.defined() && correction != 0 ? total - sum(weights * aweights) * static_cast<double>(correction) / total
                                                            : total - static_cast<double>(correction);
  // As a matrix still, beside which the norm's type does not count.
  return (matmul(centered, conj((centered * weights).t())) / clamp_min(norm, zeros_like(norm))).reshape(shape);
}

Tensor corrcoef(const Tensor& t) {
  ops::require_defined(t, "corrcoef", "input");
  if (t.dim() > 2)
    throw RuntimeError("corrcoef(): expected input to have two or fewer dimensions but got an input with {} dimensions", t.dim());
  const Tensor c = cov(t);
  if (c.dim() == 0) return c / c;
  const Tensor deviation = sqrt(real(c.diagonal()));
  const Tensor r = c / deviation.unsqueeze(-1) / deviation.unsqueeze(0);
  const auto limited = [](const Tensor& x) { return clamp(x, std::optional<Operand>(Operand(-1)), std::optional<Operand>(Operand(1))); };
  return is_complex(r.dtype()) ? complex(limited(real(r)), limited(imag(r))) : limited(r);
}

Tensor combinations(const Tensor& t, int64_t r, bool with_replacement) {
  ops::require_defined(t, "combinations", "input");
  if (t.dim() != 1) throw RuntimeError("Expect a 1D vector, but got shape {}", t.sizes().str());
  if (r < 0) throw RuntimeError("Expect a non-negative number, but got {}", r);
  if (r == 0) return empty({0}, Options(t.dtype(), t.device()));
  // All tuples of places; those in order are kept.
  const std::vector<Tensor> grids = meshgrid(std::vector<Tensor>(static_cast<size_t>(r), places(t.numel(), t)));
  Tensor keep = ones(grids[0].sizes(), like(t, DType::Bool));
  for (size_t i = 1; i < grids.size(); ++i) keep = keep & (with_replacement ? grids[i - 1] <= grids[i] : grids[i - 1] < grids[i]);
  std::vector<Tensor> columns;
  for (const Tensor& g : grids) columns.push_back(index_select(t, 0, masked_select(g, keep)));
  return stack(columns, 1);
}

Tensor cartesian_prod(const std::vector<Tensor>& vectors) {
  if (vectors.empty()) throw RuntimeError("meshgrid expects a non-empty TensorList (cartesian_prod)");
  for (const Tensor& t : vectors)
    if (t.dim() != 1) throw RuntimeError("Expect a 1D vector, but got shape {}", t.sizes().str());
  if (vectors.size() == 1) return vectors[0];
  std::vector<Tensor> columns;
  for (const Tensor& g : meshgrid(vectors)) columns.push_back(g.reshape({-1}));
  return stack(columns, 1);
}

namespace {
// Matrices of one type without a history are written into zeros, undefined else.
Tensor block_diag_at_once(const std::vector<Tensor>& blocks, int64_t width) {
  int64_t height = 0;
  for (const Tensor& b : blocks) {
    if (b.dtype() != blocks[0].dtype() || b.device() != blocks[0].device() || (b.requires_grad() && grad_enabled()) ||
        ops::has_sparse_form(b))
      return {};
    height += b.size(0);
  }
  const Tensor out = zeros({height, width}, Options(blocks[0].dtype(), blocks[0].device()));
  for (int64_t row = 0, column = 0; const Tensor& b : blocks) {
    if (b.numel() > 0) ops::make_view(out, b.sizes(), out.strides(), row * width + column, "block_diag").copy_(b);
    row += b.size(0), column += b.size(1);
  }
  return out;
}
}  // namespace

Tensor block_diag(const std::vector<Tensor>& matrices) {
  std::vector<Tensor> blocks;
  int64_t width = 0;
  for (size_t i = 0; i < matrices.size(); ++i) {
    const Tensor& t = matrices[i];
    if (t.dim() > 2)
      throw RuntimeError("torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {} has {} dimensions", i, t.dim());
    blocks.push_back(t.dim() == 2 ? t : t.reshape({1, -1}));
    width += blocks.back().size(1);
  }
  if (blocks.empty()) return empty({1, 0});
  if (Tensor out = block_diag_at_once(blocks, width); out.defined()) return out;
  std::vector<Tensor> rows;
  for (int64_t at = 0; const Tensor& b : blocks) {
    const auto gap = [&](int64_t n) { return zeros({b.size(0), n}, Options(b.dtype(), b.device())); };
    rows.push_back(cat({gap(at), b, gap(width - at - b.size(1))}, 1));
    at += b.size(1);
  }
  return cat(rows, 0);
}

Tensor vander(const Tensor& t, std::optional<int64_t> n, bool increasing) {
  ops::require_defined(t, "vander", "input");
  if (t.dim() != 1) throw RuntimeError("x must be a one-dimensional tensor. (vander: got shape {})", t.sizes().str());
  const int64_t columns = n.value_or(t.numel());
  if (columns < 0) throw RuntimeError("N must be non-negative. (vander: got {})", columns);
  const DType type = t.dtype() == DType::Bool || is_integral(t.dtype()) ? DType::I64 : t.dtype();
  Tensor powers = arange(0, columns, 1, like(t, DType::I64));
  if (!increasing) powers = flip(powers, {0});
  return pow(t.to(type).unsqueeze(1), powers.to(type));
}

Tensor renorm(const Tensor& t, double p, int64_t dim, double most) {
  if (const autocast::Casts c("renorm", {&t}); c) return renorm(c[0], p, dim, most);
  ops::require_defined(t, "renorm", "input");
  if (!(p > 0)) throw RuntimeError("renorm: non-positive-norm not supported");
  if (most < 0) throw RuntimeError("renorm: expected maxnorm to be >= 0 but got {}", most);
  if (t.dim() < 2) throw RuntimeError("renorm: input needs at least 2 dimensions, got {} dimensions", t.dim());
  const int64_t d = wrap_dim(dim, t.dim());
  Dims others;
  for (int64_t i = 0; i < t.dim(); ++i)
    if (i != d) others.push_back(i);
  const Tensor n = norm(t, p, others, true);
  return t.contiguous() * where(n > most, most / (n + 1e-7), ones_like(n));
}

Tensor addr(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  if (const autocast::Casts k("addr", {&c, &a, &b}); k) return addr(k[0], k[1], k[2], beta, alpha);
  require_vector(a, "addr");
  require_vector(b, "addr");
  const Operand operands[] = {c, a, b};
  const DType type = ops::result_type(operands);
  ops::require_factor(type, beta, "beta"), ops::require_factor(type, alpha, "alpha");
  const bool none = !beta.to_bool();
  if (type == DType::Bool) {
    const Tensor both = logical_and(logical_and(a.unsqueeze(1), b.unsqueeze(0)), Operand(alpha.to_bool()));
    return none ? both : logical_or(logical_and(c, Operand(true)), both);
  }
  const Tensor product = outer(a.to(type), b.to(type)) * alpha;
  return none ? product : c.to(type) * beta + product;
}

namespace {
Tensor running_sum_of_pairs(const Tensor& y, const Tensor& widths, int64_t d) {
  const int64_t n = y.size(d);
  const Tensor pairs = y.narrow(d, 0, std::max<int64_t>(n - 1, 0)) + y.narrow(d, std::min<int64_t>(n, 1), std::max<int64_t>(n - 1, 0));
  return cumsum(widths.defined() ? pairs * widths : pairs, d) / 2;
}

void require_numbers_of(const Tensor& y) {
  ops::require_defined(y, "cumulative_trapezoid", "y");
  if (y.dtype() == DType::Bool) throw NotImplementedError("cumulative_trapezoid: received a bool input for `y`, but bool is not supported");
}

}  // namespace

Tensor cumulative_trapezoid(const Tensor& y, const Operand& dx, int64_t dim) {
  require_numbers_of(y);
  const Operand both[] = {y, dx};
  if (const DType type = ops::result_type(both); ops::is_half(type))  // rounded once
    return cumulative_trapezoid(y.to(DType::F32), dx.is_tensor() ? Operand(dx.tensor().to(DType::F32)) : dx, dim).to(type);
  return running_sum_of_pairs(y, {}, wrap_dim(dim, y.dim())) * dx;
}
Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  require_numbers_of(y);
  const int64_t d = wrap_dim(dim, y.dim());
  const Operand both[] = {y, x};
  if (const DType type = ops::result_type(both); ops::is_half(type))
    return cumulative_trapezoid(y.to(DType::F32), x.to(DType::F32), dim).to(type);
  Tensor at = x;
  if (x.dim() == 1) {
    if (x.numel() != y.size(d))
      throw RuntimeError("cumulative_trapezoid: There must be one `x` value for each sample point (got {} and {})", x.numel(), y.size(d));
    Dims line(static_cast<size_t>(y.dim()), 1);
    line[static_cast<size_t>(d)] = x.numel();
    at = x.reshape(line);
  }
  return running_sum_of_pairs(y, diff(at, 1, d), d);
}

// A floating type stays what it is, however wide the power of two. Whole powers are taken in two halves, each of which is a number where the whole
// would overflow.
Tensor ldexp(const Tensor& t, const Operand& exponent) {
  if (exponent.is_tensor() ? is_inexact(exponent.tensor().dtype()) : exponent.scalar().is_float()) return t * pow(Operand(2.0), exponent);
  const DType type = is_inexact(t.dtype()) ? t.dtype() : default_dtype();
  const Tensor n = exponent.is_tensor() ? exponent.tensor().to(DType::I64) : scalar_tensor(exponent.scalar(), like(t, DType::I64));
  const Tensor half = floor_divide(n, Operand(2));
  return t * pow(Operand(2.0), half.to(type)) * pow(Operand(2.0), (n - half).to(type));
}
Tensor logaddexp2(const Tensor& a, const Tensor& b) {
  const Operand operands[] = {a, b};
  const DType type = ops::result_type(operands);
  ops::require_floating(type, "logaddexp2_cpu");
  if (ops::is_half(type)) return logaddexp2(a.to(DType::F32), b.to(DType::F32)).to(type);
  return logaddexp(a * kLn2, b * kLn2) / kLn2;
}
Tensor sinc(const Tensor& t) {
  if (ops::is_half(t.dtype())) return sinc(t.to(DType::F32)).to(t.dtype());
  const Tensor x = (is_inexact(t.dtype()) ? t : t.to(default_dtype())) * std::numbers::pi;
  // Where the derivatives' divisors would be 0, or nothing of the differences they are made of would be left, so many terms of the series are exact.
  const Tensor near = abs(x) < 1e-2, square = where(near, x * x, 0.0);
  const Tensor series = 1.0 - square * (1.0 / 6 - square * (1.0 / 120 - square * (1.0 / 5040 - square * (1.0 / 362880))));
  return where(near, series, sin(x) / where(near, 1.0, x));
}

}  // namespace naru
