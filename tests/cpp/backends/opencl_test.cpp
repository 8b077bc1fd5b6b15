#include <fmt/format.h>

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "backends/opencl_fixture.h"

namespace naru::runtime {
namespace {

std::string style(const ::testing::TestParamInfo<bool>& i) { return i.param ? "loops" : "items"; }
INSTANTIATE_TEST_SUITE_P(Styles, OpenCl, ::testing::Bool(), style);

TEST_P(OpenCl, contiguous_reductions_are_done_in_the_one_order_however_long_the_rows_are) {
  for (const int64_t length : {0, 1, 63, 64, 65, 1000, 16384, 16385, 50001})
    for (const int64_t rows : {1, 3, 70}) {
      if (rows * length > 200000) continue;
      for (const ir::ReduceOp op : {ir::ReduceOp::Sum, ir::ReduceOp::Max}) {
        // Which NaN a sum of several NaNs gives is unspecified.
        Array x({rows, length}, DType::F32, Layout::Contiguous, 3, op == ir::ReduceOp::Max), out({rows}, DType::F32);
        same(
            {&x, &out},
            [&](const std::vector<View>& v) -> ir::Instruction {
              ir::Reduce r;
              r.program = program_of(ir::op::copy, {DType::F32}, DType::F32, DType::F32);
              r.op = op, r.shape = {rows, length}, r.reduced = 1, r.inputs = {v[0]}, r.out = v[1];
              return r;
            },
            fmt::format("{} rows of {}, operator {}", rows, length, static_cast<int>(op)));
      }
    }
}

TEST_P(OpenCl, strided_reductions_are_done_in_the_one_order_however_many_rows_there_are) {
  for (const int64_t length : {1, 255, 256, 257, 1000, 3000})
    for (const int64_t cols : {1, 5, 64, 300}) {
      Array x({length, cols}, DType::F32, Layout::Contiguous, 3), out({cols}, DType::F32);
      same(
          {&x, &out},
          [&](const std::vector<View>& v) -> ir::Instruction {
            ir::Reduce r;
            r.program = program_of(ir::op::copy, {DType::F32}, DType::F32, DType::F32);
            r.op = ir::ReduceOp::Sum, r.shape = {cols, length}, r.reduced = 1, r.contiguous = false, r.out = v[1];
            r.inputs = {{v[0].data, DType::F32, {v[0].strides[1], v[0].strides[0]}}};
            return r;
          },
          fmt::format("{} rows of {} columns", length, cols));
    }
}

TEST_P(OpenCl, reductions_take_every_type_layout_and_several_dimensions) {
  struct Kind {
    ir::ReduceOp op;
    DType in, accumulator, out;
  };
  for (const Kind k : {Kind{ir::ReduceOp::Sum, DType::BF16, DType::F32, DType::BF16},
                       {ir::ReduceOp::Prod, DType::F64, DType::F64, DType::F64},
                       {ir::ReduceOp::Sum, DType::I8, DType::I64, DType::I64},
                       {ir::ReduceOp::Min, DType::I16, DType::I32, DType::I16},
                       {ir::ReduceOp::Any, DType::Bool, DType::Bool, DType::Bool},
                       {ir::ReduceOp::Sum, DType::F16, DType::F32, DType::F16}})
    for (const Layout layout : {Layout::Contiguous, Layout::Transposed})
      for (const bool contiguous : {true, false})
        for (const int reduced : {1, 2}) {
          if (k.in == DType::I16 && layout == Layout::Contiguous) continue;  // compiling a kernel takes a tenth of a second
          Array x({6, 7, 90}, k.in, layout, 5), out(reduced == 1 ? Dims{6, 7} : Dims{6}, k.out);
          same(
              {&x, &out},
              [&](const std::vector<View>& v) -> ir::Instruction {
                ir::Reduce r;
                r.program = program_of(ir::op::copy, {k.in}, k.accumulator, k.accumulator);
                r.op = k.op, r.shape = {6, 7, 90}, r.reduced = reduced, r.contiguous = contiguous, r.inputs = {v[0]}, r.out = v[1];
                return r;
              },
              fmt::format("{} of {} {}, {} reduced", contiguous ? "contiguous" : "strided", name_of(k.in), name_of(layout), reduced));
        }
}

TEST_P(OpenCl, the_position_of_the_extreme_is_the_first_and_a_nan_comes_before_all) {
  for (const DType t : {DType::F32, DType::F16, DType::U8, DType::I64, DType::Bool})
    for (const int64_t length : {1, 5, 64, 1000})
      for (const bool greatest : {true, false}) {
        Array x({7, length}, t, Layout::Contiguous, 9, is_floating(t)), values({7}, t), at({7}, DType::I64);
        same(
            {&x, &values, &at},
            [&](const std::vector<View>& v) -> ir::Instruction {
              return ir::ArgReduce{greatest, {7, length}, v[0], v[1], v[2]};
            },
            fmt::format("{} of {}", name_of(t), length));
      }
  Array many({2000, 9}, DType::F32, Layout::Transposed, 9, true), at({2000}, DType::I64);
  same(
      {&many, &at},
      [&](const std::vector<View>& v) -> ir::Instruction {
        return ir::ArgReduce{true, {2000, 9}, v[0], {}, v[1]};
      },
      "many rows");
}

TEST_P(OpenCl, one_program_over_many_lists_is_done_list_by_list) {
  Array a({9}, DType::F32), b({700}, DType::F32), one({}, DType::F32), c({9}, DType::F32), d({700}, DType::F32);
  same(
      {&a, &b, &one, &c, &d},
      [&](const std::vector<View>& v) -> ir::Instruction {
        ir::MapEach each;
        each.program = program_of(ir::op::add, {DType::F32, DType::F32}, DType::F32, DType::F32);
        each.program.inputs[1].scalar = true;
        each.counts = {9, 700};
        each.addresses = {v[0].data, v[2].data, v[3].data, v[1].data, v[2].data, v[4].data};
        return each;
      },
      "two lists");
}

TEST_P(OpenCl, running_sums_go_in_order) {
  struct Kind {
    ir::ReduceOp op;
    DType in, out;
  };
  for (const Kind k : {Kind{ir::ReduceOp::Sum, DType::F32, DType::F32},
                       {ir::ReduceOp::Prod, DType::F64, DType::F64},
                       {ir::ReduceOp::Sum, DType::F16, DType::F16},
                       {ir::ReduceOp::Sum, DType::U8, DType::I64},
                       {ir::ReduceOp::Prod, DType::I32, DType::I32},
                       {ir::ReduceOp::Sum, DType::I16, DType::I16}})
    for (const Layout layout : {Layout::Contiguous, Layout::Transposed}) {
      Array x({70, 130}, k.in, layout, 11), out({70, 130}, k.out, layout);
      same(
          {&x, &out},
          [&](const std::vector<View>& v) -> ir::Instruction {
            return ir::Scan{k.op, {70, 130}, v[0], v[1]};
          },
          std::string(name_of(k.in)));
    }
}

TEST_P(OpenCl, sorts_are_stable_whatever_the_type_and_the_length) {
  for (const DType t :
       {DType::Bool, DType::U8, DType::I8, DType::I16, DType::I32, DType::I64, DType::F16, DType::BF16, DType::F32, DType::F64})
    for (const bool descending : {false, true}) {
      Array x({3, 77}, t, Layout::Stepped, 13, is_floating(t)), values({3, 77}, t), order({3, 77}, DType::I64);
      same(
          {&x, &values, &order},
          [&](const std::vector<View>& v) -> ir::Instruction {
            return ir::Sort{{3, 77}, 77, descending, v[0], v[1], v[2]};
          },
          std::string(name_of(t)));
    }
  for (const int64_t n : {1, 2, 3, 511, 512, 513, 5000}) {
    const int64_t k = std::min<int64_t>(n, 10);
    Array x({2, n}, DType::F32, Layout::Contiguous, 17, true), values({2, k}, DType::F32), order({2, k}, DType::I64);
    same(
        {&x, &values, &order},
        [&](const std::vector<View>& v) -> ir::Instruction {
          return ir::Sort{{2, n}, k, true, v[0], v[1], v[2]};
        },
        fmt::format("first of {}", n));
    same(
        {&x, &order},
        [&](const std::vector<View>& v) -> ir::Instruction {
          return ir::Sort{{2, n}, k, false, v[0], {v[0].data, DType::F32, v[0].strides}, v[1]};
        },
        fmt::format("in place, {}", n));
  }
}

TEST_P(OpenCl, products_are_one_chain_in_the_order_of_k) {
  for (const DType t : {DType::F32, DType::F64, DType::F16, DType::BF16, DType::I32, DType::I64, DType::U8})
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {33, 65, 130}, {5, 40, 0}, {70, 3, 17}})
      for (const bool transposed : {false, true})
        for (const bool with_bias : {false, true}) {
          if ((transposed && t != DType::F32) || (!with_bias && t != DType::F32 && t != DType::I64)) continue;  // limits compile time
          Array a({2, transposed ? k : m, transposed ? m : k}, t, Layout::Contiguous, 3),
              b({2, transposed ? n : k, transposed ? k : n}, t, Layout::Contiguous, 4), c({2, m, n}, t),
              bias({n}, t, Layout::Contiguous, 5);
          same(
              {&a, &b, &c, &bias},
              [&, m = m, n = n, k = k](const std::vector<View>& v) -> ir::Instruction {
                ir::MatMul q;
                q.dtype = t, q.batch = 2, q.m = m, q.n = n, q.k = k, q.precision.deterministic = true;
                const auto matrix = [&](const View& x, bool turn) {
                  return ir::MatMul::Matrix{x.data, x.strides[0], x.strides[turn ? 2 : 1], x.strides[turn ? 1 : 2]};
                };
                q.a = matrix(v[0], transposed), q.b = matrix(v[1], transposed), q.c = matrix(v[2], false);
                if (with_bias) q.bias = v[3].data;
                return q;
              },
              fmt::format("{} {}x{}x{}{}", name_of(t), m, n, k, transposed ? " transposed" : ""));
        }
}

