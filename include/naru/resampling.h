// Padding, resampling and rearranging images, as PyTorch has it: input (N, C, d1...), of 1 to 3 spatial dimensions unless said otherwise.
// RuntimeError, ValueError and NotImplementedError in PyTorch's words for what does not fit.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "naru/tensor.h"

namespace naru {

// amounts: in front and behind, the last dimension first; negative ones cut. mode: "constant" (any dimensions), "reflect", "replicate" or "circular"
// (the last 1 to 3, with images and channels or channels alone in front). value: of "constant".
Tensor pad(const Tensor& input, const Dims& amounts, std::string_view mode = "constant", std::optional<double> value = {});

// Resampled to `size`. mode: "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "lanczos" or "area". align_corners: the first
// and last elements stay where they are. scales: what a step of the result is divided by, in place of the quotient of sizes. antialias: windows grow
// where the result is smaller ("bilinear", "bicubic", "lanczos").
Tensor interpolate(const Tensor& input, const Dims& size, std::string_view mode = "nearest", bool align_corners = false,
                   const std::vector<double>& scales = {}, bool antialias = false);

// The windows of (N, C, h, w) as columns (N, C * kh * kw, positions), and columns added up where they came from. Without N too.
Tensor unfold(const Tensor& input, const Dims& kernel, const Dims& dilation = {1}, const Dims& padding = {0}, const Dims& stride = {1});
Tensor fold(const Tensor& input, const Dims& output_size, const Dims& kernel, const Dims& dilation = {1}, const Dims& padding = {0},
            const Dims& stride = {1});

// (N, C, h, w) at the places grid (N, h', w', 2) names, x first, -1 and 1 being the edges; or (N, C, d, h, w) at (N, d', h', w', 3). mode: "bilinear",
// "nearest" or "bicubic" (of two dimensions). padding_mode, for places outside: "zeros", "border" or "reflection".
Tensor grid_sample(const Tensor& input, const Tensor& grid, std::string_view mode = "bilinear", std::string_view padding_mode = "zeros",
                   bool align_corners = false);
// The grid for theta (N, 2, 3) and size (N, C, h, w), or (N, 3, 4) and (N, C, d, h, w).
Tensor affine_grid(const Tensor& theta, const Dims& size, bool align_corners = false);

// (..., C r r, h, w) <-> (..., C, h r, w r).
Tensor pixel_shuffle(const Tensor& input, int64_t upscale_factor);
Tensor pixel_unshuffle(const Tensor& input, int64_t downscale_factor);
// Channels (g, C / g) as (C / g, g).
Tensor channel_shuffle(const Tensor& input, int64_t groups);

}  // namespace naru
