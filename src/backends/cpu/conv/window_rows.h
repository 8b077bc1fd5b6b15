// Inner loops of ir::Windows: sums and maxima for one kernel position of n neighbouring windows.
#pragma once

#include <cstdint>
#include <type_traits>

namespace naru::cpu {

// The elements of a row that n positions read. step != 0: `first` and every `step`-th element after it. step == 0: the elements listed in
// `index` (below 0: none). Elements are `move` apart.
struct Places {
  int64_t first, step, move;
  const int64_t* index;
};

// Windows of kPlanes channels at once. `rows` are the rows that a window reads: the offset of each in elements, and the number of its first
// element. `windows` are the ranges of a row that the n windows read; its elements are `move` apart.
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

// One element of a window, for all channels, which are neighbours in memory: where the first channel's is, its number among the positions, and
// what it is multiplied with.
template <class T>
struct ChannelElement {
  int64_t offset, number;
  T weight;
};

// Numbers of elements, of the size of the elements: compared and chosen side by side with them.
template <class T>
using ElementNumber = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;

// What one kernel position contributes to a row of results: result i in [begin, end) gets x[i], whose position is number + i * step.
template <class T>
struct RowElement {
  const T* x;
  int64_t number, begin, end;
};

// add: sums[i] += element * (scale * weight[i]); if weight is null, element * scale if `weighs`, else the element.
// greater: updates best[i] and its position place[i]; element e has position `number` + e. place[i] < 0: no best yet.
// row_maxima: the greatest of the elements, in their order, for each of n results, and their positions; -1 where there are none.
// apart: part s of `to`, s * each elements on, gets x[s], x[s + step], x[s + 2 * step] ... of n elements that are `move` apart.
// move: y[i] = 0 + element; 0 where there is no element.
// pick: sums[i] += the elements whose number in `seen` equals own + i * step.
// channel_sums, channel_maxima: the result of one window for n channels, in the order of its elements. Numbers must fit into int32.
// plane_sums, plane_maxima: results of shape (n, kPlanes), and for maxima their positions (-1 where a window has no elements).
#define NARU_ROWS(T)                                                                                                             \
  void add(const Places& p, const T* x, const T* weight, T scale, bool weighs, int64_t n, T* sums);                              \
  void greater(const Places& p, const T* x, int64_t number, int64_t n, T* best, int64_t* place);                                 \
  void row_maxima(const RowElement<T>* elements, int64_t count, int64_t step, int64_t n, T* best, ElementNumber<T>* place);      \
  void apart(const T* x, int64_t move, int64_t n, int64_t step, int64_t each, T* to);                                            \
  void move(const Places& p, const T* x, int64_t n, T* y);                                                                       \
  void pick(const Places& p, const T* x, const int64_t* seen, int64_t seen_move, int64_t own, int64_t step, int64_t n, T* sums); \
  void channel_sums(const T* x, const ChannelElement<T>* elements, int64_t count, bool weighs, int64_t n, T* sums);              \
  void channel_maxima(const T* x, const ChannelElement<T>* elements, int64_t count, int64_t n, T* best, int64_t* places);        \
  void plane_sums(const T* const(&x)[kPlanes], const PlaneWindows& w, T* sums);                                                  \
  void plane_maxima(const T* const(&x)[kPlanes], const PlaneWindows& w, T* best, int32_t* places);
NARU_ROWS(float)
NARU_ROWS(double)
NARU_ROWS(int32_t)
NARU_ROWS(int64_t)
#undef NARU_ROWS

}  // namespace naru::cpu