TEST_P(OpenCl, gathers_and_scatters_go_where_the_positions_say_and_sums_are_taken_in_order) {
  std::mt19937 random(5);
  for (const DType t : {DType::F32, DType::F16, DType::I8, DType::Bool, DType::I64})
    for (const bool whole_rows : {true, false})
      for (const int64_t rows : {1, 40, 3000}) {
        Array table({11, 6}, t, Layout::Contiguous, 7), out({rows, 6}, t, Layout::Stepped),
            at(whole_rows ? Dims{rows} : Dims{rows, 6}, DType::I64);
        for (int64_t i = 0; i < at.numel(); ++i) at.set(i, static_cast<double>(static_cast<int64_t>(random() % 22) - 11));
        const auto index = [&](View p) {
          if (whole_rows) p.strides = {p.strides[0], 0};
          return ir::IndexOperand{p, 11, 6};
        };
        same(
            {&table, &out, &at},
            [&](const std::vector<View>& v) -> ir::Instruction {
              ir::Gather g;
              g.shape = {rows, 6}, g.out = v[1], g.source = {v[0].data, t, {0, 1}}, g.indices = {index(v[2])};
              return g;
            },
            fmt::format("gather {} {}", name_of(t), rows));
        for (const bool add : {true, false})
          same(
              {&table, &out, &at},
              [&](const std::vector<View>& v) -> ir::Instruction {
                ir::Scatter s;
                s.shape = {rows, 6}, s.value = v[1], s.target = {v[0].data, t, {0, 1}}, s.indices = {index(v[2])}, s.add = add;
                return s;
              },
              fmt::format("scatter {} {} {}", name_of(t), rows, add));
      }
}

