#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backends/cpu/exec/execute.h"
#include "backends/cpu/exec/kernels.h"
#include "cpu/switches.h"
#include "ir/interpreter/interpret.h"
#include "ir/op_ids.h"
#include "support/arrays.h"

namespace naru::cpu {
namespace {

using testing::Array;
using testing::Interpreted;
using testing::kLayouts;
using testing::Layout;
using testing::program_of;
using testing::Threads;

// The order of ir/reduce.h, reimplemented in the simplest way, over values of the accumulator's type.
struct Values {
  ir::ReduceOp op;
  ir::VType type;
  std::vector<char> bytes;
  size_t item() const { return ir::size_of(type); }
  size_t count() const { return bytes.size() / item(); }
  void* at(size_t i) { return bytes.data() + i * item(); }
  void identity(size_t n) {
    const uint64_t bits = ir::identity_bits(op, type);
    bytes.assign(n * item(), 0);
    for (size_t i = 0; i < n; ++i) std::memcpy(at(i), &bits, item());
  }
  void take(size_t i, const void* b) { ir::combine_values(op, type, at(i), b, 1); }
};

void reduce_chunks(Values& chunks) {
  for (size_t s = 1; s < chunks.count(); s *= 2)
    for (size_t i = 0; i + s < chunks.count(); i += 2 * s) chunks.take(i, chunks.at(i + s));
}

// The reduction of x[0..n), with a stride of `item` bytes.
std::vector<char> reduction(ir::ReduceOp op, ir::VType type, std::vector<char>& x, bool contiguous) {
  const size_t item = ir::size_of(type), n = x.size() / item;
  Values chunks{op, type, {}};
  const size_t chunk = static_cast<size_t>(contiguous ? ir::kContiguousChunk : ir::kStridedChunk);
  const size_t count = std::max<size_t>(1, (n + chunk - 1) / chunk);
  chunks.identity(count);
  for (size_t c = 0; c < count && n; ++c) {
    Values lanes{op, type, {}};
    const size_t width = contiguous ? static_cast<size_t>(ir::kLanes) : 1;
    lanes.identity(width);
    for (size_t i = c * chunk; i < std::min(n, (c + 1) * chunk); ++i) lanes.take((i - c * chunk) % width, x.data() + i * item);
    for (size_t half = width / 2; half >= 1; half /= 2)
      for (size_t l = 0; l < half; ++l) lanes.take(l, lanes.at(l + half));
    std::memcpy(chunks.at(c), lanes.at(0), item);
  }
  reduce_chunks(chunks);
  return {chunks.bytes.begin(), chunks.bytes.begin() + static_cast<long>(item)};
}

struct Case {
  Dims shape;
  int reduced;
  bool contiguous;
};

ir::Reduce reduce_of(Array& x, Array& out, ir::ReduceOp op, const Case& c, ir::OpId row, DType computed) {
  ir::Reduce r;
  r.program = program_of(row, {x.dtype()}, computed, computed);
  r.op = op;
  r.shape = c.shape;
  r.reduced = c.reduced;
  r.contiguous = c.contiguous;
  r.inputs = {x.view()};
  r.out = out.view();
  return r;
}

void expect_as_reference(const Case& c, DType in, DType computed, DType result, ir::ReduceOp op, Layout layout, Layout out_layout) {
  SCOPED_TRACE(c.shape.str() + " reduced " + std::to_string(c.reduced) + (c.contiguous ? " contiguous " : " strided ") + name_of(layout) +
               " " + std::string(naru::name_of(in)) + " op " + std::to_string(static_cast<int>(op)));
  Array x(c.shape, in, layout, 7);
  const size_t kept = c.shape.size() - static_cast<size_t>(c.reduced);
  Array out(Dims(std::span<const int64_t>(c.shape).first(kept)), result, out_layout, 8), expected = out;
  execute(reduce_of(x, out, op, c, ir::op::copy, computed));
  const ir::VType type = ir::vtype_of(computed);
  const int64_t results = out.numel(), length = results ? x.numel() / results : 0;
  for (int64_t i = 0; i < results; ++i) {
    std::vector<char> values(static_cast<size_t>(length) * ir::size_of(type));
    for (int64_t j = 0; j < length; ++j)
      convert(in, x.at(i * length + j), dtype_of(type), values.data() + static_cast<size_t>(j) * ir::size_of(type), 1);
    const std::vector<char> total = reduction(op, type, values, c.contiguous);
    convert(dtype_of(type), total.data(), result, expected.at(i), 1);
  }
  ASSERT_EQ(out.memory(), expected.memory());
}

const Case kCases[] = {{{1}, 1, true},         {{7}, 1, true},
                       {{64}, 1, true},        {{1000}, 1, true},
                       {{5, 130}, 1, true},    {{3, 40, 5}, 2, true},
                       {{40000}, 1, true},     {{3, 20000}, 1, true},
                       {{0}, 1, true},         {{4, 0}, 1, true},
                       {{0, 4}, 1, true},      {{2, 3, 4, 5}, 3, true},
                       {{7, 1}, 1, false},     {{5, 9}, 1, false},
                       {{130, 300}, 1, false}, {{3, 70, 1000}, 1, false},
                       {{33, 5, 7}, 2, false}, {{2, 17, 3, 400}, 2, false},
                       {{6, 0}, 1, false},     {{1, 513}, 1, false}};

TEST(Reduce, sums_floats_in_the_canonical_order_in_every_layout) {
  for (const Case& c : kCases)
    for (Layout layout : kLayouts) {
      expect_as_reference(c, DType::F32, DType::F32, DType::F32, ir::ReduceOp::Sum, layout, Layout::Contiguous);
      if (HasFatalFailure()) return;
    }
}

TEST(Reduce, every_operator_and_type) {
  const std::pair<DType, DType> kTypes[] = {{DType::F32, DType::F32},  {DType::F64, DType::F64}, {DType::F16, DType::F32},
                                            {DType::BF16, DType::F32}, {DType::I64, DType::I64}, {DType::I32, DType::I64},
                                            {DType::U8, DType::I64},   {DType::I16, DType::I32}};
  for (const Case& c : kCases)
    for (const auto& [in, computed] : kTypes)
      for (ir::ReduceOp op : {ir::ReduceOp::Sum, ir::ReduceOp::Prod, ir::ReduceOp::Max, ir::ReduceOp::Min}) {
        const DType result = in == DType::F16 || in == DType::BF16 ? in : computed;
        expect_as_reference(c, in, computed, result, op, Layout::Contiguous, Layout::Stepped);
        expect_as_reference(c, in, computed, result, op, Layout::Transposed, Layout::Transposed);
        if (HasFatalFailure()) return;
      }
  for (const Case& c : kCases)
    for (ir::ReduceOp op : {ir::ReduceOp::Any, ir::ReduceOp::All})
      for (Layout layout : kLayouts) {
        expect_as_reference(c, DType::Bool, DType::Bool, DType::Bool, op, layout, Layout::Contiguous);
        expect_as_reference(c, DType::F32, DType::Bool, DType::Bool, op, layout, Layout::Offset);
        if (HasFatalFailure()) return;
      }
}

TEST(Reduce, reduces_what_a_program_makes_of_several_operands) {
  // sum((x - mean)^2) over rows: the second operand repeats along the reduced dimension.
  for (bool contiguous : {true, false})
    for (Layout layout : {Layout::Contiguous, Layout::Transposed}) {
      Array x({20, 300}, DType::F32, layout, 3), mean({20, 1}, DType::F32, Layout::Contiguous, 4), out({20}, DType::F32);
      ir::Reduce r;
      r.program = program_of(ir::op::square_diff, {DType::F32, DType::F32}, DType::F32, DType::F32);
      r.op = ir::ReduceOp::Sum;
      r.shape = {20, 300};
      r.reduced = 1;
      r.contiguous = contiguous;
      r.inputs = {x.view(), mean.view()};
      r.inputs[1].strides = {mean.strides()[0], 0};
      r.out = out.view();
      execute(r);
      for (int64_t i = 0; i < 20; ++i) {
        std::vector<char> values(300 * sizeof(float));
        for (int64_t j = 0; j < 300; ++j) {
          const float d = static_cast<float>(x.value(i * 300 + j)) - static_cast<float>(mean.value(i));
          const float v = d * d;
          std::memcpy(values.data() + j * 4, &v, 4);
        }
        const std::vector<char> total = reduction(ir::ReduceOp::Sum, ir::VType::F32, values, contiguous);
        EXPECT_EQ(std::memcmp(total.data(), out.at(i), 4), 0) << contiguous << i;
      }
    }
}

TEST(Reduce, a_NaN_anywhere_makes_the_maximum_NaN) {
  for (bool contiguous : {true, false})
    for (int64_t place : {0, 5, 299}) {
      const Case c{{8, 300}, 1, contiguous};
      Array x(c.shape, DType::F32, contiguous ? Layout::Contiguous : Layout::Transposed), out({8}, DType::F32);
      x.set(3 * 300 + place, std::nan(""));
      execute(reduce_of(x, out, ir::ReduceOp::Max, c, ir::op::copy, DType::F32));
      EXPECT_TRUE(std::isnan(out.value(3)));
      EXPECT_FALSE(std::isnan(out.value(2)));
    }
}

TEST(Reduce, bits_do_not_depend_on_threads_instruction_set_or_interpreter) {
  const Case kBig[] = {{{1 << 20}, 1, true}, {{700, 1000}, 1, true}, {{1000, 700}, 1, false}, {{3, 100, 5000}, 1, false}};
  for (const Case& c : kBig)
    for (Layout layout : {Layout::Contiguous, Layout::Transposed}) {
      Array x(c.shape, DType::F32, layout), out(Dims(std::span<const int64_t>(c.shape).first(c.shape.size() - 1)), DType::F32), base = out;
      {
        const Threads one(1);
        execute(reduce_of(x, base, ir::ReduceOp::Sum, c, ir::op::copy, DType::F32));
      }
      for (int threads : {2, 5}) {
        const Threads n(threads);
        out.fill(0);
        execute(reduce_of(x, out, ir::ReduceOp::Sum, c, ir::op::copy, DType::F32));
        EXPECT_EQ(out.memory(), base.memory()) << threads << " threads";
      }
      {
        const Interpreted off;
        out.fill(0);
        execute(reduce_of(x, out, ir::ReduceOp::Sum, c, ir::op::copy, DType::F32));
        EXPECT_EQ(out.memory(), base.memory()) << "interpreter";
      }
      const std::string set = isa_name();
      if (set_isa("avx2")) {
        out.fill(0);
        execute(reduce_of(x, out, ir::ReduceOp::Sum, c, ir::op::copy, DType::F32));
        EXPECT_EQ(out.memory(), base.memory()) << "avx2";
      }
      EXPECT_TRUE(set_isa(set.c_str()));
    }
}

}  // namespace
}  // namespace naru::cpu
