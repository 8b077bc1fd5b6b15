// The softmax of attention over rows of scores in float32: what stands between its products.
#pragma once

#include <cstdint>

namespace naru::cpu {

// Rows of scores: queries from `first` on by keys from `key` on. Row r is at data + r * row; behind its `keys` elements it has room up to a
// multiple of 32, which the functions below set to 0.
struct ScoreRows {
  float* data;
  int64_t row, rows, first, key, keys;
  float scale;
  bool causal;  // query t sees the keys up to t
  // Added to scaled scores: bias[r * bias_row + s]; null: nothing.
  const float* bias = nullptr;
  int64_t bias_row = 0;
};

// One step of a softmax over blocks of keys. most, sums: the greatest score of each query so far (-infinity at first) and the sum of the
// exponentials relative to it. Turns scores into exponentials; out (rows of `width` elements, out_row apart), the weighted sum of the values
// seen so far, is scaled to the new greatest score.
void softmax_step(const ScoreRows& s, float* most, float* sums, float* out, int64_t out_row, int64_t width);

// Turns scores into weights, exp(score - stats[r]), and their gradients `grads` (laid as the scores) into those of the scores,
// weight * (gradient - dots[r]).
void softmax_gradients(const ScoreRows& s, const float* stats, const float* dots, float* grads);

}  // namespace naru::cpu
