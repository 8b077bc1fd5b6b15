#include <gtest/gtest.h>

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

const Dims kMapShapes[] = {{},        {1},        {7},          {0, 3},      {5, 3},       {33, 65}, {3, 1, 70},
                           {129, 40}, {40, 1030}, {2, 3, 4, 5}, {70, 3, 50}, {1, 1, 2000}, {5000, 2}};

// The definition, one element at a time, without the executor's machinery.
void reference(const ir::Program& program, std::vector<Array*> inputs, std::vector<Array*> outputs, const std::vector<uint64_t>& params) {
  const ir::MapKernel kernel = program.lower();
  const int64_t n = outputs[0]->numel();
  for (int64_t p = 0; p < n; ++p) {
    std::vector<void*> operands;
    for (Array* a : inputs) operands.push_back(a->at(p));
    for (Array* a : outputs) operands.push_back(a->at(p));
    ir::interpret(kernel, operands.data(), params.data(), 1, p);
  }
}

void run(const ir::Program& program, std::vector<Array*> inputs, std::vector<Array*> outputs, std::vector<uint64_t> params = {}) {
  ir::Map map;
  map.program = program;
  map.shape = outputs[0]->shape();
  for (Array* a : inputs) map.inputs.push_back(a->view());
  for (Array* a : outputs) map.outputs.push_back(a->view());
  map.params = std::move(params);
  execute(map);
}

// Runs both on equal arrays and compares all memory, including guards and gaps.
void expect_as_reference(const ir::Program& program, std::vector<Array*> inputs, std::vector<Array*> outputs,
                         std::vector<uint64_t> params = {}) {
  std::vector<Array> expected;
  for (Array* a : outputs) expected.push_back(*a);
  std::vector<Array*> pointers;
  for (Array& a : expected) pointers.push_back(&a);
  reference(program, inputs, pointers, params);
  run(program, inputs, outputs, params);
  for (size_t i = 0; i < outputs.size(); ++i) ASSERT_EQ(outputs[i]->memory(), expected[i].memory());
}

TEST(Map, gives_what_one_element_at_a_time_gives_in_every_layout) {
  for (const Dims& shape : kMapShapes)
    for (Layout a : kLayouts)
      for (Layout b : kLayouts)
        for (Layout o : {Layout::Contiguous, Layout::Transposed, Layout::Offset, Layout::Stepped}) {
          SCOPED_TRACE(shape.str() + " " + name_of(a) + " " + name_of(b) + " -> " + name_of(o));
          Array x(shape, DType::F32, a, 1), y(shape, DType::F32, b, 2), out(shape, DType::F32, o, 3);
          expect_as_reference(program_of(ir::op::sub, {DType::F32, DType::F32}, DType::F32, DType::F32), {&x, &y}, {&out});
          if (HasFatalFailure()) return;
        }
}

TEST(Map, copies_elements_of_every_size_in_every_layout) {
  for (DType t : {DType::Bool, DType::U8, DType::I16, DType::BF16, DType::I32, DType::I64, DType::F64})
    for (const Dims& shape : {Dims{33, 65}, Dims{3, 40, 50}, Dims{100, 3}})
      for (Layout a : kLayouts)
        for (Layout o : {Layout::Contiguous, Layout::Transposed, Layout::Stepped}) {
          SCOPED_TRACE(std::string(name_of(t)) + shape.str() + " " + name_of(a) + " -> " + name_of(o));
          Array x(shape, t, a, 1), out(shape, t, o, 3);
          expect_as_reference(program_of(ir::op::copy, {t}, t, t), {&x}, {&out});
          if (HasFatalFailure()) return;
        }
}

TEST(Map, converts_between_all_pairs_of_types) {
  for (int s = 0; s < kDTypes; ++s)
    for (int t = 0; t < kDTypes; ++t) {
      const auto from = static_cast<DType>(s), to = static_cast<DType>(t);
      Array x({31, 17}, from, Layout::Transposed, 5), out({31, 17}, to);
      expect_as_reference(program_of(ir::op::copy, {from}, to, to), {&x}, {&out});
      if (HasFatalFailure()) return;
    }
}

