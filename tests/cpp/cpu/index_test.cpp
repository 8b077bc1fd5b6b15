#include <fmt/format.h>

#include <gtest/gtest.h>

#include "backends/cpu/exec/execute.h"
#include "cpu/switches.h"
#include "naru/error.h"
#include "support/arrays.h"

namespace naru::cpu {
namespace {

using testing::Array;
using testing::kLayouts;
using testing::Layout;
using testing::Threads;

void fill_indices(Array& a, int64_t bound, int64_t factor = 7) {
  for (int64_t p = 0; p < a.numel(); ++p) a.set(p, static_cast<double>((p * factor + 3) % bound - (p % 2 ? bound : 0)));
}
int64_t wrapped(Array& a, int64_t p, int64_t bound) {
  const auto v = static_cast<int64_t>(a.value(p));
  return v < 0 ? v + bound : v;
}

// Selects rows of a table, as embedding does: shape (count, width); the index repeats along the width.
ir::Gather rows_of(Array& table, Array& index, Array& out) {
  ir::Gather g;
  g.shape = out.shape();
  g.out = out.view();
  g.source = table.view();
  g.source.strides = {0, table.strides()[1]};
  ir::IndexOperand i;
  i.positions = index.view();
  i.positions.strides = {index.strides()[0], 0};
  i.bound = table.shape()[0];
  i.step = table.strides()[0];
  g.indices = {i};
  return g;
}
ir::Scatter rows_to(Array& table, Array& index, Array& value, bool add) {
  const ir::Gather g = rows_of(table, index, value);
  return {g.shape, g.source, g.out, g.indices, add};
}

TEST(Gather, takes_rows_of_a_table_in_every_layout) {
  for (DType t : {DType::U8, DType::F16, DType::F32, DType::I64})
    for (Layout layout : kLayouts)
      for (int64_t count : {1, 5, 700})
        for (int64_t width : {1, 3, 64}) {
          Array table({11, width}, t, layout), index({count}, DType::I64, Layout::Stepped), out({count, width}, t, Layout::Transposed);
          fill_indices(index, 11);
          execute(rows_of(table, index, out));
          for (int64_t p = 0; p < out.numel(); ++p)
            ASSERT_EQ(out.value(p), table.value(wrapped(index, p / width, 11) * width + p % width))
                << name_of(layout) << count << " " << width;
        }
}

TEST(Gather, takes_single_elements_along_the_last_dimension) {
  for (Layout layout : kLayouts) {
    Array x({20, 30}, DType::F32, layout), index({20, 1500}, DType::I64), out({20, 1500}, DType::F32);
    fill_indices(index, 30);
    ir::Gather g;
    g.shape = out.shape();
    g.out = out.view();
    g.source = x.view();
    g.source.strides = {x.strides()[0], 0};
    g.indices = {{index.view(), 30, x.strides()[1]}};
    for (int threads : {1, 3}) {
      const Threads n(threads);
      out.fill(-1);
      execute(g);
      for (int64_t p = 0; p < out.numel(); ++p) ASSERT_EQ(out.value(p), x.value(p / 1500 * 30 + wrapped(index, p, 30)));
    }
  }
}

TEST(Gather, two_indices_add_up) {
  Array x({6, 7, 8}, DType::F64), i({5}, DType::I64), j({5}, DType::I64), out({5, 8}, DType::F64);
  fill_indices(i, 6), fill_indices(j, 7, 5);
  ir::Gather g;
  g.shape = {5, 8};
  g.out = out.view();
  g.source = x.view();
  g.source.strides = {0, 1};
  g.indices = {{{i.at(0), DType::I64, {1, 0}}, 6, 56}, {{j.at(0), DType::I64, {1, 0}}, 7, 8}};
  execute(g);
  for (int64_t p = 0; p < 40; ++p) EXPECT_EQ(out.value(p), x.value(wrapped(i, p / 8, 6) * 56 + wrapped(j, p / 8, 7) * 8 + p % 8));
}

TEST(Gather, one_element_and_no_elements) {
  Array x({4}, DType::F32), index({}, DType::I64), out({}, DType::F32);
  index.set(0, -1);
  ir::Gather g;
  g.out = out.view();
  g.source = x.view();
  g.source.strides = Dims();
  g.indices = {{index.view(), 4, 1}};
  execute(g);
  EXPECT_EQ(out.value(0), x.value(3));
  Array nothing({0, 3}, DType::F32), none({0}, DType::I64), table({4, 3}, DType::F32);
  execute(rows_of(table, none, nothing));
}

TEST(Scatter, the_last_of_several_values_for_one_place_stays) {
  for (Layout layout : {Layout::Contiguous, Layout::Transposed, Layout::Stepped})
    for (int64_t width : {1, 5, 200}) {
      Array table({9, width}, DType::F32, layout), index({50}, DType::I64), value({50, width}, DType::F32, Layout::Contiguous, 4);
      fill_indices(index, 9);
      Array expected = table;
      for (int64_t p = 0; p < value.numel(); ++p) expected.set(wrapped(index, p / width, 9) * width + p % width, value.value(p));
      for (int threads : {1, 4}) {
        const Threads n(threads);
        Array target = table;
        execute(rows_to(target, index, value, false));
        ASSERT_EQ(target.memory(), expected.memory()) << name_of(layout) << width;
      }
    }
}

TEST(Scatter, adds_in_order_with_the_same_bits_for_any_number_of_threads) {
  for (DType t : {DType::Bool, DType::U8, DType::I16, DType::I64, DType::F16, DType::BF16, DType::F32, DType::F64})
    for (int64_t width : {1, 6, 3000}) {
      Array table({9, width}, t, Layout::Transposed), index({60}, DType::I64), value({60, width}, t, Layout::Contiguous, 4);
      fill_indices(index, 9);
      Array expected = table;
      for (int64_t p = 0; p < value.numel(); ++p) {
        const int64_t at = wrapped(index, p / width, 9) * width + p % width;
        const double a = expected.value(at), b = value.value(p);
        expected.set(at, t == DType::F32 ? static_cast<float>(a) + static_cast<float>(b) : a + b);
      }
      for (int threads : {1, 4}) {
        const Threads n(threads);
        Array target = table;
        execute(rows_to(target, index, value, true));
        ASSERT_EQ(target.memory(), expected.memory()) << naru::name_of(t) << width;
      }
    }
}

TEST(Scatter, puts_single_elements_where_each_index_says) {
  Array target({20, 30}, DType::I32), index({20, 10}, DType::I64), value({20, 10}, DType::I32, Layout::Stepped, 8);
  fill_indices(index, 30, 11);
  Array expected = target;
  for (int64_t p = 0; p < value.numel(); ++p) expected.set(p / 10 * 30 + wrapped(index, p, 30), value.value(p));
  ir::Scatter s;
  s.shape = value.shape();
  s.target = target.view();
  s.target.strides = {30, 0};
  s.value = value.view();
  s.indices = {{index.view(), 30, 1}};
  execute(s);
  EXPECT_EQ(target.memory(), expected.memory());
}

TEST(Indexing, a_position_out_of_bounds_is_an_error_that_names_it_and_nothing_is_written) {
  for (int64_t bad : {9, -10, 1 << 30}) {
    Array table({9, 4}, DType::F32), index({50}, DType::I64), out({50, 4}, DType::F32);
    fill_indices(index, 9);
    index.set(33, static_cast<double>(bad));
    const Array before = out, table_before = table;
    const auto check = [&](auto instruction) {
      instruction.indices[0].dimension = 2;
      try {
        execute(instruction);
        FAIL() << "no error for " << bad;
      } catch (const IndexError& e) {
        const std::string text = e.what();
        EXPECT_EQ(text.rfind(fmt::format("index {} is out of bounds for dimension 2 with size 9", bad), 0), 0u) << text;
        EXPECT_NE(text.find("position [33"), std::string::npos) << text;
        EXPECT_NE(text.find(instruction.op), std::string::npos) << text;
      }
    };
    check(rows_of(table, index, out));
    check(rows_to(table, index, out, true));
    EXPECT_EQ(out.memory(), before.memory());
    EXPECT_EQ(table.memory(), table_before.memory());
  }
}

TEST(CopyBytes, copies_and_moves_overlapping_ranges) {
  std::vector<char> a(3 << 20), b(a.size(), 0);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<char>(i * 7 + i / 256);
  execute(ir::CopyBytes{b.data(), a.data(), a.size(), Device("cpu"), Device("cpu")});
  EXPECT_EQ(a, b);
  std::vector<char> moved = a;
  execute(ir::CopyBytes{moved.data() + 100, moved.data(), moved.size() - 100, Device("cpu"), Device("cpu")});
  EXPECT_TRUE(std::equal(moved.begin() + 100, moved.end(), a.begin()));
  execute(ir::CopyBytes{nullptr, nullptr, 0, Device("cpu"), Device("cpu")});
}

}  // namespace
}  // namespace naru::cpu
