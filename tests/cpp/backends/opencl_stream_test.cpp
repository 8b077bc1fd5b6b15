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

ir::RowFused softmax_of(const std::vector<View>& v, int64_t rows, int64_t n, DType t, DType acc) {
  ir::RowFused w;
  w.rows = rows;
  const View &x = v[0], &greatest = v[1], &sum = v[2], &y = v[3];
  const auto each_row = [](const View& one) { return View{one.data, one.dtype, {one.strides[0], 0}}; };
  ir::Reduce most;
  most.program = program_of(ir::op::copy, {t}, acc, acc);
  most.op = ir::ReduceOp::Max, most.shape = {rows, n}, most.reduced = 1, most.inputs = {x}, most.out = greatest;
  ir::Reduce total = most;
  total.program = program_of(ir::op::sub_exp, {t, t}, acc, acc);
  total.op = ir::ReduceOp::Sum, total.inputs = {x, each_row(greatest)}, total.out = sum;
  ir::Map quotient;
  quotient.shape = {rows, n}, quotient.outputs = {y};
  const bool holds = y.dtype == acc;
  quotient.program = program_of(holds ? ir::op::div : ir::op::sub, {holds ? acc : t, acc}, y.dtype, acc);
  quotient.inputs = {holds ? y : x, each_row(sum)};
  w.parts = {{most, nullptr}, {total, holds ? y.data : nullptr}, {quotient, nullptr}};
  return w;
}

TEST_P(OpenCl, a_kernel_gets_its_own_operands_and_numbers_whatever_it_was_started_with_before) {
  // The same kernel repeatedly: with the same operands, other operands, other scalars, and memory that was freed and allocated again.
  const auto run = [&](const Ref<Storage>& in, const Ref<Storage>& out, int64_t n, float times) {
    ir::Map m;
    m.program = program_of(ir::op::mul, {DType::F32, DType::F32}, DType::F32, DType::F32);
    m.program.nodes[0].args[1] = {ir::Program::From::Param, DType::F32, 0};
    m.program.inputs_count = 1, m.program.params_count = 1, m.program.params[0] = ir::VType::F32;
    m.params = {std::bit_cast<uint32_t>(times)};
    m.shape = {n}, m.inputs = {{in->data, DType::F32, {1}}}, m.outputs = {{out->data, DType::F32, {1}}};
    stream->submit(m, {in, out});
  };
  const auto first = [&](const Ref<Storage>& s) {
    float value;
    const std::vector<char> bytes = download(*stream, s);
    std::memcpy(&value, bytes.data(), 4);
    return value;
  };
  for (int round = 0; round < 4; ++round) {
    const float values[2][64] = {{1}, {10}};
    const Ref<Storage> a = testing::upload(*stream, device, values[0], 256), b = testing::upload(*stream, device, values[1], 256);
    run(a, a, 64, 2), run(a, a, 64, 2), run(a, a, 64, 3);
    EXPECT_EQ(first(a), 12);
    run(b, a, 60, 3), run(b, b, 64, 2);
    EXPECT_EQ(first(a), 30);
    EXPECT_EQ(first(b), 20);
    run(a, b, 64, 1);
    EXPECT_EQ(first(b), 30);
    empty_cache(device);
  }
}

TEST_P(OpenCl, row_programs_give_what_their_parts_give_however_long_the_rows_are) {
  // Kept in registers, in the result's memory, and (the last one) with a separate kernel for each part.
  for (const auto& [rows, n] :
       {std::pair<int64_t, int64_t>{5, 2}, {300, 63}, {7, 65}, {40, 1000}, {3, 2048}, {3, 2049}, {2, 16384}, {2, 16385}})
    for (const DType t : {DType::F32, DType::F16, DType::F64}) {
      if (t == DType::F64 && n > 1000) continue;
      const DType acc = t == DType::F64 ? t : DType::F32;
      Array x({rows, n}, t, Layout::Contiguous, 3), greatest({rows}, t), sum({rows}, acc),
          y({rows, n}, t == DType::F16 && n == 65 ? acc : t);
      same(
          {&x, &greatest, &sum, &y}, [&](const std::vector<View>& v) { return softmax_of(v, rows, n, t, acc); },
          fmt::format("{} rows of {}, type {}", rows, n, static_cast<int>(t)));
    }
}