TEST(Map, index_counts_positions_in_row_major_order_whatever_the_layout) {
  // arange(start, step): start + step * index.
  ir::Program p;
  p.nodes_count = p.outputs_count = 1;
  p.outputs[0] = 0;
  p.params_count = 2;
  p.params[0] = p.params[1] = ir::VType::I64;
  p.nodes[0].op = ir::op::arange;
  p.nodes[0].out = DType::I64;
  p.nodes[0].args_count = 2;
  p.nodes[0].args[0] = {ir::Program::From::Param, DType::I64, 0};
  p.nodes[0].args[1] = {ir::Program::From::Param, DType::I64, 1};
  for (const Dims& shape : kMapShapes)
    for (Layout o : {Layout::Contiguous, Layout::Transposed, Layout::Stepped}) {
      Array out(shape, DType::I64, o);
      run(p, {}, {&out}, {10, 3});
      for (int64_t i = 0; i < out.numel(); ++i) ASSERT_EQ(out.value(i), static_cast<double>(10 + 3 * i)) << shape.str() << name_of(o);
    }
}

TEST(Map, a_result_may_be_one_of_its_operands) {
  for (const Dims& shape : kMapShapes)
    for (Layout o : {Layout::Contiguous, Layout::Transposed, Layout::Stepped}) {
      Array x(shape, DType::F64, o, 4), y(shape, DType::F64, Layout::Transposed, 5), expected = x, original = x;
      const auto program = program_of(ir::op::mul, {DType::F64, DType::F64}, DType::F64, DType::F64);
      reference(program, {&original, &y}, {&expected}, {});
      run(program, {&x, &y}, {&x});
      ASSERT_EQ(x.memory(), expected.memory()) << shape.str() << name_of(o);
    }
}

TEST(Map, several_results_with_layouts_of_their_own) {
  ir::Program p = program_of(ir::op::add, {DType::F32, DType::I32}, DType::F32, DType::F32);
  p.nodes_count = 2;
  p.nodes[1].op = ir::op::neg;
  p.nodes[1].out = DType::F16;
  p.nodes[1].args_count = 1;
  p.nodes[1].args[0] = {ir::Program::From::Node, DType::F32, 0};
  p.outputs_count = 2;
  p.outputs[1] = 1;
  for (const Dims& shape : kMapShapes)
    for (Layout o : {Layout::Contiguous, Layout::Transposed, Layout::Stepped}) {
      Array x(shape, DType::F32, Layout::Offset, 4), y(shape, DType::I32, Layout::Repeated, 5), s(shape, DType::F32, o),
          t(shape, DType::F16, Layout::Transposed);
      expect_as_reference(p, {&x, &y}, {&s, &t});
      if (HasFatalFailure()) return;
    }
}

TEST(Map, an_operand_marked_scalar_gives_the_same_as_one_that_is_not) {
  Array x({50, 60}, DType::F32), one({50, 60}, DType::F32, Layout::Contiguous, 9), out({50, 60}, DType::F32), again = out;
  ir::Program p = program_of(ir::op::mul, {DType::F32, DType::F32}, DType::F32, DType::F32);
  ir::Map map;
  map.program = p;
  map.shape = x.shape();
  map.inputs = {x.view(), one.view()};
  map.inputs[1].strides = {0, 0};
  map.outputs = {out.view()};
  execute(map);
  map.program.inputs[1].scalar = true;
  map.outputs = {again.view()};
  execute(map);
  EXPECT_EQ(out.memory(), again.memory());
  EXPECT_EQ(out.value(100), static_cast<float>(x.value(100)) * static_cast<float>(one.value(0)));
}

