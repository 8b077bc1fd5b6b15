// Cumulative sums, products, maxima and minima in the order of ir/reduce.h. Several rows, or several blocks of one row, run at once,
// because each addition of a chain waits for the one before.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "backends/cpu/exec/instructions.h"
#include "backends/cpu/exec/kernels.h"
#include "backends/cpu/exec/layout.h"
#include "backends/cpu/exec/simd.h"
#include "backends/cpu/exec/transpose.h"
#include "backends/cpu/reduce/scan_rows.h"
#include "naru/error.h"

namespace naru::cpu {
namespace {

constexpr int64_t kRows = 16;  // chains computed at once
constexpr int64_t kBlock = ir::kScanBlock;

// Integers wrap.
template <class T>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}
template <class T>
T multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  else
    return a * b;
}

// Combines the prefix and the next element with the bits of ir::combine.
template <class T, ir::ReduceOp kOp>
T combined(T before, T x) {
  if constexpr (kOp == ir::ReduceOp::Sum)
    return add(before, x);
  else if constexpr (kOp == ir::ReduceOp::Prod)
    return multiply(before, x);
  else
    return before != before || (kOp == ir::ReduceOp::Max ? before > x : before < x) ? before : x;
}
template <class T>
T identity(ir::ReduceOp op) {
  using L = std::numeric_limits<T>;
  if (op == ir::ReduceOp::Sum) return T(0);
  if (op == ir::ReduceOp::Prod) return T(1);
  if constexpr (std::is_integral_v<T>)
    return op == ir::ReduceOp::Max ? L::lowest() : L::max();
  else
    return op == ir::ReduceOp::Max ? -L::infinity() : L::infinity();
}
// Calls f with the operation as a compile-time constant.
template <class F>
void with_op(ir::ReduceOp op, F f) {
  using O = ir::ReduceOp;
  switch (op) {
    case O::Sum:
      return f(std::integral_constant<O, O::Sum>());
    case O::Prod:
      return f(std::integral_constant<O, O::Prod>());
    case O::Max:
      return f(std::integral_constant<O, O::Max>());
    default:
      return f(std::integral_constant<O, O::Min>());
  }
}

// The prefix before the current block of `width` rows, updated as blocks end. Level 0 holds the prefixes of the rows' blocks; level k + 1
// scans the totals of the blocks of level k.
template <class T, int64_t kWidth>
class Blocks {
 public:
  Blocks(ir::ReduceOp op, int64_t length, int64_t width) : op_(op), width_(width) {
    for (int64_t blocks = (length - 1) / ir::kScanBlock; blocks > 0; blocks = (blocks - 1) / ir::kScanBlock) ++depth_;
    for (int k = 0; k <= depth_; ++k) clear(before_[k]), clear(chain_[k]), count_[k] = 0;
  }
  const T* before() const { return before_[0]; }
  // `total`: the last values of the chains in the block.
  void end_block(const T* total) {
    with_op(op_, [&](auto op) { end_block(op, 0, total); });
  }

 private:
  static constexpr int kDepth = 8;
  void clear(T* row) { std::fill(row, row + width_, identity<T>(op_)); }
  template <class Op>
  void end_block(Op op, int level, const T* total) {
    if (level == depth_) return;
    T* const chain = chain_[level];
    for (int64_t j = 0; j < width_; ++j) {
      chain[j] = combined<T, op()>(chain[j], total[j]);
      before_[level][j] = combined<T, op()>(before_[level + 1][j], chain[j]);
    }
    if (++count_[level] < ir::kScanBlock) return;
    end_block(op, level + 1, chain);
    clear(chain);
    count_[level] = 0;
  }

  ir::ReduceOp op_;
  int64_t width_;
  int depth_ = 0;
  int64_t count_[kDepth + 1];
  alignas(64) T before_[kDepth + 1][kWidth], chain_[kDepth + 1][kWidth];
};

// `block`: kBlock columns of kRows values. Combines each column with the one before it, and the result with the prefix `before`.
template <class T, ir::ReduceOp kOp>
void chain(T* block, const T* before, T* running, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t r = 0; r < kRows; ++r) {
      running[r] = combined<T, kOp>(running[r], block[i * kRows + r]);
      block[i * kRows + r] = combined<T, kOp>(before[r], running[r]);
    }
}

// True if the rows' addresses have a constant step.
bool evenly(char* const* rows, int64_t count, int64_t& step) {
  step = count > 1 ? rows[1] - rows[0] : 0;
  for (int64_t r = 1; r < count; ++r)
    if (rows[r] - rows[r - 1] != step) return false;
  return count > 1;
}

