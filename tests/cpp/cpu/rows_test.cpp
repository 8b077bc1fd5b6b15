// Instructions on rows: argmax and argmin, running sums, sorts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/cpu/exec/execute.h"
#include "cpu/switches.h"
#include "support/arrays.h"

namespace naru::cpu {
namespace {

using testing::Array;
using testing::kLayouts;
using testing::Layout;
using testing::Threads;

const Dims kRowShapes[] = {{1}, {7}, {300}, {5, 1}, {5, 130}, {130, 33}, {3, 4, 65}, {0, 4}, {40, 257}, {2, 1, 9}, {600, 10}};
constexpr DType kTypes[] = {DType::Bool, DType::U8,  DType::I8,   DType::I16, DType::I32,
                            DType::I64,  DType::F16, DType::BF16, DType::F32, DType::F64};

Dims kept_of(const Dims& shape) { return Dims(std::span<const int64_t>(shape).first(shape.size() - 1)); }

// NaN is greatest; -0 equals 0.
bool less(double a, double b) { return std::isnan(b) ? !std::isnan(a) : a < b; }

TEST(ArgReduce, finds_the_first_of_the_greatest_and_of_the_least_with_NaN_before_all) {
  for (DType t : kTypes)
    for (const Dims& shape : kRowShapes)
      for (Layout layout : kLayouts)
        for (bool greatest : {true, false}) {
          Array x(shape, t, layout, 11, true), values(kept_of(shape), t, Layout::Stepped),
              indices(kept_of(shape), DType::I64, Layout::Transposed);
          execute(ir::ArgReduce{greatest, shape, x.view(), values.view(), indices.view()});
          const int64_t n = shape.back();
          for (int64_t row = 0; row < indices.numel(); ++row) {
            int64_t best = 0;
            for (int64_t i = 1; i < n; ++i) {
              const double v = x.value(row * n + i), b = x.value(row * n + best);
              if (std::isnan(b)) break;
              if (std::isnan(v) || (greatest ? v > b : v < b)) best = i;
            }
            ASSERT_EQ(indices.value(row), static_cast<double>(best))
                << naru::name_of(t) << shape.str() << name_of(layout) << greatest << " row " << row;
            const double v = values.value(row), wanted = x.value(row * n + best);
            ASSERT_TRUE(v == wanted || (std::isnan(v) && std::isnan(wanted)));
          }
        }
}

TEST(ArgReduce, either_result_may_be_left_out) {
  Array x({4, 50}, DType::F32), values({4}, DType::F32), indices({4}, DType::I64);
  execute(ir::ArgReduce{true, x.shape(), x.view(), {}, indices.view()});
  execute(ir::ArgReduce{true, x.shape(), x.view(), values.view(), {}});
  for (int64_t r = 0; r < 4; ++r) EXPECT_EQ(values.value(r), x.value(r * 50 + static_cast<int64_t>(indices.value(r))));
}

TEST(Scan, combines_blocks_in_order_behind_what_stands_before_them) {
  const auto combined = [](ir::ReduceOp op, float a, float b) {
    const float all[] = {a + b, a * b, std::max(a, b), std::min(a, b)};
    return all[static_cast<int>(op)];
  };
  for (const Dims& shape : kRowShapes)
    for (Layout a : kLayouts)
      for (Layout o : {Layout::Contiguous, Layout::Transposed, Layout::Stepped})
        for (ir::ReduceOp op : {ir::ReduceOp::Sum, ir::ReduceOp::Prod, ir::ReduceOp::Max, ir::ReduceOp::Min}) {
          Array x(shape, DType::F32, a, 5), y(shape, DType::F32, o);
          execute(ir::Scan{op, shape, x.view(), y.view()});
          const int64_t n = shape.back();
          ASSERT_LT(n, ir::kScanBlock * ir::kScanBlock);
          for (int64_t row = 0; row < x.numel() / n; ++row) {
            float chain = 0, before = 0;
            for (int64_t i = 0; i < n; ++i) {
              const auto v = static_cast<float>(x.value(row * n + i));
              const bool begins = i % ir::kScanBlock == 0;
              if (begins && i) before = i == ir::kScanBlock ? chain : combined(op, before, chain);
              chain = begins ? v : combined(op, chain, v);
              const float wanted = i < ir::kScanBlock ? chain : combined(op, before, chain);
              const auto got = static_cast<float>(y.value(row * n + i));
              ASSERT_TRUE(got == wanted || (std::isnan(got) && std::isnan(wanted))) << shape.str() << name_of(a) << row << " " << i;
            }
          }
        }
}

TEST(Scan, accumulates_in_the_result_type_and_half_floats_in_float32) {
  const std::pair<DType, DType> kPairs[] = {{DType::U8, DType::I64},  {DType::Bool, DType::I64},  {DType::I32, DType::F64},
                                            {DType::F16, DType::F16}, {DType::BF16, DType::BF16}, {DType::I8, DType::I8},
                                            {DType::F32, DType::F64}};
  for (const auto& [in, out] : kPairs) {
    Array x({20, 77}, in, Layout::Contiguous, 5), y({20, 77}, out);
    execute(ir::Scan{ir::ReduceOp::Sum, x.shape(), x.view(), y.view()});
    for (int64_t row = 0; row < 20; ++row) {
      float single = 0;
      double running = 0;
      for (int64_t i = 0; i < 77; ++i) {
        const double v = x.value(row * 77 + i);
        running += v, single += static_cast<float>(v);
        double wanted = running;
        if (out == DType::F16) wanted = half_to_float(float_to_half(single));
        if (out == DType::BF16) wanted = bfloat_to_float(float_to_bfloat(single));
        if (out == DType::I8) wanted = static_cast<int8_t>(static_cast<int64_t>(running));
        ASSERT_EQ(y.value(row * 77 + i), wanted) << naru::name_of(in) << " " << i;
      }
    }
  }
}

TEST(Scan, may_run_in_place) {
  Array x({30, 500}, DType::I64), y = x, z({30, 500}, DType::I64);
  execute(ir::Scan{ir::ReduceOp::Sum, x.shape(), x.view(), z.view()});
  execute(ir::Scan{ir::ReduceOp::Sum, y.shape(), y.view(), y.view()});
  EXPECT_EQ(y.contents(), z.contents());
}

TEST(Sort, is_stable_with_NaN_greatest_in_either_direction) {
  for (DType t : kTypes)
    for (const Dims& shape : kRowShapes)
      for (Layout layout : kLayouts)
        for (bool descending : {false, true}) {
          const int64_t n = shape.back();
          for (int64_t k : {n, std::min<int64_t>(n, 3)}) {
            Dims out_shape = shape;
            out_shape[shape.size() - 1] = k;
            Array x(shape, t, layout, 21, true), values(out_shape, t, Layout::Offset), indices(out_shape, DType::I64, Layout::Transposed);
            execute(ir::Sort{shape, k, descending, x.view(), values.view(), indices.view()});
            for (int64_t row = 0; row < x.numel() / n; ++row) {
              std::vector<int64_t> order(static_cast<size_t>(n));
              std::iota(order.begin(), order.end(), 0);
              std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
                const double a = x.value(row * n + i), b = x.value(row * n + j);
                return descending ? less(b, a) : less(a, b);
              });
              for (int64_t i = 0; i < k; ++i) {
                ASSERT_EQ(indices.value(row * k + i), static_cast<double>(order[static_cast<size_t>(i)]))
                    << naru::name_of(t) << shape.str() << name_of(layout) << descending << " row " << row << " place " << i;
                const double v = values.value(row * k + i), wanted = x.value(row * n + order[static_cast<size_t>(i)]);
                ASSERT_TRUE((v == wanted && std::signbit(v) == std::signbit(wanted)) || (std::isnan(v) && std::isnan(wanted)));
              }
            }
          }
        }
}

