// Running sums, products and extremes: each row in order; several rows at a time, as one row's additions wait for each other.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "host/instructions.h"
#include "host/kernels.h"
#include "host/layout.h"
#include "host/scan_rows.h"
#include "host/simd.h"
#include "host/transpose.h"
#include "naru/error.h"

namespace naru::host {
namespace {

constexpr int64_t kRows = 16;    // chains that run side by side
constexpr int64_t kBlock = 256;  // elements of a row taken at a time

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

// What comes before, and the next element: as ir::combine has it, bit for bit.
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
// f with the operation as a constant.
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

// `block`: kBlock columns of kRows values; each column takes the one before it.
template <class T, ir::ReduceOp kOp>
void chain(T* block, T* running, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t r = 0; r < kRows; ++r) {
      running[r] = combined<T, kOp>(running[r], block[i * kRows + r]);
      block[i * kRows + r] = running[r];
    }
}

// Do the rows' addresses lie one step apart?
bool evenly(char* const* rows, int64_t count, int64_t& step) {
  step = count > 1 ? rows[1] - rows[0] : 0;
  for (int64_t r = 1; r < count; ++r)
    if (rows[r] - rows[r - 1] != step) return false;
  return count > 1;
}

// Results that are neighbours in memory, rows that are not: all of a block's results go down their rows together.
template <class T>
void run_strided(const ir::Scan& scan, const Space& space, int64_t length) {
  constexpr auto kItem = static_cast<int64_t>(sizeof(T));
  const int64_t cols = space.sizes[space.rank - 1], outer = space.numel() / cols, blocks = (cols + kBlock - 1) / kBlock;
  const int64_t in_step = scan.in.strides.back() * kItem, out_step = scan.out.strides.back() * kItem;
  split(outer * blocks, static_cast<double>(outer * cols * length) * 0.3, 1, [&](int64_t begin, int64_t end) {
    T running[kBlock];
    Walk walk(space, space.rank);
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t col = unit % blocks * kBlock, n = std::min(kBlock, cols - col);
      walk.seek(unit / blocks * cols + col);
      std::fill(running, running + n, identity<T>(scan.op));
      with_op(scan.op, [&](auto op) {
        for (int64_t i = 0; i < length; ++i) {
          const T* x = reinterpret_cast<const T*>(walk.at(0) + i * in_step);
          T* y = reinterpret_cast<T*>(walk.at(1) + i * out_step);
          for (int64_t j = 0; j < n; ++j) y[j] = running[j] = combined<T, op()>(running[j], x[j]);
        }
      });
    }
  });
}

template <class T>
void run_typed(const ir::Scan& scan, const Space& space, int64_t length, DType type) {
  const int64_t rows = space.numel();
  const int64_t in_item = static_cast<int64_t>(size_of(scan.in.dtype)), out_item = static_cast<int64_t>(size_of(scan.out.dtype));
  const int64_t in_step = scan.in.strides.back() * in_item, out_step = scan.out.strides.back() * out_item;
  const bool sum = scan.op == ir::ReduceOp::Sum, adds = sum || scan.op == ir::ReduceOp::Prod;
  const bool plain_in = scan.in.dtype == type && in_step == in_item, plain_out = scan.out.dtype == type && out_step == out_item;
  if (scan.in.dtype == type && scan.out.dtype == type && space.rank > 0 && !(plain_in && plain_out)) {
    const int last = space.rank - 1;
    if (space.sizes[last] >= 16 && space.operands[0].strides[last] == in_item && space.operands[1].strides[last] == out_item)
      return run_strided<T>(scan, space, length);
  }
  const int64_t groups = (rows + kRows - 1) / kRows;
  const bool stream = scan.in.data != scan.out.data && static_cast<size_t>(rows * length * (in_item + out_item)) >= cache_bytes();
  split(groups, static_cast<double>(rows * length) * 0.3, 1, [&](int64_t begin, int64_t end) {
    alignas(64) T block[kBlock * kRows], line[kBlock];
    alignas(64) char raw[kBlock * 8];
    T running[kRows];
    char *from[kRows], *to[kRows];
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group * kRows, count = std::min(kRows, rows - first);
      Walk walk(space, space.rank);
      walk.seek(first);
      for (int64_t r = 0; r < kRows; ++r) {
        from[r] = walk.at(0), to[r] = walk.at(1);
        if (r + 1 < count) walk.next();
        running[r] = identity<T>(scan.op);
      }
      int64_t in_pitch = 0, out_pitch = 0;
      const bool turn_in = plain_in && count == kRows && evenly(from, count, in_pitch);
      const bool turn_out = plain_out && count == kRows && evenly(to, count, out_pitch);
#if defined(__x86_64__)
      if constexpr (std::is_same_v<T, float>)
        if (turn_in && turn_out && adds && wide_level() == 2) {
          const bool aligned = reinterpret_cast<uintptr_t>(to[0]) % 64 == 0 && out_pitch % 64 == 0;
          avx512::scan_rows(from[0], in_pitch, to[0], out_pitch, length, sum, stream && aligned);
          continue;
        }
#endif
      if (count < kRows) std::fill(std::begin(block), std::end(block), T(0));
      for (int64_t at = 0; at < length; at += kBlock) {
        const int64_t n = std::min(kBlock, length - at);
        if (turn_in) transpose(from[0] + at * in_step, in_pitch, in_item, n, kRows, reinterpret_cast<char*>(block), kRows * in_item);
        for (int64_t r = 0; r < count && !turn_in; ++r) {
          const char* source = from[r] + at * in_step;
          const T* x = line;
          if (plain_in) {
            x = reinterpret_cast<const T*>(source);
          } else {
            pack(source, in_step, in_item, n, raw);
            convert(scan.in.dtype, raw, type, line, n);
          }
          for (int64_t i = 0; i < n; ++i) block[i * kRows + r] = x[i];
        }
        with_op(scan.op, [&](auto op) { chain<T, op()>(block, running, n); });
        if (turn_out)
          transpose(reinterpret_cast<const char*>(block), kRows * out_item, out_item, kRows, n, to[0] + at * out_step, out_pitch);
        for (int64_t r = 0; r < count && !turn_out; ++r) {
          char* target = to[r] + at * out_step;
          if (plain_out) {
            T* y = reinterpret_cast<T*>(target);
            for (int64_t i = 0; i < n; ++i) y[i] = block[i * kRows + r];
          } else {
            for (int64_t i = 0; i < n; ++i) line[i] = block[i * kRows + r];
            convert(type, line, scan.out.dtype, raw, n);
            unpack(raw, out_item, n, target, out_step);
          }
        }
      }
    }
    if (stream) stream_fence();
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
      // The narrow integers wrap, so their sums may be taken wider.
      return run_typed<int32_t>(scan, space, length, DType::I32);
  }
}

}  // namespace naru::host
