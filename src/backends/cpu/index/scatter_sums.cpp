#include "backends/cpu/index/scatter_sums.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "backends/cpu/exec/buffer.h"
#include "backends/cpu/exec/instructions.h"
#include "backends/cpu/exec/thread_pool.h"
#include "backends/cpu/index/moves.h"
#include "ir/scatter_sums.h"

namespace naru::cpu {
namespace {

using ir::kScatterBlock;

// The dimensions of a Scatter's target: those of its shape with a target stride, and those that are indexed.
struct Places {
  Dims sizes, strides;

  explicit Places(const ir::Scatter& s) {
    for (size_t d = 0; d < s.shape.size(); ++d)
      if (s.target.strides[d] != 0) sizes.push_back(s.shape[d]), strides.push_back(s.target.strides[d]);
    for (const auto& i : s.indices) sizes.push_back(i.bound), strides.push_back(i.step);
  }
  // True if they cover memory without gaps.
  bool are_dense() const {
    std::vector<std::pair<int64_t, int64_t>> dims;
    for (size_t d = 0; d < sizes.size(); ++d)
      if (sizes[d] != 1) dims.emplace_back(strides[d], sizes[d]);
    std::sort(dims.begin(), dims.end());
    int64_t next = 1;
    for (const auto& [stride, size] : dims) {
      if (stride != next) return false;
      next *= size;
    }
    return true;
  }
};

// Block sums of targets of n elements each, `step` bytes apart, within contiguous memory that starts at `low`. The running sum of a
// target's current block is kept in the target itself. When the block is full, its sum is added to the level above, and the target becomes
// -0, which changes no sum.
class ScatterSums {
 public:
  ScatterSums(AddRun add, DType type, char* low, int64_t places, int64_t step, int64_t n)
      : counts(static_cast<size_t>(places)),
        add_(add),
        low_(low),
        item_(static_cast<int64_t>(size_of(type))),
        shift_(std::countr_zero(static_cast<uint64_t>(item_))),
        step_(step),
        n_(n),
        places_(counts.size()) {
    static_assert(kScatterBlock == 256, "places count their blocks in a byte");
  }

  // Number of values in each target's block, by the target's number. A count wraps to 0 when the block is full: then call full().
  std::vector<uint8_t> counts;
  size_t number_of(const char* at) const { return static_cast<size_t>(at - low_) >> shift_; }
  template <class T>
  T* low() const {
    return reinterpret_cast<T*>(low_);
  }
  void full(char* at) {
    push(places_[number_of(at)], 0, at);
    clear(at, step_);
  }
  // Writes the final sums to the targets.
  void finish() {
    for (size_t i = 0; i < places_.size(); ++i)
      if (!places_[i].empty()) put_down(places_[i], low_ + (static_cast<int64_t>(i) << shift_));
  }

 private:
  struct Level {
    std::vector<char> sum;
    int64_t count = 0;
  };
  using Levels = std::vector<Level>;

  // Stores -0 in each element, for any floating type.
  void clear(char* at, int64_t step) const {
    for (int64_t e = 0; e < n_; ++e, at += step) {
      std::memset(at, 0, static_cast<size_t>(item_));
      at[item_ - 1] = static_cast<char>(0x80);
    }
  }
  void push(Levels& levels, size_t level, const char* values) { push(levels, level, values, level ? item_ : step_); }
  void push(Levels& levels, size_t level, const char* values, int64_t step) {
    if (levels.size() <= level) levels.push_back({std::vector<char>(static_cast<size_t>(n_ * item_)), 0});
    if (levels[level].count % kScatterBlock == 0) clear(levels[level].sum.data(), item_);
    add_(values, step, levels[level].sum.data(), item_, nullptr, n_);
    if (++levels[level].count % kScatterBlock == 0) push_up(levels, level);
  }
  void push_up(Levels& levels, size_t level) {
    const std::vector<char> sum = levels[level].sum;
    push(levels, level + 1, sum.data());
  }
  void put_down(Levels& levels, char* at) {
    // The rest of the last block; -0 if that block was full.
    push(levels, 0, at);
    size_t level = 0;
    for (; levels[level].count > 1; ++level)
      if (levels[level].count % kScatterBlock != 0) push_up(levels, level);
    clear(at, step_);
    add_(levels[level].sum.data(), item_, at, step_, nullptr, n_);
  }

