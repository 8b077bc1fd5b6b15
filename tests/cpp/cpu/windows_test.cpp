#include <gtest/gtest.h>

#include <cmath>

#include "backends/cpu/exec/execute.h"
#include "cpu/switches.h"
#include "support/arrays.h"

namespace naru::cpu {
namespace {

using ir::Windows;
using testing::Array;
using testing::Layout;
using testing::Threads;
using Op = Windows::Op;

// regular: windows of 3 elements with a step of 2 and padding of 1. backwards: every element twice, in reverse, which has no regular step.
struct Tables {
  int64_t in, out, places;
  std::vector<int64_t> index;
  std::vector<double> weight;
};
Tables regular(int64_t in) {
  Tables t{in, (in + 1) / 2, 3, {}, {}};
  for (int64_t k = 0; k < 3; ++k)
    for (int64_t p = 0; p < t.out; ++p) {
      const int64_t e = 2 * p - 1 + k;
      t.index.push_back(e < in ? e : -1), t.weight.push_back(0.25 * static_cast<double>(k) - 1 + 0.5 * static_cast<double>(p));
    }
  return t;
}
Tables backwards(int64_t in) {
  Tables t{in, 2 * in, 1, {}, {}};
  for (int64_t p = 0; p < t.out; ++p) t.index.push_back(in - 1 - p / 2), t.weight.push_back(0.5);
  return t;
}

struct WindowCase {
  std::array<Tables, 3> tables;
  Windows w;
  Array x, y, indices;
  std::array<std::vector<float>, 3> single;

  WindowCase(Op op, DType type, Layout layout, bool weighs)
      : tables{backwards(2), regular(5), regular(7)},
        x({2, 3, 2, 5, 7}, type, layout, 1),
        y({2, 3, tables[0].out, tables[1].out, tables[2].out}, type, layout, 2),
        indices(op == Op::Max ? y.shape() : x.shape(), DType::I64, layout, 3) {
    w.op = op, w.dtype = w.out = type;
    w.batch = 2, w.channels = 3;
    for (size_t d = 0; d < 3; ++d) {
      w.size[d] = tables[d].in, w.result[d] = tables[d].out;
      single[d].assign(tables[d].weight.begin(), tables[d].weight.end());
      w.tables[d] = {tables[d].places, tables[d].index.data(), nullptr};
      if (weighs) w.tables[d].weight = type == DType::F64 ? static_cast<void*>(tables[d].weight.data()) : single[d].data();
    }
    const auto set = [](Windows::Array& a, Array& from) {
      a.data = from.at(0);
      std::copy_n(from.strides().begin(), 5, a.strides.begin());
    };
    set(w.x, x), set(w.y, y), set(w.indices, indices);
    // Chooses one of the positions whose windows contain the element.
    for (int64_t i = 0; op == Op::Pick && i < indices.numel(); ++i) indices.set(i, -1);
    if (op == Op::Pick)
      each([&](int64_t, int64_t x_number, int64_t, int64_t p, double) {
        if (p % 3 == 0 || indices.value(x_number) < 0) indices.set(x_number, static_cast<double>(p));
      });
    if (op == Op::Sum) w.indices.data = nullptr;
  }

