// argmax and argmin.
#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "backends/cpu/exec/instructions.h"
#include "backends/cpu/exec/layout.h"
#include "backends/cpu/exec/simd.h"
#include "backends/cpu/reduce/find_best.h"
#include "naru/error.h"

namespace naru::cpu {
namespace {

constexpr int64_t kCols = 256;  // results computed together if rows are strided

// Maps 16-bit floats to integers of the same order: NaN greatest for "greatest", least for "least".
template <bool kBfloat>
int32_t ordered(uint16_t bits, bool greatest) {
  constexpr uint16_t kInf = kBfloat ? 0x7f80 : 0x7c00;
  const uint16_t magnitude = bits & 0x7fff;
  if (magnitude > kInf) return greatest ? 0x10000 : -0x10000;
  return bits & 0x8000 ? -static_cast<int32_t>(magnitude) : magnitude;
}

// One row of strided results: `best` and `index` hold the result of the rows before `row`.
template <class T>
NARU_WIDE void take_row(const T* x, int64_t n, bool greatest, int64_t row, T* best, int64_t* index) {
  for (int64_t j = 0; j < n; ++j) {
    const T v = x[j], b = best[j];
    const bool better = (greatest ? v > b : v < b) || (v != v && b == b);
    best[j] = better ? v : b;
    index[j] = better ? row : index[j];
  }
}

template <class T>
using FindBest = int64_t (*)(const T* x, int64_t n, bool greatest);

template <class T>
FindBest<T> find_best_here() {
  switch (wide_level()) {
#if defined(__x86_64__)
    case 2:
      return avx512::find_best;
    case 1:
      return avx2::find_best;
#endif
    default:
      return plain::find_best;
  }
}

template <class Stored, class T>
struct Reader {
  // n elements, `stride` bytes apart, as comparable values; returns them in place if they already are contiguous values of that type.
  static const T* read(const char* at, int64_t stride, int64_t n, T* block, bool greatest, DType dtype) {
    if constexpr (std::is_same_v<Stored, T>) {
      if (stride == sizeof(T)) return reinterpret_cast<const T*>(at);
      for (int64_t i = 0; i < n; ++i) block[i] = *reinterpret_cast<const T*>(at + i * stride);
    } else {
      for (int64_t i = 0; i < n; ++i) {
        const Stored bits = *reinterpret_cast<const Stored*>(at + i * stride);
        block[i] = dtype == DType::F16 ? ordered<false>(bits, greatest) : ordered<true>(bits, greatest);
      }
    }
    return block;
  }
};

struct Rows {
  const ir::ArgReduce& op;
  Space kept;      // operands: in, values, indices
  int64_t length;  // of a row
  int64_t stride;  // bytes between elements of a row