TEST_P(OpenCl, a_position_out_of_bounds_is_an_error_where_somebody_waits_and_nothing_is_written) {
  Array table({11, 6}, DType::F32), values({8, 6}, DType::F32, Layout::Contiguous, 2), at({8}, DType::I64), ok({8}, DType::I64);
  for (int64_t i = 0; i < 8; ++i) at.set(i, static_cast<double>(i)), ok.set(i, static_cast<double>(i));
  at.set(3, 11), at.set(6, -12);
  OnDevice dt(*stream, device, table), dv(*stream, device, values), da(*stream, device, at), dk(*stream, device, ok);
  const auto scatter = [&](const OnDevice& positions) {
    ir::Scatter s;
    s.shape = {8, 6}, s.value = dv.view, s.target = {dt.view.data, DType::F32, {0, 1}};
    s.indices = {{{positions.view.data, DType::I64, {1, 0}}, 11, 6, 0}};
    return stream->submit(s, {});
  };
  for (int round = 0; round < 3; ++round) {
    const uint64_t bad = scatter(da);
    try {
      stream->synchronize(bad);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const IndexError& e) {
      EXPECT_EQ(std::string(e.what()),
                "index 11 is out of bounds for dimension 0 with size 11 (index_put_: wanted -11 <= index < 11, got 11 at position [3, 0] "
                "of the indices)");
    }
    EXPECT_EQ(download(*stream, dt.storage), table.memory());
  }
  // More kernels than fault records; the device must still work.
  for (int i = 0; i < 2500; ++i) scatter(i == 1200 ? da : dk);
  EXPECT_THROW(stream->synchronize(stream->submitted()), IndexError);
  EXPECT_NO_THROW(stream->synchronize(scatter(dk)));
}