// Contiguous results of strided rows: all results of a block advance along their rows together.
template <class T>
void run_strided(const ir::Scan& scan, const Space& space, int64_t length) {
  constexpr auto kItem = static_cast<int64_t>(sizeof(T));
  const int64_t cols = space.sizes[space.rank - 1], outer = space.numel() / cols, blocks = (cols + kBlock - 1) / kBlock;
  const int64_t in_step = scan.in.strides.back() * kItem, out_step = scan.out.strides.back() * kItem;
  const bool repeats = space.operands[0].strides[space.rank - 1] == 0;  // one element for all rows
  split(outer * blocks, static_cast<double>(outer * cols * length) * 0.3, 1, [&](int64_t begin, int64_t end) {
    T running[kBlock], same[kBlock];
    Walk walk(space, space.rank);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t col = unit % blocks * kBlock, n = std::min(kBlock, cols - col);
      walk.seek(unit / blocks * cols + col);
      Blocks<T, kBlock> ends(scan.op, length, n);
      for (int64_t at = 0; at < length; at += kBlock) {
        const int64_t last = std::min(at + kBlock, length);
        std::fill(running, running + n, identity<T>(scan.op));
        const T* const before = ends.before();
        with_op(scan.op, [&](auto op) {
          for (int64_t i = at; i < last; ++i) {
            const T* x = reinterpret_cast<const T*>(walk.at(0) + i * in_step);
            T* y = reinterpret_cast<T*>(walk.at(1) + i * out_step);
            if (repeats) x = std::fill_n(same, n, *x) - n;
            for (int64_t j = 0; j < n; ++j) y[j] = combined<T, op()>(before[j], running[j] = combined<T, op()>(running[j], x[j]));
          }
        });
        if (last < length) ends.end_block(running);
      }
    }
  });
}

// Memory layout of a scan's rows.
struct Layout {
  const ir::Scan& scan;
  DType type;  // the type computed in
  int64_t length, in_item, out_item, in_step, out_step;
  bool plain_in, plain_out;  // contiguous elements of that type
  bool stream = false;       // non-temporal stores

  Layout(const ir::Scan& s, DType t, int64_t n, int64_t rows)
      : scan(s),
        type(t),
        length(n),
        in_item(static_cast<int64_t>(size_of(s.in.dtype))),
        out_item(static_cast<int64_t>(size_of(s.out.dtype))) {
    in_step = s.in.strides.back() * in_item, out_step = s.out.strides.back() * out_item;
    plain_in = s.in.dtype == t && in_step == in_item, plain_out = s.out.dtype == t && out_step == out_item;
    stream = s.in.data != s.out.data && static_cast<size_t>(rows * n * (in_item + out_item)) >= cache_bytes();
  }
};

// Up to kRows blocks of n elements each: consecutive blocks of one row, or blocks of neighbouring rows.
template <class T>
class Tile {
 public:
  explicit Tile(const Layout& layout) : l_(layout) {}
  char *from[kRows], *to[kRows];
  // Combines each result with `before`; stores the last values of the chains in `totals`.
  void run(int64_t count, int64_t n, const T* before, T* totals) {
    int64_t in_pitch = 0, out_pitch = 0;
    const char* in = from[0];
    if (!l_.plain_in || count < kRows || !evenly(from, count, in_pitch))
      in = packed(count, n), in_pitch = kBlock * static_cast<int64_t>(sizeof(T));
    const bool turn_out = l_.plain_out && count == kRows && evenly(to, count, out_pitch);
#if defined(__x86_64__)
    if constexpr (std::is_same_v<T, float>)
      if (turn_out && wide_level() == 2) {
        const bool aligned = reinterpret_cast<uintptr_t>(to[0]) % 64 == 0 && out_pitch % 64 == 0;
        return avx512::scan_rows({in, in_pitch, to[0], out_pitch, n, before, totals}, l_.scan.op, l_.stream && aligned);
      }
#endif
    transpose(in, in_pitch, sizeof(T), n, kRows, reinterpret_cast<char*>(block_), kRows * sizeof(T));
    std::fill(totals, totals + kRows, identity<T>(l_.scan.op));
    with_op(l_.scan.op, [&](auto op) { chain<T, op()>(block_, before, totals, n); });
    write(count, n, turn_out ? out_pitch : 0);
  }

 private:
  // The blocks as contiguous elements of the type computed in, kBlock apart.
  const char* packed(int64_t count, int64_t n) {
    for (int64_t r = 0; r < count; ++r) {
      T* const line = lines_ + r * kBlock;
      if (l_.scan.in.dtype == l_.type) {
        pack(from[r], l_.in_step, l_.in_item, n, reinterpret_cast<char*>(line));
      } else {
        pack(from[r], l_.in_step, l_.in_item, n, raw_);
        convert(l_.scan.in.dtype, raw_, l_.type, line, n);
      }
    }
    std::fill(lines_ + count * kBlock, std::end(lines_), T(0));
    return reinterpret_cast<const char*>(lines_);
  }
  // pitch: bytes between the blocks if they can be transposed at once, else 0.
  void write(int64_t count, int64_t n, int64_t pitch) {
    if (pitch) return transpose(reinterpret_cast<const char*>(block_), kRows * l_.out_item, l_.out_item, kRows, n, to[0], pitch);
    for (int64_t r = 0; r < count; ++r) {
      T* const y = l_.plain_out ? reinterpret_cast<T*>(to[r]) : line_;
      for (int64_t i = 0; i < n; ++i) y[i] = block_[i * kRows + r];
      if (l_.plain_out) continue;
      convert(l_.type, line_, l_.scan.out.dtype, raw_, n);
      unpack(raw_, l_.out_item, n, to[r], l_.out_step);
    }
  }