  // Calls f(index in y, index in x, index within x's channel, weight) for each element of each window.
  template <class F>
  void each(F f) const {
    const auto &a = tables[0], &b = tables[1], &c = tables[2];
    for (int64_t image = 0; image < 6; ++image)
      for (int64_t p = 0; p < a.out * b.out * c.out; ++p)
        for (int64_t k = 0; k < a.places * b.places * c.places; ++k) {
          const int64_t p2 = p % c.out, p1 = p / c.out % b.out, p0 = p / c.out / b.out;
          const int64_t k2 = k % c.places, k1 = k / c.places % b.places, k0 = k / c.places / b.places;
          const auto at = [](const Tables& t, int64_t place, int64_t position) { return static_cast<size_t>(place * t.out + position); };
          const size_t i0 = at(a, k0, p0), i1 = at(b, k1, p1), i2 = at(c, k2, p2);
          if (a.index[i0] < 0 || b.index[i1] < 0 || c.index[i2] < 0) continue;
          const int64_t e = (a.index[i0] * b.in + b.index[i1]) * c.in + c.index[i2];
          f(image * a.out * b.out * c.out + p, image * a.in * b.in * c.in + e, e, p, a.weight[i0] * b.weight[i1] * c.weight[i2]);
        }
  }
};

TEST(Windows, sums_maxima_and_picks_are_right_in_every_layout_and_type) {
  for (const Op op : {Op::Sum, Op::Max, Op::Pick})
    for (const DType type : {DType::F32, DType::F64, DType::I32, DType::I64, DType::BF16})
      for (const Layout layout : {Layout::Contiguous, Layout::Transposed, Layout::Stepped})
        for (const bool weighs : {false, true}) {
          if (weighs && (op != Op::Sum || (type != DType::F32 && type != DType::F64))) continue;
          WindowCase c(op, type, layout, weighs);
          execute(c.w);
          const auto n = static_cast<size_t>(c.y.numel());
          std::vector<double> wanted(n, op == Op::Max ? -INFINITY : 0);
          std::vector<int64_t> place(n, -1);
          c.each([&](int64_t y, int64_t x, int64_t e, int64_t p, double weight) {
            double& to = wanted[static_cast<size_t>(y)];
            const double v = c.x.value(x);
            if (op == Op::Sum) to += weighs ? v * weight : v;
            if (op == Op::Max && v > to) to = v, place[static_cast<size_t>(y)] = e;
            if (op == Op::Pick && c.indices.value(x) == static_cast<double>(p)) to += v;
          });
          for (size_t i = 0; i < n; ++i) {
            const auto p = static_cast<int64_t>(i);
            const double limit = op == Op::Max ? 0 : type == DType::F32 ? 1e-4 : type == DType::F64 ? 1e-12 : type == DType::BF16 ? 0.3 : 0;
            ASSERT_NEAR(c.y.value(p), wanted[i], limit) << "op " << static_cast<int>(op) << " " << name_of(type) << " at " << p;
            if (op == Op::Max) {
              ASSERT_EQ(c.indices.value(p), static_cast<double>(place[i]));
            }
          }
        }
}

// Rows that are taken apart by the step of their windows: each step, dilation and padding; equal elements, and NaN.
TEST(Windows, maxima_of_long_rows_are_the_first_greatest_element_or_the_last_nan) {
  constexpr int64_t kIn = 53, kRows = 5, kPlanes = 3;
  for (const DType type : {DType::F32, DType::F64, DType::I32, DType::I64})
    for (const Layout layout : {Layout::Contiguous, Layout::Transposed, Layout::Stepped})
      for (int64_t sizes = 0; sizes < 24; ++sizes) {
        const int64_t step = 1 + sizes % 3, dilation = 1 + sizes / 3 % 2, padding = sizes / 6 % 2, places = 2 + sizes / 12;
        const Tables down = regular(kRows);
        Tables along{kIn, (kIn + 2 * padding - dilation * (places - 1) - 1) / step + 1, places, {}, {}};
        for (int64_t k = 0; k < places; ++k)
          for (int64_t p = 0; p < along.out; ++p) {
            const int64_t e = p * step - padding + k * dilation;
            along.index.push_back(e >= 0 && e < kIn ? e : -1);
          }
        Array x({1, kPlanes, 1, kRows, kIn}, type, layout, 1), y({1, kPlanes, 1, down.out, along.out}, type, layout, 2),
            indices(y.shape(), DType::I64, layout, 3);
        for (int64_t i = 0; i < x.numel(); ++i) x.set(i, static_cast<double>((i * 7 + sizes) % 5));
        for (int64_t i = 11; i < x.numel() && naru::is_floating(type); i += 37) x.set(i, NAN);
        Windows w;
        w.op = Op::Max, w.dtype = w.out = type, w.channels = kPlanes;
        w.size = {1, kRows, kIn}, w.result = {1, down.out, along.out};
        w.tables[1] = {down.places, const_cast<int64_t*>(down.index.data()), nullptr};
        w.tables[2] = {places, along.index.data(), nullptr};
        const auto set = [](Windows::Array& a, Array& from) {
          a.data = from.at(0);
          std::copy_n(from.strides().begin(), 5, a.strides.begin());
        };
        set(w.x, x), set(w.y, y), set(w.indices, indices);
        execute(w);
        for (int64_t i = 0; i < y.numel(); ++i) {
          const int64_t p = i % along.out, q = i / along.out % down.out, plane = i / along.out / down.out;
          double best = 0;
          int64_t place = -1;
          for (int64_t k = 0; k < down.places * places; ++k) {
            const int64_t r = down.index[static_cast<size_t>(k / places * down.out + q)];
            const int64_t c = along.index[static_cast<size_t>(k % places * along.out + p)];
            if (r < 0 || c < 0) continue;
            if (const double v = x.value((plane * kRows + r) * kIn + c); place < 0 || v > best || std::isnan(v))
              best = v, place = r * kIn + c;
          }
          ASSERT_EQ(indices.value(i), static_cast<double>(place)) << name_of(type) << " " << name_of(layout) << " " << sizes << " at " << i;
          ASSERT_TRUE(y.value(i) == best || (std::isnan(best) && std::isnan(y.value(i))));
        }
      }
}

TEST(Windows, bits_do_not_depend_on_threads) {
  for (const Op op : {Op::Sum, Op::Max, Op::Pick}) {
    WindowCase one(op, DType::F32, Layout::Contiguous, op == Op::Sum), many(op, DType::F32, Layout::Contiguous, op == Op::Sum);
    {
      const Threads threads(1);
      execute(one.w);
    }
    const Threads threads(3);
    execute(many.w);
    ASSERT_EQ(one.y.memory(), many.y.memory());
  }
}

}  // namespace
}  // namespace naru::cpu
