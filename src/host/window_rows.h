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

// Windows of kPlanes channels side by side: the rows that they see (where they begin, in elements, and the number of their first element), and which elements of a
// row each of the n windows does, `move` from one to the next.
constexpr int64_t kPlanes = 8;
struct PlaneRow {
  int64_t offset, number;
};
struct ElementRange {
  int64_t begin = 0, end = 0;
};
struct PlaneWindows {
  const PlaneRow* rows;
  int64_t row_count;
  const ElementRange* windows;
  int64_t n, move;
};

// add: sums[i] += element * weight[i] * scale (weight null: scale alone, where it `weighs`). greater: best[i] and its number, `number` more than the
// element's; place[i] < 0 as long as there is none. move: y[i] = 0 + element, 0 where there is none. pick: sums[i] += those elements whose number in `seen` is own + i * step.
// plane_sums, plane_maxima: (n, kPlanes) results, and the numbers of the greatest elements (-1 where a window sees none).
#define NARU_ROWS(T)                                                                                                             \
  void add(const Places& p, const T* x, const T* weight, T scale, bool weighs, int64_t n, T* sums);                              \
  void greater(const Places& p, const T* x, int64_t number, int64_t n, T* best, int64_t* place);                                 \
  void move(const Places& p, const T* x, int64_t n, T* y);                                                                       \
  void pick(const Places& p, const T* x, const int64_t* seen, int64_t seen_move, int64_t own, int64_t step, int64_t n, T* sums); \
  void plane_sums(const T* const(&x)[kPlanes], const PlaneWindows& w, T* sums);                                                  \
  void plane_maxima(const T* const(&x)[kPlanes], const PlaneWindows& w, T* best, int32_t* places);
NARU_ROWS(float)
NARU_ROWS(double)
NARU_ROWS(int32_t)
NARU_ROWS(int64_t)
#undef NARU_ROWS

}  // namespace naru::host