TEST_P(OpenCl, elementwise_kernels_take_every_layout_and_random_numbers_their_positions) {
  for (const Layout a : testing::kLayouts)
    for (const Layout b : {Layout::Contiguous, Layout::Transposed}) {
      Array x({5, 40, 7}, DType::F32, a, 3), y({5, 40, 7}, DType::I16, b, 4), out({5, 40, 7}, DType::F64, b);
      same(
          {&x, &y, &out},
          [&](const std::vector<View>& v) -> ir::Instruction {
            ir::Map m;
            m.program = program_of(ir::op::mul, {DType::F32, DType::I16}, DType::F64, DType::F32);
            m.shape = {5, 40, 7}, m.inputs = {v[0], v[1]}, m.outputs = {v[2]};
            return m;
          },
          name_of(a) + " and " + name_of(b));
    }
  for (const Layout layout : {Layout::Contiguous, Layout::Transposed, Layout::Stepped}) {
    Array out({70, 90}, DType::F32, layout);
    same(
        {&out},
        [&](const std::vector<View>& v) -> ir::Instruction {
          ir::Map m;
          ir::Program& p = m.program;
          p.nodes_count = p.outputs_count = 1;
          p.params_count = 4;
          p.params = {ir::VType::F32, ir::VType::F32, ir::VType::I64, ir::VType::I64};
          p.outputs[0] = 0;
          p.nodes[0] = {ir::op::normal, DType::F32, 4, {}};
          for (uint16_t i = 0; i < 4; ++i) p.nodes[0].args[i] = {ir::Program::From::Param, i < 2 ? DType::F32 : DType::I64, i};
          m.shape = {70, 90}, m.outputs = {v[0]}, m.params = {0x3f800000, 0x40000000, 1234567890123, 42};
          return m;
        },
        "random " + name_of(layout));
  }
}

TEST_P(OpenCl, a_kernel_takes_as_many_operands_and_dimensions_as_a_program_has) {
  // More Numbers than fit into a kernel's parameters: every other operand has reversed dimensions, so that no two dimensions merge.
  const Dims shape{2, 2, 2, 2, 2, 2, 2, 40};
  std::vector<Array> arrays;
  for (int i = 0; i < ir::kMaxInputs + ir::kMaxOutputs; ++i) arrays.emplace_back(shape, DType::F32, Layout::Contiguous, i + 1);
  std::vector<Array*> all;
  for (Array& a : arrays) all.push_back(&a);
  same(
      all,
      [&](const std::vector<View>& v) -> ir::Instruction {
        ir::Map m;
        ir::Program& p = m.program;
        p.nodes_count = p.inputs_count = p.outputs_count = ir::kMaxInputs;
        for (uint8_t i = 0; i < ir::kMaxInputs; ++i) {
          p.inputs[i] = {DType::F32, false};
          p.outputs[i] = i;
          p.nodes[i] = {ir::op::add, DType::F32, 2, {}};
          p.nodes[i].args[0] = {ir::Program::From::Input, DType::F32, i};
          p.nodes[i].args[1] = {i ? ir::Program::From::Node : ir::Program::From::Input, DType::F32, static_cast<uint16_t>(i ? i - 1 : 0)};
        }
        m.shape = shape;
        m.inputs.assign(v.begin(), v.begin() + ir::kMaxInputs);
        m.outputs.assign(v.begin() + ir::kMaxInputs, v.end());
        for (size_t i = 1; i < ir::kMaxInputs; i += 2)
          for (View* x : {&m.inputs[i], &m.outputs[i]}) std::reverse(x->strides.begin(), x->strides.begin() + 7);
        return m;
      },
      "operands");
}

TEST_P(OpenCl, the_host_uses_the_memory_of_a_device_that_shares_it_and_nothing_is_copied) {
  if (!backend_of(DeviceType::Xpu).capabilities(device).unified_memory) GTEST_SKIP() << "xpu:0 shares no memory with the host";
  const auto s = make_storage(device, 4096);
  auto* const numbers = static_cast<float*>(s->data);
  std::fill_n(numbers, 1024, 3.0f);
  const View view{s->data, DType::F32, {1}};
  ir::Map m;
  m.program = program_of(ir::op::add, {DType::F32, DType::F32}, DType::F32, DType::F32);
  m.shape = {1024}, m.inputs = {view, view}, m.outputs = {view};
  for (int i = 0; i < 3; ++i) {
    stream->synchronize(stream->submit(m, {}));
    EXPECT_EQ(numbers[0], 6);
    EXPECT_EQ(numbers[1023], 6);
    std::fill_n(numbers, 1024, 3.0f);
  }
}

TEST_P(OpenCl, addresses_of_others_are_errors_and_the_host_faults_at_those_of_the_device) {
  if (backend_of(DeviceType::Xpu).capabilities(device).unified_memory)
    GTEST_SKIP() << "xpu:0 shares the host's memory; OpenClBuffers runs this test";
  float on_host[16] = {};
  const View wrong{on_host, DType::F32, {1}};
  EXPECT_THROW(stream->synchronize(stream->submit(ir::Scan{ir::ReduceOp::Sum, {16}, wrong, wrong}, {})), RuntimeError);
  const auto s = make_storage(device, 4096);
  EXPECT_DEATH({ *static_cast<volatile char*>(s->data) = 1; }, "");
}

// softmax: the maximum of each row, the exponentials (kept in the result's memory) and their sum, the quotient.

}  // namespace
}  // namespace naru::runtime