TEST_P(OpenCl, row_programs_take_weights_of_all_rows_numbers_and_parts_that_reduce_the_rows) {
  const int64_t rows = 700, n = 48;
  Array x({rows, n}, DType::F32, Layout::Contiguous, 3), w({n}, DType::F32, Layout::Stepped, 4), mean({rows}, DType::F32),
      y({rows, n}, DType::F32), columns({n}, DType::F32), last({rows}, DType::F32);
  same(
      {&x, &w, &mean, &y, &columns, &last},
      [&](const std::vector<View>& v) -> ir::Instruction {
        ir::RowFused r;
        r.rows = rows;
        ir::Reduce sum;
        sum.program = program_of(ir::op::copy, {DType::F32}, DType::F32, DType::F32);
        sum.op = ir::ReduceOp::Sum, sum.shape = {rows, n}, sum.reduced = 1, sum.inputs = {v[0]}, sum.out = v[2];
        ir::Map mean_of;  // over the reduced rows: one position per row
        mean_of.program = program_of(ir::op::mul, {DType::F32, DType::F32}, DType::F32, DType::F32);
        mean_of.program.nodes[0].args[1] = {ir::Program::From::Param, DType::F32, 0};
        mean_of.program.inputs_count = 1, mean_of.program.params_count = 1, mean_of.program.params[0] = ir::VType::F32;
        mean_of.params = {std::bit_cast<uint32_t>(1.0f / 48)};
        mean_of.shape = {rows, 1}, mean_of.inputs = {{v[2].data, DType::F32, {1, 0}}}, mean_of.outputs = {{v[2].data, DType::F32, {1, 0}}};
        ir::Map weighted;
        weighted.program = program_of(ir::op::mul_add, {DType::F32, DType::F32, DType::F32}, DType::F32, DType::F32);
        weighted.shape = {rows, n}, weighted.outputs = {v[3]};
        weighted.inputs = {v[0], {v[1].data, DType::F32, {0, v[1].strides[0]}}, {v[2].data, DType::F32, {1, 0}}};
        ir::Reduce strided = sum;
        strided.contiguous = false, strided.shape = {n, rows}, strided.out = v[4];
        strided.inputs = {{v[3].data, DType::F32, {v[3].strides[1], v[3].strides[0]}}};
        ir::Reduce most = sum;
        most.op = ir::ReduceOp::Max, most.inputs = {v[3]}, most.out = v[5];
        r.parts = {{sum, nullptr}, {mean_of, nullptr}, {weighted, nullptr}, {strided, nullptr}, {most, nullptr}};
        return r;
      },
      "weights");
}

TEST_P(OpenCl, a_stream_waits_for_another_and_numbers_its_work) {
  const int64_t n = 1 << 20;
  const auto other = backend_of(DeviceType::Xpu).create_stream(device, 0);
  std::vector<float> ones(static_cast<size_t>(n), 1);
  const auto x = testing::upload(*stream, device, ones.data(), ones.size() * 4);
  const View view{x->data, DType::F32, {1}};
  DeviceStream* streams[] = {stream.get(), other.get()};
  for (int i = 0; i < 20; ++i) {
    ir::Map m;
    m.program = program_of(ir::op::add, {DType::F32, DType::F32}, DType::F32, DType::F32);
    m.shape = {n}, m.inputs = {view, view}, m.outputs = {view};
    streams[i % 2]->wait(*streams[(i + 1) % 2], streams[(i + 1) % 2]->submitted());
    streams[i % 2]->submit(m, {x});
  }
  EXPECT_EQ(stream->submitted(), 11u);
  EXPECT_EQ(other->submitted(), 10u);
  other->synchronize(10);
  EXPECT_EQ(other->completed(), 10u);
  stream->synchronize(11);
  const std::vector<char> bytes = download(*other, x);
  for (int64_t i = 0; i < n; i += 1000) {
    float value;
    std::memcpy(&value, bytes.data() + i * 4, 4);
    ASSERT_EQ(value, 1 << 20);
  }
}

