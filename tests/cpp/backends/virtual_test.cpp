#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>

#include "backends/cpu/exec/execute.h"
#include "backends/support.h"
#include "backends/virtual/address.h"
#include "ir/op_ids.h"
#include "naru/error.h"

namespace naru::runtime {
namespace {

using testing::Array;
using testing::download;
using testing::Layout;
using testing::OnDevice;
using testing::program_of;
using testing::upload;
using testing::Virtual;

std::unique_ptr<DeviceStream> stream_of(Device d) { return backend_of(d.type).create_stream(d, 0); }

TEST(VirtualDeviceDeathTest, a_host_access_to_its_memory_faults_at_once) {
  const Virtual some("cuda:1");
  const auto s = make_storage(Device("cuda:0"), 4096);
  EXPECT_DEATH({ *static_cast<volatile char*>(s->data) = 1; }, "");
}

TEST(VirtualDevice, gives_the_bits_of_the_cpu) {
  const Virtual some("cuda:1");
  const Device device("cuda:0");
  const auto stream = stream_of(device);
  for (Layout layout : {Layout::Contiguous, Layout::Transposed, Layout::Stepped}) {
    Array x({40, 50}, DType::F32, layout, 1), y({40, 50}, DType::F32, Layout::Contiguous, 2), out({40, 50}, DType::F32, layout),
        sums({40}, DType::F32), order({40, 50}, DType::I64), product({1, 40, 40}, DType::F32), rows({40}, DType::I64);
    for (int64_t i = 0; i < 40; ++i) rows.set(i, static_cast<double>(39 - i));
    OnDevice dx(*stream, device, x), dy(*stream, device, y), dout(*stream, device, out), dsums(*stream, device, sums),
        dorder(*stream, device, order), dproduct(*stream, device, product), drows(*stream, device, rows);
    const auto both = [&](auto make) {
      cpu::execute(make(x.view(), y.view(), out.view(), sums.view(), order.view(), product.view(), rows.view()));
      stream->submit(make(dx.view, dy.view, dout.view, dsums.view, dorder.view, dproduct.view, drows.view),
                     {dx.storage, dy.storage, dout.storage, dsums.storage, dorder.storage, dproduct.storage, drows.storage});
    };
    using View = ir::View;
    both([&](View a, View b, View c, View, View, View, View) -> ir::Instruction {
      ir::Map m;
      m.program = program_of(ir::op::div, {DType::F32, DType::F32}, DType::F32, DType::F32);
      m.shape = {40, 50}, m.inputs = {a, b}, m.outputs = {c};
      return m;
    });
    both([&](View, View, View c, View s, View, View, View) -> ir::Instruction {
      ir::Reduce r;
      r.program = program_of(ir::op::copy, {DType::F32}, DType::F32, DType::F32);
      r.op = ir::ReduceOp::Sum, r.shape = {40, 50}, r.reduced = 1, r.inputs = {c}, r.out = s;
      return r;
    });
    both([&](View a, View, View c, View, View o, View, View) -> ir::Instruction { return ir::Sort{{40, 50}, 50, true, a, c, o}; });
    both([&](View, View b, View c, View, View, View, View) -> ir::Instruction { return ir::Scan{ir::ReduceOp::Prod, {40, 50}, b, c}; });
    both([&](View a, View b, View, View, View, View p, View) -> ir::Instruction {
      ir::MatMul q;
      q.m = q.n = 40, q.k = 50;
      q.a = {a.data, 0, a.strides[0], a.strides[1]}, q.b = {b.data, 0, b.strides[1], b.strides[0]}, q.c = {p.data, 0, 40, 1};
      return q;
    });
    both([&](View, View b, View c, View, View, View, View r) -> ir::Instruction {
      ir::Gather g;
      g.shape = {40, 50}, g.out = c, g.source = b, g.source.strides = {0, 1};
      r.strides = {1, 0};
      g.indices = {{r, 40, 50}};
      return g;
    });
    both([&](View a, View b, View, View, View, View, View r) -> ir::Instruction {
      ir::Scatter s;
      s.shape = {40, 50}, s.target = b, s.target.strides = {0, 1}, s.value = a;
      r.strides = {1, 0};
      s.indices = {{r, 40, 50}}, s.add = true;
      return s;
    });
    both([&](View, View b, View, View s, View o, View, View) -> ir::Instruction { return ir::ArgReduce{true, {40, 50}, b, s, o}; });
    for (auto [host, there] : {std::pair(&y, &dy), {&out, &dout}, {&sums, &dsums}, {&order, &dorder}, {&product, &dproduct}})
      EXPECT_EQ(download(*stream, there->storage), host->memory()) << name_of(layout);
  }
}

TEST(VirtualDevice, an_address_of_the_host_or_of_another_device_is_an_error) {
  const Virtual some("cuda:2");
  const auto stream = stream_of(Device("cuda:0"));
  const auto other = make_storage(Device("cuda:1"), 64);
  float on_host[16] = {};
  for (void* wrong : {other->data, static_cast<void*>(on_host)})
    EXPECT_THROW(stream->submit(ir::Scan{ir::ReduceOp::Sum, {16}, {wrong, DType::F32, {1}}, {wrong, DType::F32, {1}}}, {other}),
                 RuntimeError);
}

TEST(VirtualStream, runs_in_order_behind_the_caller_and_numbers_its_work) {
  const Virtual some("cuda:1");
  const Device device("cuda:0");
  const auto stream = stream_of(device);
  const int64_t n = 1 << 20;
  std::vector<float> ones(static_cast<size_t>(n), 1);
  const auto x = upload(*stream, device, ones.data(), ones.size() * 4);
  const ir::View view{x->data, DType::F32, {1}};
  for (int i = 0; i < 20; ++i) {
    ir::Map m;
    m.program = program_of(ir::op::add, {DType::F32, DType::F32}, DType::F32, DType::F32);
    m.shape = {n}, m.inputs = {view, view}, m.outputs = {view};
    EXPECT_EQ(stream->submit(std::move(m), {x}), static_cast<uint64_t>(i + 2));
  }
  EXPECT_EQ(stream->submitted(), 21u);
  stream->synchronize(21);
  EXPECT_EQ(stream->completed(), 21u);
  const auto result = download(*stream, x);
  float last;
  std::memcpy(&last, result.data() + result.size() - 4, 4);
  EXPECT_EQ(last, 1048576.0f);
}

TEST(VirtualStream, waits_for_another_stream) {
  const Virtual some("cuda:2");
  const auto a = stream_of(Device("cuda:0")), b = stream_of(Device("cuda:1"));
  const size_t bytes = 16 << 20;
  for (int round = 0; round < 10; ++round) {
    std::vector<char> data(bytes, static_cast<char>(round + 1));
    const auto x = upload(*a, Device("cuda:0"), data.data(), bytes);
    const auto y = make_storage(Device("cuda:1"), bytes);
    b->wait(*a, a->submitted());
    b->submit(ir::CopyBytes{y->data, x->data, bytes, Device("cuda:1"), Device("cuda:0")}, {x, y});
    ASSERT_EQ(download(*b, y), data);
  }
}

TEST(VirtualStream, keeps_the_first_error_for_synchronize_and_goes_on) {
  const Virtual some("cuda:1");
  const Device device("cuda:0");
  const auto stream = stream_of(device);
  Array table({5, 4}, DType::F32), index({3}, DType::I64), out({3, 4}, DType::F32);
  index.set(0, 1), index.set(1, 77), index.set(2, 0);
  OnDevice dt(*stream, device, table), di(*stream, device, index), dout(*stream, device, out);
  ir::Gather g;
  g.shape = {3, 4}, g.out = dout.view, g.source = dt.view, g.source.strides = {0, 1};
  di.view.strides = {1, 0};
  g.indices = {{di.view, 5, 4}};
  const uint64_t seq = stream->submit(g, {dt.storage, di.storage, dout.storage});
  EXPECT_THROW(stream->synchronize(seq), IndexError);
  stream->synchronize(seq);
  EXPECT_EQ(download(*stream, dout.storage), out.memory()) << "the failed gather wrote something";
}

TEST(VirtualStream, storages_stay_alive_until_their_work_is_done) {
  const Virtual some("cuda:1");
  const Device device("cuda:0");
  const auto stream = stream_of(device);
  synchronize(device);
  const size_t before = memory_stats(device).allocated();
  {
    std::vector<char> data(8 << 20, 3);
    upload(*stream, device, data.data(), data.size());
  }
  stream->synchronize(stream->submitted());
  EXPECT_EQ(memory_stats(device).allocated(), before);
}

TEST(VirtualDevice, its_memory_ends_where_the_limit_says) {
  const Virtual some("cuda:1");
  const Device device("cuda:0");
  const size_t total = properties(device).total_memory;
  set_memory_limit(device, 32 << 20);
  const auto x = make_storage(device, 20 << 20);
  EXPECT_THROW(make_storage(device, 20 << 20), OutOfMemoryError);
  set_memory_limit(device, 0);
  EXPECT_THROW(make_storage(device, total + 1), OutOfMemoryError);
  EXPECT_NO_THROW(make_storage(device, 20 << 20));
}

#if !defined(__SANITIZE_THREAD__)
TEST(VirtualDevice, a_forked_child_is_told_who_opened_it) {
  const Virtual some("cuda:1");
  const auto stream = stream_of(Device("cuda:0"));
  char byte = 1;
  upload(*stream, Device("cuda:0"), &byte, 1);
  stream->synchronize(1);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    try {
      stream->submit(ir::CopyBytes{}, {});
    } catch (const RuntimeError& e) {
      _exit(std::string(e.what()).find(std::to_string(parent)) != std::string::npos ? 0 : 2);
    }
    _exit(1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

TEST(CpuStream, has_finished_and_throws_its_errors_on_return) {
  const auto stream = stream_of(Device("cpu"));
  float x[4] = {1, 2, 3, 4};
  const ir::View view{x, DType::F32, {1}};
  EXPECT_EQ(stream->submit(ir::Scan{ir::ReduceOp::Sum, {4}, view, view}, {}), 1u);
  EXPECT_EQ(x[3], 10);
  EXPECT_EQ(stream->completed(), 1u);
  int64_t bad = 4;
  ir::Gather g;
  g.shape = {1}, g.out = view, g.source = {x, DType::F32, {0}};
  g.indices = {{{&bad, DType::I64, {1}}, 4, 1}};
  EXPECT_THROW(stream->submit(g, {}), IndexError);
}

}  // namespace
}  // namespace naru::runtime