TEST(Sort, long_rows_and_values_in_place) {
  for (DType t : {DType::F32, DType::F64, DType::I64, DType::U8}) {
    Array x({2, 100000}, t, Layout::Contiguous, 31, true), y = x, indices(x.shape(), DType::I64);
    execute(ir::Sort{y.shape(), 100000, false, y.view(), y.view(), indices.view()});
    for (int64_t row = 0; row < 2; ++row)
      for (int64_t i = 0; i < 100000; ++i) {
        ASSERT_FALSE(i > 0 && less(y.value(row * 100000 + i), y.value(row * 100000 + i - 1)));
        const double v = y.value(row * 100000 + i), from = x.value(row * 100000 + static_cast<int64_t>(indices.value(row * 100000 + i)));
        ASSERT_TRUE(v == from || (std::isnan(v) && std::isnan(from)));
      }
  }
}

TEST(Rows, bits_do_not_depend_on_threads) {
  Array x({500, 300}, DType::F32, Layout::Contiguous, 3, true), a(x.shape(), DType::F32), b = a, i(x.shape(), DType::I64), j = i;
  for (int kind = 0; kind < 3; ++kind) {
    const auto work = [&](Array& values, Array& indices) {
      if (kind == 0) execute(ir::Sort{x.shape(), 300, true, x.view(), values.view(), indices.view()});
      if (kind == 1) execute(ir::Scan{ir::ReduceOp::Sum, x.shape(), x.view(), values.view()});
      if (kind == 2) execute(ir::ArgReduce{true, x.shape(), x.view(), values.view(), indices.view()});
    };
    // ArgReduce's results have one entry per row: the first entries of the strides apply.
    const Threads one(1);
    work(a, i);
    const Threads four(4);
    work(b, j);
    EXPECT_EQ(a.memory(), b.memory()) << kind;
    EXPECT_EQ(i.memory(), j.memory()) << kind;
  }
}

}  // namespace
}  // namespace naru::cpu
