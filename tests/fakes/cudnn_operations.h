// Operation graphs of the fake cuDNN: their parts, checks that the library would support them, and their evaluation.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "cudnn.h"

enum { kInt32 = 4, kBoolean = 11, kMisfitGraph = 3001, kMisfitType = 3003, kMisfitLayout = 3004 };
enum class Kind { Matmul = 19, Pointwise = 13, Reduction = 22, Reshape = 31 };
enum Mode { kAdd = 0, kMul = 1, kDiv = 6, kSub = 9, kExp = 13, kLog = 15, kIdentity = 21, kAtLeast = 303, kIndex = 501, kSelect = 601 };
enum Reduced { kSum = 0, kMost = 3 };

struct OpTensor {
  int64_t number = 0;
  int type = -1;
  std::array<int64_t, 4> size{}, stride{};
  bool inner = false, of_host = false;

  size_t reach() const {
    int64_t last = 0;
    for (size_t d = 0; d < 4; ++d) last += (size[d] - 1) * stride[d];
    return static_cast<size_t>(last + 1);
  }
};
struct Operation {
  Kind kind;
  int mode = 0, computed = kFloat;
  int64_t axis = -1;
  std::vector<OpTensor> in;
  OpTensor out;
};
struct Operations {
  std::vector<Operation> all;
  std::map<int64_t, OpTensor> in_memory;  // including host scalars

  // 0, or the reason why no attention engine supports it.
  int trouble() const;
  // memory: for each of in_memory, its device address or its scalar. mine: the workspace was intact; otherwise the results are NaN.
  void compute(const std::map<int64_t, char*>& memory, bool mine) const;
};