TEST(Map, bits_do_not_depend_on_threads_instruction_set_or_interpreter) {
  for (Layout a : kLayouts) {
    Array x({301, 403}, DType::F32, a, 1, true), out({301, 403}, DType::F32, Layout::Contiguous), base = out;
    const auto program = program_of(ir::op::sqrt, {DType::F32}, DType::F32, DType::F32);
    {
      const Threads one(1);
      run(program, {&x}, {&base});
    }
    for (int threads : {2, 3, 7}) {
      const Threads n(threads);
      out.fill(0);
      run(program, {&x}, {&out});
      EXPECT_EQ(out.memory(), base.memory()) << threads << " threads, " << name_of(a);
    }
    {
      const Interpreted off;
      out.fill(0);
      run(program, {&x}, {&out});
      EXPECT_EQ(out.memory(), base.memory()) << "interpreter, " << name_of(a);
    }
    const std::string set = isa_name();
    for (const char* other : {"avx2", "avx512", "none"}) {
      if (!set_isa(other)) continue;
      out.fill(0);
      run(program, {&x}, {&out});
      EXPECT_EQ(out.memory(), base.memory()) << other << ", " << name_of(a);
    }
    EXPECT_TRUE(set_isa(set.c_str()));
  }
}

TEST(Map, results_larger_than_the_cache_are_written_past_it_and_right) {
  // 64-byte aligned, so that streaming stores are used if the processor has them.
  const int64_t n = (int64_t{33} << 20) / 4 * 4 + 1000;
  std::vector<char> memory(static_cast<size_t>(n) * 8 + 192);
  auto align = [](char* p) { return reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(p) + 63) / 64 * 64); };
  float* in = align(memory.data());
  float* out = align(reinterpret_cast<char*>(in + n));
  for (int64_t i = 0; i < n; ++i) in[i] = static_cast<float>(i % 1000);
  ir::Map map;
  map.program = program_of(ir::op::add, {DType::F32, DType::F32}, DType::F32, DType::F32);
  map.shape = {n};
  map.inputs = {{in, DType::F32, {1}}, {in, DType::F32, {1}}};
  map.outputs = {{out, DType::F32, {1}}};
  execute(map);
  for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[i], 2 * in[i]) << i;
}

TEST(MapEach, does_one_list_after_another) {
  ir::MapEach each;
  each.program = program_of(ir::op::add, {DType::F32, DType::F32}, DType::F32, DType::F32);
  each.program.inputs[1].scalar = true;
  std::vector<Array> lists;
  Array one({}, DType::F32, Layout::Contiguous, 3);
  for (const int64_t n : {1, 7, 5000}) lists.emplace_back(Dims{n}, DType::F32, Layout::Contiguous, 5);
  std::vector<double> wanted;
  for (Array& a : lists) {
    each.counts.push_back(a.numel());
    each.addresses.insert(each.addresses.end(), {a.at(0), one.at(0), a.at(0)});
    for (int64_t p = 0; p < a.numel(); ++p) wanted.push_back(static_cast<float>(a.value(p)) + static_cast<float>(one.value(0)));
  }
  execute(each);
  size_t at = 0;
  for (Array& a : lists)
    for (int64_t p = 0; p < a.numel(); ++p) ASSERT_EQ(a.value(p), wanted[at++]) << p;
}

TEST(SmallKernel, runs_one_step_over_consecutive_elements) {
  const auto program = program_of(ir::op::add, {DType::F32, DType::F32}, DType::F32, DType::F32);
  const SmallKernel& kernel = small_kernel(program);
  EXPECT_EQ(&kernel, &small_kernel(program));
  float a[5] = {1, 2, 3, 4, 5}, b[5] = {10, 20, 30, 40, 50}, c[5] = {};
  void* const operands[] = {a, b, c};
  kernel.run(operands, nullptr, 5);
  EXPECT_EQ(c[4], 55);
  const Interpreted off;
  const SmallKernel& plain = small_kernel(program);
  EXPECT_EQ(plain.machine, nullptr);
  plain.run(operands, nullptr, 5);
  EXPECT_EQ(c[0], 11);
}

TEST(Convert, keeps_the_value_where_the_type_can_hold_it) {
  for (int s = 0; s < kDTypes; ++s)
    for (int t = 0; t < kDTypes; ++t) {
      const auto from = static_cast<DType>(s), to = static_cast<DType>(t);
      alignas(8) char a[8], b[8];
      testing::write(from, a, 1);
      convert(from, a, to, b, 1);
      EXPECT_EQ(testing::read(to, b), 1) << s << " " << t;
    }
}

}  // namespace
}  // namespace naru::cpu