  const Layout& l_;
  alignas(64) T block_[kBlock * kRows], lines_[kBlock * kRows], line_[kBlock];
  alignas(64) char raw_[kBlock * 8];
};

// Rows [first, first + count) at once.
template <class T>
void run_rows(const Layout& l, const Space& space, int64_t first, int64_t count, Tile<T>& tile) {
  Walk walk(space, space.rank);
  walk.seek(first);
  for (int64_t r = 0; r < kRows; ++r) {
    tile.from[r] = walk.at(0), tile.to[r] = walk.at(1);
    if (r + 1 < count) walk.next();
  }
  Blocks<T, kRows> ends(l.scan.op, l.length, kRows);
  T totals[kRows];
  for (int64_t at = 0; at < l.length; at += kBlock) {
    tile.run(count, std::min(kBlock, l.length - at), ends.before(), totals);
    if (at + kBlock >= l.length) return;
    ends.end_block(totals);
    for (int64_t r = 0; r < kRows; ++r) tile.from[r] += kBlock * l.in_step, tile.to[r] += kBlock * l.out_step;
  }
}

// One row, several of its blocks at once: first their chains, then the prefix before each, while they are in the cache. Requires results
// that can be updated in place.
template <class T>
void run_blocks(const Layout& l, char* from, char* to, Tile<T>& tile) {
  T none[kRows], totals[kRows];
  std::fill(none, none + kRows, identity<T>(l.scan.op));
  Blocks<T, 1> ends(l.scan.op, l.length, 1);
  for (int64_t at = 0; at < l.length;) {
    const int64_t whole = std::min(kRows, (l.length - at) / kBlock), count = std::max<int64_t>(whole, 1);
    const int64_t n = whole ? kBlock : l.length - at;
    for (int64_t r = 0; r < kRows; ++r) {
      const int64_t place = (at + std::min(r, count - 1) * kBlock);
      tile.from[r] = from + place * l.in_step, tile.to[r] = to + place * l.out_step;
    }
    tile.run(count, n, none, totals);
    with_op(l.scan.op, [&](auto op) {
      for (int64_t r = 0; r < count; ++r) {
        T* const y = reinterpret_cast<T*>(tile.to[r]);
        const T before = *ends.before();
        for (int64_t i = 0; i < n; ++i) y[i] = combined<T, op()>(before, y[i]);
        if (whole) ends.end_block(totals + r);
      }
    });
    at += count * n;
  }
}

template <class T>
void run_typed(const ir::Scan& scan, const Space& space, int64_t length, DType type) {
  const int64_t rows = space.numel();
  Layout l(scan, type, length, rows);
  if (scan.in.dtype == type && scan.out.dtype == type && space.rank > 0 && !(l.plain_in && l.plain_out)) {
    const int last = space.rank - 1;
    const int64_t in_move = space.operands[0].strides[last];
    if (space.sizes[last] >= 16 && (in_move == l.in_item || in_move == 0) && space.operands[1].strides[last] == l.out_item)
      return run_strided<T>(scan, space, length);
  }
  const double cost = static_cast<double>(rows * length) * 0.3;
  // Too few rows to fill a tile.
  if (rows < kRows && length >= 2 * kBlock && l.plain_out) {
    l.stream = false;
    return split(rows, cost, 1, [&](int64_t begin, int64_t end) {
      Tile<T> tile(l);
      Walk walk(space, space.rank);
      for (int64_t row = begin; row < end; ++row) {
        walk.seek(row);
        run_blocks(l, walk.at(0), walk.at(1), tile);
      }
    });
  }
  split((rows + kRows - 1) / kRows, cost, 1, [&](int64_t begin, int64_t end) {
    Tile<T> tile(l);
    for (int64_t group = begin; group < end; ++group) run_rows(l, space, group * kRows, std::min(kRows, rows - group * kRows), tile);
    if (l.stream) stream_fence();
  });
}

}  // namespace

void run(const ir::Scan& scan) {
  const int kept = static_cast<int>(scan.shape.size()) - 1;
  const std::span<const int64_t> shape = scan.shape;
  Space space(shape.first(kept));
  space.add(scan.in);
  space.add(scan.out);
  space.drop_ones();
  space.merge();
  const int64_t length = scan.shape.back();
  if (space.numel() == 0 || length == 0) return;
  switch (scan.out.dtype) {
    case DType::F16:
    case DType::BF16:
    case DType::F32:
      return run_typed<float>(scan, space, length, DType::F32);
    case DType::F64:
      return run_typed<double>(scan, space, length, DType::F64);
    case DType::I64:
      return run_typed<int64_t>(scan, space, length, DType::I64);
    default:
      // Narrow integers wrap, so they may be summed in a wider type.
      return run_typed<int32_t>(scan, space, length, DType::I32);
  }
}

}  // namespace naru::cpu
