// Convolutions of the fake cuDNN, by their definition, summed in float64.
#pragma once

#include <vector>

#include "cudnn.h"

enum class Use { Forward = 10, Filter = 11, Data = 12 };  // descriptor type numbers of the library
// The proposed engines, in this order. kRandom gives different bits each time, kForeign does not support this device, kRounded (float32 only)
// rounds to TF32.
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
  // True if it is dense, with channels last or first.
  bool lies(bool last) const;
};

struct Convolution {
  Use use = Use::Forward;
  int computed = -1;
  std::vector<int64_t> padding, stride, dilation;
  ConvTensor x, w, y;

  // 0, or the reason why no engine supports it.
  int trouble() const;
  size_t workspace_of(int engine) const;
  void compute(char* at_x, char* at_w, char* at_y, int engine, bool mine, double noise) const;
};

// True if NARU_FAKE_CONV_REFUSES says to refuse it.
bool refuses_convolution(const char* what);
