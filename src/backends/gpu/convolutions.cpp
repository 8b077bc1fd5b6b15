#include "backends/gpu/convolutions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <climits>

#include "backends/gpu/matmul.h"

namespace naru::backends::gpu {
namespace {

using ir::Convolution;

// True if sizes and element count fit into 32 bits: many of the libraries' kernels do not support more.
bool is_small(const Sizes5& sizes) noexcept {
  int64_t all = 1;
  for (const int64_t n : sizes)
    if (n < 1 || n > INT_MAX || (all *= n) > INT_MAX) return false;
  return true;
}

// True if equal padding on both sides gives the size of the result, as the libraries expect.
bool is_even(const Convolution& q, size_t d) noexcept {
  if (q.stride[d] > INT_MAX || q.dilation[d] > INT_MAX || q.padding[d] > INT_MAX || q.padding[d] < 0) return false;
  const int64_t rest = q.size[d] + 2 * q.padding[d] - ((q.kernel[d] - 1) * q.dilation[d] + 1);
  return rest >= 0 && 1 + rest / q.stride[d] == q.result[d];
}

bool is_float(DType type) noexcept { return type == DType::F32 || type == DType::F64 || type == DType::F16 || type == DType::BF16; }

}  // namespace

Sizes5 dense_strides(const Sizes5& sizes, bool channels_last) noexcept {
  Sizes5 strides{};
  int64_t next = channels_last ? sizes[1] : 1;
  for (size_t d = 5; d-- > 2;) strides[d] = next, next *= sizes[d];
  strides[1] = channels_last ? 1 : next;
  strides[0] = channels_last ? next : next * sizes[1];
  return strides;
}

bool is_dense(const Sizes5& strides, const Sizes5& sizes, bool channels_last) noexcept {
  const Sizes5 dense = dense_strides(sizes, channels_last);
  for (size_t d = 0; d < 5; ++d)
    if (sizes[d] != 1 && strides[d] != dense[d]) return false;
  return true;
}

Sizes5 DenseConvolution::strides_of(const Sizes5& sizes) const noexcept {
  // Treat it as 5-d: missing dimensions have size 1.
  const auto n = static_cast<size_t>(dims);
  const auto of = [&](size_t d) { return d < 2 ? d : d + 5 - n; };
  Sizes5 five{1, 1, 1, 1, 1}, narrow{};
  for (size_t d = 0; d < n; ++d) five[of(d)] = sizes[d];
  const Sizes5 strides = dense_strides(five, channels_last);
  for (size_t d = 0; d < n; ++d) narrow[d] = strides[of(d)];
  return narrow;
}

std::string DenseConvolution::words() const {
  const auto text = [&](const Sizes5& s) { return fmt::format("{}", fmt::join(s.begin(), s.begin() + dims, " x ")); };
  return fmt::format("{} of x {}, w {} and y {}", Convolution::kNames[static_cast<int>(use)], text(x), text(w), text(y));
}

std::optional<DenseConvolution> dense_convolution(const Convolution& q, bool channels_last) noexcept {
  DenseConvolution c;
  c.use = q.use, c.channels_last = channels_last;
  c.type = q.dtype, c.tf32 = q.dtype == DType::F32 && q.precision.tf32;
  if (q.precision.deterministic || !is_float(q.dtype)) return std::nullopt;
  if (!is_small(q.sizes_of_x()) || !is_small(q.sizes_of_w()) || !is_small(q.sizes_of_y())) return std::nullopt;
  for (size_t d = 0; d < 3; ++d)
    if (!is_even(q, d)) return std::nullopt;
  const bool flat = q.size[0] == 1 && q.result[0] == 1 && q.kernel[0] == 1 && q.padding[0] == 0;
  const size_t from = flat ? 1 : 0;
  c.dims = flat ? 4 : 5;
  const auto put = [&](Sizes5& to, const Sizes5& sizes) {
    to[0] = sizes[0], to[1] = sizes[1];
    for (size_t d = from; d < 3; ++d) to[2 + d - from] = sizes[2 + d];
  };
  put(c.x, q.sizes_of_x()), put(c.w, q.sizes_of_w()), put(c.y, q.sizes_of_y());
  for (size_t d = from; d < 3; ++d)
    c.padding[d - from] = q.padding[d], c.stride[d - from] = q.stride[d], c.dilation[d - from] = q.dilation[d];
  return c;
}

void ConvolutionLibrary::warn_out_of_workspace() { gpu::warn_out_of_workspace(told_, device_.device(), label(), "convolutions"); }

}  // namespace naru::backends::gpu
