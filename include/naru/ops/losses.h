// Multi-class margin losses, and connectionist temporal classification. Gradients match PyTorch's.
#pragma once

#include <cstdint>
#include <vector>

#include "naru/ops.h"

namespace naru {

// The mean over classes i other than the target y of max(0, margin - x[y] + x[i])^p, times weight[y]; p is 1 or 2 (ValueError). input (N,
// C) or (C); target int64 (N), (1) or (). weight (C) must not require grad (RuntimeError).
Tensor multi_margin_loss(const Tensor& input, const Tensor& target, int64_t p = 1, double margin = 1, const Tensor& weight = {},
                         Reduction reduction = Reduction::Mean);
// For several targets per sample: the sum over targets y and non-target classes i of max(0, 1 - (x[y] - x[i])), divided by C. input (N, C)
// or (C); target int64 of the same shape: class indices up to the first negative one. Throws RuntimeError for other shapes and indices.
Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean);
// The mean over classes of -(y log sigmoid(x) + (1 - y) log sigmoid(-x)), times weight. input and target (..., C); throws IndexError for
// 0-d input.
Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                                   Reduction reduction = Reduction::Mean);

// Minus the log probability of the targets, summed over all alignments (Graves et al., 2006). log_probs (T, N, C) or (T, C), float32 or
// float64 (NotImplementedError); targets (N, S), or concatenated (sum of target_lengths); lengths: N integers. Mean: divides by
// target_lengths (at least 1), then averages over the batch. zero_infinity: losses of targets too long for their input, and their
// gradients, are 0. The gradient assumes that log_probs is the output of log_softmax; it is not itself differentiable (RuntimeError).
// Throws RuntimeError for invalid lengths and labels. The host reads the lengths.
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const std::vector<int64_t>& input_lengths,
                const std::vector<int64_t>& target_lengths, int64_t blank = 0, Reduction reduction = Reduction::Mean,
                bool zero_infinity = false);
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
                int64_t blank = 0, Reduction reduction = Reduction::Mean, bool zero_infinity = false);

}  // namespace naru
