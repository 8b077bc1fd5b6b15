// interpolate, by window tables, one for each dimension (ops/nn/windows.h).
#include <cmath>
#include <numbers>

#include "naru/autograd.h"
#include "naru/ops.h"
#include "naru/ops/pooling.h"
#include "naru/ops/resampling.h"
#include "ops/nn/windows.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

using ops::WindowEntry;
using ops::WindowTable;
using Positions = std::vector<std::vector<WindowEntry>>;

// One dimension. given: the scale factor of the user; 0 to derive it from the sizes. scale(): input elements per output position.
struct Line {
  int64_t in, out;
  bool align_corners;
  double given;
  double scale() const {
    if (align_corners) return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
    return given > 0 ? 1 / given : static_cast<double>(in) / static_cast<double>(out);
  }
  // The output position p in input coordinates.
  double centre(int64_t p) const {
    return align_corners ? scale() * static_cast<double>(p) : scale() * (static_cast<double>(p) + 0.5) - 0.5;
  }
};

// In float32, as PyTorch does, so that both choose the same element.
WindowTable nearest_table(const Line& l, float half) {
  const float scale = l.given > 0 ? static_cast<float>(1 / l.given) : static_cast<float>(l.in) / static_cast<float>(l.out);
  return ops::single_table(
      l.in, l.out, [&](int64_t p) { return std::min(static_cast<int64_t>(std::floor((static_cast<float>(p) + half) * scale)), l.in - 1); });
}

WindowTable linear_table(const Line& l) {
  Positions positions;
  for (int64_t p = 0; p < l.out; ++p) {
    const double at = std::max(l.centre(p), 0.0);
    const int64_t first = std::min(static_cast<int64_t>(at), l.in - 1);
    const double second = std::clamp(at - static_cast<double>(first), 0.0, 1.0);
    positions.push_back({{first, 1 - second}, {std::min(first + 1, l.in - 1), second}});
  }
  return ops::table_of(l.in, positions, true);
}

// Keys (1981): piecewise cubic with slope a at distance 1.
double cubic(double x, double a) {
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}
double hat(double x) { return std::max(1 - std::abs(x), 0.0); }
double cubic_antialiased(double x) { return cubic(x, -0.5); }
double sinc(double x) { return x == 0 ? 1 : std::sin(x * std::numbers::pi) / (x * std::numbers::pi); }
double lanczos(double x) { return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0; }

WindowTable cubic_table(const Line& l) {
  Positions positions;
  for (int64_t p = 0; p < l.out; ++p) {
    const double at = l.centre(p), whole = std::floor(at);
    std::vector<WindowEntry> seen;
    for (int64_t k = -1; k < 3; ++k)
      seen.push_back(
          {std::clamp<int64_t>(static_cast<int64_t>(whole) + k, 0, l.in - 1), cubic(at - whole - static_cast<double>(k), -0.75)});
    positions.push_back(seen);
  }
  return ops::table_of(l.in, positions, true);
}

// A filter that reaches `reach` elements to either side, stretched for downsampling. The weights sum to 1. As in PyTorch align_corners only changes
// the scale: positions are those of centres of elements all the same.
WindowTable antialiased_table(const Line& l, double (*filter)(double), double reach) {
  const double scale = l.scale(), stretch = std::max(scale, 1.0), support = reach * stretch, half = 0.5;
  Positions positions;
  for (int64_t p = 0; p < l.out; ++p) {
    const double centre = scale * (static_cast<double>(p) + half);
    const int64_t first = std::max(static_cast<int64_t>(centre - support + half), int64_t{0});
    const int64_t last = std::min(static_cast<int64_t>(centre + support + half), l.in);
    std::vector<WindowEntry> seen;
    double total = 0;
    for (int64_t e = first; e < last; ++e) {
      seen.push_back({e, filter((static_cast<double>(e) - centre + half) / stretch)});
      total += seen.back().weight;
    }
    for (WindowEntry& e : seen)
      if (total != 0) e.weight /= total;
    positions.push_back(seen);
  }
  return ops::table_of(l.in, positions, true);
}

struct Mode {
  std::string_view name;
  int64_t dims;  // 0: any
  WindowTable (*table)(const Line&);
  const char* op;
};
constexpr Mode kModes[] = {
    {"nearest", 0, [](const Line& l) { return nearest_table(l, 0); }, "upsample_nearest"},
    {"nearest-exact", 0, [](const Line& l) { return nearest_table(l, 0.5f); }, "_upsample_nearest_exact"},
    {"linear", 1, linear_table, "upsample_linear"},
    {"bilinear", 2, linear_table, "upsample_bilinear"},
    {"trilinear", 3, linear_table, "upsample_trilinear"},
    {"bicubic", 2, cubic_table, "upsample_bicubic"},
    {"lanczos", 2, [](const Line& l) { return antialiased_table(l, lanczos, 3); }, "upsample_lanczos"},
};
constexpr Mode kAntialiased[] = {
    {"bilinear", 2, [](const Line& l) { return antialiased_table(l, hat, 1); }, "_upsample_bilinear2d_aa"},
    {"bicubic", 2, [](const Line& l) { return antialiased_table(l, cubic_antialiased, 2); }, "_upsample_bicubic2d_aa"},
    {"lanczos", 2, [](const Line& l) { return antialiased_table(l, lanczos, 3); }, "_upsample_lanczos2d_aa"},
};
constexpr const char* kNodes[] = {"UpsampleBackward0", "UpsampleNearest1DBackward0", "UpsampleNearest2DBackward0",
                                  "UpsampleNearest3DBackward0"};