  AddRun add_;
  char* low_;
  int64_t item_;
  int shift_;
  int64_t step_, n_;
  std::vector<Levels> places_;
};

// Rows of values with contiguous indices. Steps from row to row are in bytes. value_move: elements from one value to the next, 1 or 0.
struct Lines {
  const char *value, *at;
  char* target;
  int64_t rows, value_step, at_step, row_step;  // row_step: step of the target
  int64_t n, bound, scale, target_step, value_move;
};
template <class T>
void add_lines(Lines lines, ScatterSums& sums) {
  uint8_t* const counts = sums.counts.data();
  T* const low = sums.low<T>();
  for (int64_t row = 0; row < lines.rows; ++row) {
    const T* const in = reinterpret_cast<const T*>(lines.value + row * lines.value_step);
    const int64_t* const at = reinterpret_cast<const int64_t*>(lines.at + row * lines.at_step);
    char* const target = lines.target + row * lines.row_step;
    for (int64_t e = 0; e < lines.n; ++e) {
      T* const out = reinterpret_cast<T*>(target + e * lines.target_step + (at[e] + (at[e] < 0 ? lines.bound : 0)) * lines.scale);
      *out = *out + in[e * lines.value_move];
      if (++counts[out - low] == 0) [[unlikely]]
        sums.full(reinterpret_cast<char*>(out));
    }
  }
}

void each_line(const Moves& m, const ir::Scatter& s, ScatterSums& sums) {
  const auto add = s.value.dtype == DType::F32 ? add_lines<float> : add_lines<double>;
  const auto& o = m.space.operands;
  const int last = m.last(), across = std::max(last - 1, 0);
  const int64_t rows = last > 0 ? m.space.sizes[across] : 1, inner = m.space.sizes[last], all = m.space.numel() / (rows * inner);
  Walk walk(m.space, across);
  walk.seek(0);
  for (int64_t i = 0; i < all; ++i, walk.next())
    add({walk.at(0), walk.at(2), walk.at(1), rows, o[0].strides[across], o[2].strides[across], o[1].strides[across], inner,
         s.indices[0].bound, s.indices[0].step * m.item, o[1].strides[last], o[0].strides[last] / m.item},
        sums);
}

// Adds values one by one through their indices, in runs that end where a block is full.
void each_element(const Moves& m, AddRun add, ScatterSums& sums) {
  const int64_t inner = m.space.sizes[m.last()], rows = m.space.numel() / inner;
  const int64_t value_step = m.space.operands[0].strides[m.last()], target_step = m.space.operands[1].strides[m.last()];
  Walk walk(m.space, m.last());
  walk.seek(0);
  int64_t shifts[kIndexBlock];
  for (int64_t row = 0; row < rows; ++row, walk.next())
    for (int64_t first = 0; first < inner; first += kIndexBlock) {
      const int64_t n = std::min(kIndexBlock, inner - first);
      m.shifts(walk, first, n, shifts);
      const char* const value = walk.at(0) + first * value_step;
      char* const target = walk.at(1) + first * target_step;
      for (int64_t done = 0, e = 0; done < n; done = e) {
        bool full = false;
        for (; e < n && !full; ++e) full = ++sums.counts[sums.number_of(target + e * target_step + shifts[e])] == 0;
        add(value + done * value_step, value_step, target + done * target_step, target_step, shifts + done, e - done);
        if (full) sums.full(target + (e - 1) * target_step + shifts[e - 1]);
      }
    }
}

void add_to_dense(const ir::Scatter& s, int64_t places, AddRun add) {
  const Moves m(s.shape, s.value, s.target, s.indices);
  const int64_t inner = m.space.sizes[m.last()], rows = m.space.numel() / inner;
  const int64_t value_step = m.space.operands[0].strides[m.last()], target_step = m.space.operands[1].strides[m.last()];
  char* const low = static_cast<char*>(s.target.data);
  // If the target has stride 0 too, all elements of a row are added to one element.
  if (!m.inner_run || target_step == 0) {
    ScatterSums sums(add, s.value.dtype, low, places, m.item, 1);
    is_one_line(m, true) ? each_line(m, s, sums) : each_element(m, add, sums);
    return sums.finish();
  }
  const double time = static_cast<double>(rows) * (8 + 0.1 * static_cast<double>(inner * m.item));
  split(inner, time, 64, [&](int64_t begin, int64_t end) {
    char* const first = low + begin * target_step;
    ScatterSums sums(add, s.value.dtype, first, places, target_step, end - begin);
    Walk walk(m.space, m.last());
    walk.seek(0);
    for (int64_t row = 0; row < rows; ++row, walk.next()) {
      char* const target = walk.at(1) + m.shift(walk) + begin * target_step;
      add(walk.at(0) + begin * value_step, value_step, target, target_step, nullptr, end - begin);
      if (++sums.counts[sums.number_of(target)] == 0) [[unlikely]]
        sums.full(target);
    }
    sums.finish();
  });
}

}  // namespace

void add_in_blocks(const ir::Scatter& s, AddRun add) {
  const Places places(s);
  const int64_t count = product(places.sizes);
  if (places.are_dense()) return add_to_dense(s, count, add);
  // Counts are kept by address, so the targets are copied to contiguous memory first.
  const Buffer memory = make_buffer({count}, size_of(s.value.dtype));
  const Dims strides = contiguous_strides(places.sizes);
  const ir::View apart{s.target.data, s.value.dtype, places.strides}, beside{memory.get(), s.value.dtype, strides};
  run(ir::copy_of(places.sizes, apart, beside));
  ir::Scatter dense = s;
  dense.target.data = memory.get();
  size_t k = 0;
  for (int64_t& stride : dense.target.strides)
    if (stride != 0) stride = strides[k++];
  for (ir::IndexOperand& i : dense.indices) i.step = strides[k++];
  add_to_dense(dense, count, add);
  run(ir::copy_of(places.sizes, beside, apart));
}

}  // namespace naru::cpu
