// Padding, resampling and rearranging images, with PyTorch's semantics: input (N, C, d1...), with 1 to 3 spatial dimensions unless stated
// otherwise. Throw RuntimeError, ValueError and NotImplementedError with PyTorch's texts for arguments that do not fit.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "naru/tensor.h"

namespace naru {

// amounts: (before, after) per dimension, the last dimension first; negative amounts crop. mode: "constant" (any dimensions), "reflect",
// "replicate" or "circular" (the last 1 to 3 dimensions, preceded by batch and channel dimensions or a channel dimension). value: for
// "constant".
Tensor pad(const Tensor& input, const Dims& amounts, std::string_view mode = "constant", std::optional<double> value = {});

// Resamples to `size`. mode: "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear", "lanczos" or "area". align_corners:
// the first and last elements keep their positions. scales: the scale factors to use instead of the quotients of the sizes. antialias:
// enlarges the windows when downsampling ("bilinear", "bicubic", "lanczos").
Tensor interpolate(const Tensor& input, const Dims& size, std::string_view mode = "nearest", bool align_corners = false,
                   const std::vector<double>& scales = {}, bool antialias = false);

// unfold: the windows of (N, C, h, w) as columns (N, C * kh * kw, positions). fold: adds columns up at their windows. The N dimension is
// optional.
Tensor unfold(const Tensor& input, const Dims& kernel, const Dims& dilation = {1}, const Dims& padding = {0}, const Dims& stride = {1});
Tensor fold(const Tensor& input, const Dims& output_size, const Dims& kernel, const Dims& dilation = {1}, const Dims& padding = {0},
            const Dims& stride = {1});

// Samples (N, C, h, w) at the coordinates grid (N, h', w', 2), x first, with -1 and 1 at the edges; or (N, C, d, h, w) at (N, d', h', w',
// 3). mode: "bilinear", "nearest" or "bicubic" (2-D only). padding_mode, for coordinates outside: "zeros", "border" or "reflection".
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