const Mode& mode_of(std::string_view name, bool antialias, int64_t rank) {
  for (const Mode& m : antialias ? std::span<const Mode>(kAntialiased) : std::span<const Mode>(kModes)) {
    if (m.name != name) continue;
    if (m.dims != 0 && m.dims != rank - 2) throw NotImplementedError("Got {}D input, but {} mode needs {}D input", rank, name, m.dims + 2);
    return m;
  }
  throw NotImplementedError(
      "Input Error: Only 3D, 4D and 5D input Tensors supported (got {}D) for the modes: nearest | linear | bilinear | bicubic | trilinear "
      "| lanczos | "
      "area | nearest-exact (got {})",
      rank, name);
}

}  // namespace

namespace {

// PyTorch's weights for uint8: fixed point, with the power of two for which the greatest weight has 16 bits. Their sums are exact in float32.
WindowTable in_16_bits(WindowTable table) {
  double greatest = 0;
  for (const double w : table.weight) greatest = std::max(greatest, w);
  int bits = 0;
  while (bits < 22 && static_cast<int64_t>(0.5 + std::ldexp(greatest, bits + 1)) < (int64_t{1} << 15)) ++bits;
  for (double& w : table.weight) w = std::ldexp(std::trunc(std::ldexp(w, bits) + (w < 0 ? -0.5 : 0.5)), -bits);
  return table;
}

// uint8 interpolation: along rows, then along columns, each rounded to uint8, halves up.
Tensor picture_sum(const Tensor& x, const ops::WindowTables& tables) {
  const NoGrad off;
  const auto bytes = [](const Tensor& t) { return clamp(floor(t + 0.5), 0.0, 255.0); };
  const Tensor across = bytes(ops::window_sum(x.to(DType::F32), {ops::identity_table(x.size(2)), in_16_bits(tables[1])}, kNodes[0]));
  return bytes(ops::window_sum(across, {in_16_bits(tables[0]), ops::identity_table(across.size(3))}, kNodes[0])).to(DType::U8);
}

}  // namespace

Tensor interpolate(const Tensor& x, const Dims& size, std::string_view mode, bool align_corners, const std::vector<double>& scales,
                   bool antialias) {
  ops::require_defined(x, "interpolate", "input");
  const int64_t rank = x.dim(), n = rank - 2;
  if (rank < 3 || rank > 5) mode_of("", false, rank);
  if (static_cast<int64_t>(size.size()) != n)
    throw ValueError(
        "Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of {} and output size of "
        "{}.",
        Dims(std::span<const int64_t>(x.sizes()).subspan(2)).str(), size.str());
  if (mode == "area") return adaptive_avg_pool(n, x, size);
  const Mode& m = mode_of(mode, antialias, rank);
  if (align_corners && (mode.starts_with("nearest")))
    throw ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear");
  const bool picture = x.dtype() == DType::U8 && (mode == "bilinear" || mode == "bicubic");
  const bool whole = picture || (mode.starts_with("nearest") && x.dtype() == DType::U8);
  if (!is_floating(x.dtype()) && !whole)
    throw NotImplementedError("\"{}{}d\" not implemented for '{}' (interpolate, mode {}: convert to floating point first)", m.op, n,
                              ops::torch_name(x.dtype()), mode);
  for (int64_t d = 0; d < n; ++d)
    if (x.size(d + 2) < 1 || size[static_cast<size_t>(d)] < 1)
      throw RuntimeError("Input and output sizes should be greater than 0, but got input {} output {}", x.sizes().str(), size.str());
  ops::check_output_size(x, size, "interpolate");
  ops::WindowTables tables;
  for (int64_t d = 0; d < n; ++d) {
    const auto i = static_cast<size_t>(d);
    const Line line{x.size(d + 2), size[i], align_corners, scales.empty() ? 0 : scales[i]};
    // If the dimension does not change, there is nothing to compute.
    const bool same = line.in == line.out && line.scale() == 1 && mode != "lanczos";
    tables.push_back(same ? ops::identity_table(line.in) : m.table(line));
  }
  if (picture) return picture_sum(x, tables);
  return ops::window_sum(x, std::move(tables), mode == "nearest" ? kNodes[n] : kNodes[0]);
}

}  // namespace naru