  void put(const Walk& walk, int64_t step_in, int64_t step_values, int64_t step_indices, const int64_t* index, int64_t n) const {
    const auto item = size_of(op.in.dtype);
    for (int64_t j = 0; j < n; ++j) {
      if (op.indices.data) *reinterpret_cast<int64_t*>(walk.at(2) + j * step_indices) = index[j];
      if (op.values.data) std::memcpy(walk.at(1) + j * step_values, walk.at(0) + j * step_in + index[j] * stride, item);
    }
  }
};

constexpr int64_t kPiece = 1 << 14;  // elements of a row that are gathered at once

template <class Stored, class T>
void contiguous(const Rows& r) {
  const bool greatest = r.op.greatest;
  const int64_t results = r.kept.numel();
  const bool in_place = std::is_same_v<Stored, T> && r.stride == sizeof(T);
  const FindBest<T> find_best = find_best_here<T>();
  split(results, static_cast<double>(results * r.length) * (in_place ? 0.1 : 1), 1, [&](int64_t begin, int64_t end) {
    T* const block = in_place ? nullptr : reinterpret_cast<T*>(scratch(static_cast<size_t>(std::min(kPiece, r.length)) * sizeof(T)));
    const Space& s = r.kept;
    const int last = s.rank - 1;
    const int64_t run = s.rank > 0 ? s.sizes[last] : 1;
    int64_t steps[3] = {};
    for (int k = 0; k < 3 && s.rank > 0; ++k) steps[k] = s.operands[k].strides[last];
    Walk walk(s, s.rank);
    for (int64_t row = begin; row < end;) {
      walk.seek(row);
      const char* in = walk.at(0);
      char *value = walk.at(1), *place = walk.at(2);
      const int64_t until = std::min(end, row / run * run + run);
      for (; row < until; ++row, in += steps[0], value += steps[1], place += steps[2]) {
        int64_t index = 0;
        if (in_place) {
          index = find_best(reinterpret_cast<const T*>(in), r.length, greatest);
        } else {
          T best{};
          for (int64_t first = 0; first < r.length; first += kPiece) {
            const int64_t n = std::min(kPiece, r.length - first);
            const T* x = Reader<Stored, T>::read(in + first * r.stride, r.stride, n, block, greatest, r.op.in.dtype);
            const int64_t at = find_best(x, n, greatest);
            if (first == 0)
              best = x[at], index = at;
            else
              take_row<T>(x + at, 1, greatest, first + at, &best, &index);
          }
        }
        if (r.op.indices.data) *reinterpret_cast<int64_t*>(place) = index;
        if (r.op.values.data) std::memcpy(value, in + index * r.stride, sizeof(Stored));
      }
    }
  });
}

template <class Stored, class T>
void strided(const Rows& r) {
  const bool greatest = r.op.greatest;
  const Space& s = r.kept;
  const int last = s.rank - 1;
  const int64_t cols = s.sizes[last], outer = s.numel() / cols, blocks = (cols + kCols - 1) / kCols;
  split(outer * blocks, static_cast<double>(outer * cols * r.length) * 0.3, 1, [&](int64_t begin, int64_t end) {
    T best[kCols], row[kCols];
    int64_t index[kCols];
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t col = unit % blocks * kCols, n = std::min(kCols, cols - col);
      Walk walk(s, s.rank);
      walk.seek(unit / blocks * cols + col);
      const int64_t step = s.operands[0].strides[last];
      for (int64_t i = 0; i < r.length; ++i) {
        const T* x = Reader<Stored, T>::read(walk.at(0) + i * r.stride, step, n, row, greatest, r.op.in.dtype);
        if (i == 0) {
          std::copy(x, x + n, best);
          std::fill(index, index + n, 0);
        } else {
          take_row<T>(x, n, greatest, i, best, index);
        }
      }
      r.put(walk, step, s.operands[1].strides[last], s.operands[2].strides[last], index, n);
    }
  });
}

template <class Stored, class T = Stored>
void run_typed(const Rows& r) {
  const Space& s = r.kept;
  // Contiguous results of strided rows: scan all rows together, one element of each at a time.
  const bool neighbours = s.rank > 0 && s.operands[0].strides[s.rank - 1] == s.operands[0].item && s.sizes[s.rank - 1] >= 8;
  if (neighbours && r.stride != s.operands[0].item)
    strided<Stored, T>(r);
  else
    contiguous<Stored, T>(r);
}

using RunTyped = void (*)(const Rows&);
constexpr PerDType<RunTyped> kRun{run_typed<uint8_t>,
                                  run_typed<uint8_t>,
                                  run_typed<int8_t>,
                                  run_typed<int16_t>,
                                  run_typed<int32_t>,
                                  run_typed<int64_t>,
                                  run_typed<uint16_t, int32_t>,
                                  run_typed<uint16_t, int32_t>,
                                  run_typed<float>,
                                  run_typed<double>};

}  // namespace

void run(const ir::ArgReduce& op) {
  const int kept_dims = static_cast<int>(op.shape.size()) - 1;
  const std::span<const int64_t> shape = op.shape;
  Rows rows{op, Space(shape.first(kept_dims)), op.shape.back(), op.in.strides[kept_dims] * static_cast<int64_t>(size_of(op.in.dtype))};
  if (rows.kept.numel() == 0) return;
  if (rows.length == 0) throw IndexError("argmax/argmin: expected a dimension of non-zero size to reduce, got shape {}", op.shape.str());
  const Dims none(static_cast<size_t>(kept_dims), 0);
  rows.kept.add(op.in);
  rows.kept.add(static_cast<char*>(op.values.data), static_cast<int64_t>(size_of(op.in.dtype)),
                op.values.data ? op.values.strides.data() : none.data());
  rows.kept.add(static_cast<char*>(op.indices.data), 8, op.indices.data ? op.indices.strides.data() : none.data());
  rows.kept.drop_ones();
  rows.kept.merge();
  kRun[op.in.dtype](rows);
}

}  // namespace naru::cpu
