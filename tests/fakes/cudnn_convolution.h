// Convolutions of the cuDNN for tests, by their definition, summed in float64.
#pragma once

#include <vector>

#include "cudnn.h"

enum class Use { Forward = 10, Filter = 11, Data = 12 };  // numbers of the library's kinds of descriptors
// Engines that it proposes, in this order: one gives other bits each time, one is not for this device, one, of float32 alone, rounds to TF32.
enum Engine { kRandom = 0, kForeign = 1, kRounded = 2, kQuick = 3, kModest = 4 };

// x, w or y.
struct ConvTensor {
  int64_t number = 0;
  int type = -1;
  std::vector<int64_t> size, stride;

  size_t elements() const {
    int64_t n = 1;
    for (const int64_t s : size) n *= s;
    return static_cast<size_t>(n);
  }
  // Whether it lies densely, with channels last or not.
  bool lies(bool last) const;
};

struct Convolution {
  Use use = Use::Forward;
  int computed = -1;
  std::vector<int64_t> padding, stride, dilation;
  ConvTensor x, w, y;

  // 0, or why no engine takes it.
  int trouble() const;
  size_t workspace_of(int engine) const;
  void compute(char* at_x, char* at_w, char* at_y, int engine, bool mine, double noise) const;
};

// Whether NARU_FAKE_CONV_REFUSES says so.
bool refuses_convolution(const char* what);
