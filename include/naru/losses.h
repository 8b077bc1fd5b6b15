// Losses over several classes with margins, and of sequences (connectionist temporal classification). Gradients follow those of PyTorch.
#pragma once

#include <cstdint>
#include <vector>

#include "naru/ops.h"

namespace naru {

// The mean over classes i other than the target y of max(0, margin - x[y] + x[i])^p, times weight[y]; p is 1 or 2 (ValueError).
// input (N, C) or (C), target int64 (N), (1) or (). weight (C): no gradient flows to it (RuntimeError where it requires one).
Tensor multi_margin_loss(const Tensor& input, const Tensor& target, int64_t p = 1, double margin = 1, const Tensor& weight = {},
                         Reduction reduction = Reduction::Mean);
// Of several targets each: the sum over targets y and classes i that are none of max(0, 1 - (x[y] - x[i])), divided by C. input (N, C) or (C);
// target int64 of the same shape: class numbers up to the first negative one. RuntimeError for other shapes and numbers.
Tensor multilabel_margin_loss(const Tensor& input, const Tensor& target, Reduction reduction = Reduction::Mean);
// The mean over classes of -(y log sigmoid(x) + (1 - y) log sigmoid(-x)), times weight. input and target (..., C); IndexError without dimensions.
Tensor multilabel_soft_margin_loss(const Tensor& input, const Tensor& target, const Tensor& weight = {},
                                   Reduction reduction = Reduction::Mean);

// Minus the logarithm of the probability of the targets, summed over all their alignments (Graves et al., 2006). log_probs (T, N, C) or (T, C),
// float32 or float64 (NotImplementedError); targets (N, S), or all behind each other (sum of target_lengths); lengths: N integers. Mean: divided by
// target_lengths (at least 1), then over the batch. zero_infinity: losses of targets that are too long for their input count as 0, and so do their
// gradients. The gradient is that for log_probs which log_softmax has made; it has no gradient itself (RuntimeError). RuntimeError for lengths
// and labels that do not fit. The host reads the lengths.
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const std::vector<int64_t>& input_lengths,
                const std::vector<int64_t>& target_lengths, int64_t blank = 0, Reduction reduction = Reduction::Mean,
                bool zero_infinity = false);
Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths,
                int64_t blank = 0, Reduction reduction = Reduction::Mean, bool zero_infinity = false);

}  // namespace naru
