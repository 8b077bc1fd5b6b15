// Sums and maxima of one place of n windows side by side (ir::Windows).
#pragma once

#include <cstdint>

namespace naru::host {

// Which elements of a row n positions see: `first` and every `step`-th on, or (step 0) those that `index` lists, `move` from one to the next; or, without
// an index, n channels of element `first`.
struct Places {
  int64_t first, step, move;
  const int64_t* index;
};

// add: sums[i] += element * weight[i] * scale (weight null: scale alone, where it `weighs`). greater: best[i] and its number, `number` more than the
// element's; place[i] < 0 as long as there is none. move: y[i] = 0 + element, 0 where there is none. pick: sums[i] += those elements whose number in `seen` is own + i * step.
#define NARU_ROWS(T)                                                                                \
  void add(const Places& p, const T* x, const T* weight, T scale, bool weighs, int64_t n, T* sums); \
  void greater(const Places& p, const T* x, int64_t number, int64_t n, T* best, int64_t* place);    \
  void move(const Places& p, const T* x, int64_t n, T* y);                                          \
  void pick(const Places& p, const T* x, const int64_t* seen, int64_t seen_move, int64_t own, int64_t step, int64_t n, T* sums);
NARU_ROWS(float)
NARU_ROWS(double)
NARU_ROWS(int32_t)
NARU_ROWS(int64_t)
#undef NARU_ROWS

}  // namespace naru::host