TEST_P(OpenCl, work_of_one_stream_is_done_while_another_stands_still) {
  using namespace backends::opencl;
  void* const library = dlopen("libOpenCL.so.1", RTLD_NOW);
  const auto create = reinterpret_cast<cl_event (*)(cl_context, cl_int*)>(dlsym(library, "clCreateUserEvent"));
  const auto set_status = reinterpret_cast<cl_int (*)(cl_event, cl_int)>(dlsym(library, "clSetUserEventStatus"));
  ASSERT_TRUE(create && set_status);
  auto& still = dynamic_cast<OpenClStream&>(*stream);
  const auto other = backend_of(DeviceType::Xpu).create_stream(device, 0);
  const std::vector<float> ones(1000, 1);
  const auto x = testing::upload(*stream, device, ones.data(), 4000), y = testing::upload(*other, device, ones.data(), 4000);
  const auto doubled = [](const Ref<Storage>& s) {
    const View view{s->data, DType::F32, {1}};
    ir::Map m;
    m.program = program_of(ir::op::add, {DType::F32, DType::F32}, DType::F32, DType::F32);
    m.shape = {1000}, m.inputs = {view, view}, m.outputs = {view};
    return m;
  };
  cl_int status = CL_SUCCESS;
  const cl_event gate = create(still.opencl().context(), &status);
  ASSERT_EQ(status, CL_SUCCESS);
  ASSERT_EQ(api().clEnqueueBarrierWithWaitList(still.queue(), 1, &gate, nullptr), CL_SUCCESS);
  const uint64_t behind = still.submit(doubled(x), {});
  const uint64_t seq = other->submit(doubled(y), {});
  other->synchronize(seq);
  EXPECT_LT(still.completed(), behind);
  // A third stream that waits for the blocked stream is also blocked; no other stream is.
  const auto third = backend_of(DeviceType::Xpu).create_stream(device, 0);
  third->wait(still, behind);
  const uint64_t last = third->submit(doubled(x), {});
  other->synchronize(other->submit(doubled(y), {}));
  EXPECT_LT(third->completed(), last);
  ASSERT_EQ(set_status(gate, CL_COMPLETE), CL_SUCCESS);
  third->synchronize(last);
  EXPECT_GE(still.completed(), behind);
  EXPECT_EQ(api().clReleaseEvent(gate), CL_SUCCESS);
  float values[2];
  std::memcpy(&values[0], download(*third, x).data(), 4);
  std::memcpy(&values[1], download(*other, y).data(), 4);
  EXPECT_EQ(values[0], 4);
  EXPECT_EQ(values[1], 4);
}

TEST_P(OpenCl, every_number_is_reached_whether_it_has_an_event_of_its_own_or_not_and_times_may_be_asked_for_late) {
  const std::vector<float> ones(1000, 1);
  const auto x = testing::upload(*stream, device, ones.data(), 4000);
  const View view{x->data, DType::F32, {1}};
  ir::Map m;
  m.program = program_of(ir::op::add, {DType::F32, DType::F32}, DType::F32, DType::F32);
  m.shape = {1000}, m.inputs = {view, view}, m.outputs = {view};
  const auto before = stream->submitted();
  for (int i = 0; i < 40; ++i) stream->submit(m, {});
  for (const uint64_t seq : {before + 3, before + 16, before + 37}) {
    stream->reach(seq);
    EXPECT_GE(stream->completed(), seq);
  }
  const auto start = stream->stamp();
  for (int i = 0; i < 40; ++i) stream->submit(m, {});
  const auto end = stream->stamp();
  const auto last = stream->submit(m, {});
  while (stream->completed() < last) {
  }
  EXPECT_GT(end->milliseconds_since(*start), 0);
  float value;
  std::memcpy(&value, download(*stream, x).data(), 4);
  EXPECT_EQ(value, std::ldexp(1.0f, 81));
}

TEST(OpenClBuffers, all_of_this_holds_where_the_host_may_not_use_the_devices_memory) {
  if (getenv("NARU_OPENCL_SVM")) GTEST_SKIP() << "this is such a run";
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = "NARU_OPENCL_SVM=0 '" + program + "' --gtest_brief=1 --gtest_filter='*/OpenCl.*'";
  EXPECT_EQ(std::system(command.c_str()), 0);
}

TEST(OpenClChoice, processors_are_xpu_devices_only_when_asked_for) {
  setenv("NARU_OPENCL_CPU", "0", 1);
  const int without = device_count(DeviceType::Xpu);
  setenv("NARU_OPENCL_CPU", "1", 1);
  const int with = device_count(DeviceType::Xpu);
  unsetenv("NARU_OPENCL_CPU");
  EXPECT_EQ(device_count(DeviceType::Xpu), without);
  if (with == 0) GTEST_SKIP() << "no OpenCL processor: ./run test installs pocl-opencl-icd";
  EXPECT_GE(with, without);
  if (without > 0) return;
  EXPECT_NE(availability(DeviceType::Xpu).remedy.find("NARU_OPENCL_CPU=1"), std::string::npos);
}

}  // namespace
}  // namespace naru::runtime
