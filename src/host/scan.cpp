// Running sums and products: each row in order; several rows at a time, as one row's additions wait for each other.
#include <algorithm>
#include <type_traits>

#include "host/instructions.h"
#include "host/kernels.h"
#include "host/layout.h"
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

// `block`: kBlock columns of kRows values; each column takes the one before it.
template <class T, bool kSum>
void chain(T* block, T* running, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t r = 0; r < kRows; ++r) {
      running[r] = kSum ? add(running[r], block[i * kRows + r]) : multiply(running[r], block[i * kRows + r]);
      block[i * kRows + r] = running[r];
    }
}

template <class T>
void run_typed(const ir::Scan& scan, const Space& space, int64_t length, DType type) {
  const int64_t rows = space.numel();
  const int64_t in_item = static_cast<int64_t>(size_of(scan.in.dtype)), out_item = static_cast<int64_t>(size_of(scan.out.dtype));
  const int64_t in_step = scan.in.strides.back() * in_item, out_step = scan.out.strides.back() * out_item;
  const bool sum = scan.op == ir::ReduceOp::Sum;
  const int64_t groups = (rows + kRows - 1) / kRows;
  split(groups, static_cast<double>(rows * length) * 1.0, 1, [&](int64_t begin, int64_t end) {
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
        running[r] = sum ? T(0) : T(1);
      }
      if (count < kRows) std::fill(std::begin(block), std::end(block), T(0));
      for (int64_t at = 0; at < length; at += kBlock) {
        const int64_t n = std::min(kBlock, length - at);
        for (int64_t r = 0; r < count; ++r) {
          const char* source = from[r] + at * in_step;
          const T* x = line;
          if (scan.in.dtype == type && in_step == in_item) {
            x = reinterpret_cast<const T*>(source);
          } else {
            pack(source, in_step, in_item, n, raw);
            convert(scan.in.dtype, raw, type, line, n);
          }
          for (int64_t i = 0; i < n; ++i) block[i * kRows + r] = x[i];
        }
        if (sum)
          chain<T, true>(block, running, n);
        else
          chain<T, false>(block, running, n);
        for (int64_t r = 0; r < count; ++r) {
          char* target = to[r] + at * out_step;
          if (scan.out.dtype == type && out_step == out_item) {
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
    case DType::F32: return run_typed<float>(scan, space, length, DType::F32);
    case DType::F64: return run_typed<double>(scan, space, length, DType::F64);
    case DType::I64: return run_typed<int64_t>(scan, space, length, DType::I64);
    default:
      // The narrow integers wrap, so their sums may be taken wider.
      return run_typed<int32_t>(scan, space, length, DType::I32);
  }
}

}  // namespace naru::host
