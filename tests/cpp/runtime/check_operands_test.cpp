#include "runtime/queue/check_operands.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "ir/inspect.h"
#include "ir/op_ids.h"
#include "naru/error.h"
#include "support/toy_memory.h"

namespace naru::runtime {
namespace {

using ir::View;

// Storages exactly as large as their contents.
struct Memory {
  testing::ToyMemory bytes;
  std::vector<Ref<Storage>> storages;
  Accesses accesses;

  Storage& add(size_t n, bool written) {
    storages.push_back(make_ref<Storage>(Device("cpu"), n));
    Storage& s = *storages.back();
    s.data = bytes.take(n);
    s.owner = &bytes;
    s.release_memory = [](Storage& dying) noexcept { static_cast<testing::ToyMemory*>(dying.owner)->give_back(dying.data); };
    (written ? accesses.writes : accesses.reads).push_back(storages.back().get());
    return *storages.back();
  }
  void* elements(int64_t n, bool written, DType t = DType::F32) { return add(static_cast<size_t>(n) * size_of(t), written).data; }
  View dense(const Dims& sizes, bool written, DType t = DType::F32) {
    return {elements(product(sizes), written, t), t, contiguous_strides(sizes)};
  }
};

// A place among three devices; nothing is exchanged.
class OfThree final : public Communicator {
 public:
  int size() const noexcept override { return 3; }
  void enqueue(std::span<const Call>, uint64_t) override {}
  std::string trouble() override { return ""; }
  void abort() noexcept override {}
};

ir::Program copy_program() {
  ir::Program p;
  p.nodes_count = p.inputs_count = p.outputs_count = 1;
  p.inputs[0] = {DType::F32, false};
  p.outputs[0] = 0;
  p.nodes[0] = {ir::op::copy, DType::F32, 1, {}};
  p.nodes[0].args[0] = {ir::Program::From::Input, DType::F32, 0};
  return p;
}

ir::Map map_of(Memory& m) { return {copy_program(), {3, 5}, {m.dense({3, 5}, false)}, {m.dense({3, 5}, true)}, {}}; }

ir::Reduce reduce_of(Memory& m) {
  ir::Reduce r;
  r.program = copy_program();
  r.op = ir::ReduceOp::Sum;
  r.shape = {3, 5};
  r.reduced = 1;
  r.inputs = {m.dense({3, 5}, false)};
  r.out = m.dense({3}, true);
  return r;
}

ir::RowFused rows_of(Memory& m) {
  ir::RowFused w;
  w.rows = 3;
  ir::Reduce sum = reduce_of(m);
  ir::Map map = map_of(m);
  void* const kept = map.outputs[0].data;
  map.inputs = {{kept, DType::F32, {5, 1}}};
  m.accesses.reads.pop_back();
  m.storages.erase(m.storages.end() - 2);
  w.parts = {{sum, kept}, {map, nullptr}};
  return w;
}

using Make = ir::Instruction (*)(Memory&);
// Every kind except user kernels, whose extents are unknown.
const Make kKinds[] = {
    [](Memory& m) -> ir::Instruction { return map_of(m); },
    [](Memory& m) -> ir::Instruction { return reduce_of(m); },
    [](Memory& m) -> ir::Instruction {
      return ir::ArgReduce{true, {3, 5}, m.dense({3, 5}, false), m.dense({3}, true), m.dense({3}, true, DType::I64)};
    },
    [](Memory& m) -> ir::Instruction {
      return ir::Scan{ir::ReduceOp::Sum, {3, 5}, m.dense({3, 5}, false), m.dense({3, 5}, true)};
    },
    [](Memory& m) -> ir::Instruction {  // rows of a table of seven
      ir::Gather g;
      g.shape = {3, 5};
      g.out = m.dense({3, 5}, true);
      g.source = {m.elements(7 * 5, false), DType::F32, {0, 1}};
      g.indices = {{{m.elements(3, false, DType::I64), DType::I64, {1, 0}}, 7, 5}};
      return g;
    },
    [](Memory& m) -> ir::Instruction {  // rows of a table of seven, the last one first
      ir::Scatter s;
      s.shape = {3, 5};
      s.target = {static_cast<float*>(m.elements(7 * 5, true)) + 6 * 5, DType::F32, {0, 1}};
      s.value = m.dense({3, 5}, false);
      s.indices = {{{m.elements(3, false, DType::I64), DType::I64, {1, 0}}, 7, -5}};
      return s;
    },
    [](Memory& m) -> ir::Instruction {
      ir::MatMul q;
      q.batch = 2, q.m = 3, q.n = 4, q.k = 5;
      q.a = {m.elements(2 * 15, false), 15, 1, 3}, q.b = {m.elements(20, false), 0, 4, 1}, q.c = {m.elements(2 * 12, true), 12, 4, 1};
      q.bias = m.elements(4, false);
      return q;
    },
    [](Memory& m) -> ir::Instruction {
      ir::Convolution c;
      c.batch = 2, c.in = 3, c.out = 4, c.size = {1, 1, 7}, c.kernel = {1, 1, 3}, c.result = {1, 1, 5};
      c.x = {m.elements(2 * 3 * 7, false), {21, 7, 7, 7, 1}}, c.w = {m.elements(4 * 3 * 3, false), {9, 3, 3, 3, 1}};
      c.y = {m.elements(2 * 4 * 5, true), {20, 5, 5, 5, 1}};
      c.bias = m.elements(4, false);
      return c;
    },
    [](Memory& m) -> ir::Instruction {
      ir::Windows w;
      w.op = ir::Windows::Op::Max, w.channels = 3, w.size = {1, 1, 7}, w.result = {1, 1, 5}, w.tables[2].places = 2;
      w.tables[2].index = m.elements(10, false, DType::I64);
      w.x = {m.elements(3 * 7, false), {21, 7, 7, 7, 1}}, w.y = {m.elements(3 * 5, true), {15, 5, 5, 5, 1}};
      w.indices = {m.elements(3 * 5, true, DType::I64), {15, 5, 5, 5, 1}};
      return w;
    },
    [](Memory& m) -> ir::Instruction {
      return ir::Sort{{3, 5}, 2, true, m.dense({3, 5}, false), m.dense({3, 2}, true), m.dense({3, 2}, true, DType::I64)};
    },
    [](Memory& m) -> ir::Instruction {
      return ir::Nonzero{
          {3, 1500}, true, 7, m.dense({3, 1500}, false, DType::Bool), m.dense({2}, false, DType::I64), m.dense({7, 2}, true, DType::I64)};
    },
    [](Memory& m) -> ir::Instruction {
      ir::Lapack factor;
      factor.routine = ir::Lapack::Routine::Lu, factor.batch = 2;
      factor.arrays = {{m.elements(2 * 15, true), DType::F32, true, 3, 5, 3, 15},
                       {m.elements(2 * 3, true, DType::I32), DType::I32, true, 3, 1, 3, 3},
                       {m.elements(2, true, DType::I32), DType::I32, true, 1, 1, 1, 1}};
      return factor;
    },
    [](Memory& m) -> ir::Instruction {
      ir::Fft transform;
      transform.kind = ir::Fft::Kind::RealToHalf, transform.n = 5, transform.shape = {2, 3};
      transform.in = {m.elements(2 * 3 * 5, false), {15, 5}, 1}, transform.out = {m.elements(2 * 3 * 3 * 2, true), {18, 6}, 2};
      return transform;
    },
    [](Memory& m) -> ir::Instruction {
      ir::Attention a;
      a.use = ir::Attention::Use::Backward, a.dtype = DType::F32, a.bias_type = DType::F32, a.biased = true;
      a.batch = 2, a.heads = 2, a.key_heads = 1, a.queries = 3, a.keys = 5, a.width = 4, a.value_width = 6;
      const auto array = [&](const ir::Attention::Sizes& s, bool written) {
        return ir::Attention::Array{m.elements(s[0] * s[1] * s[2] * s[3], written), {s[1] * s[2] * s[3], s[2] * s[3], s[3], 1}};
      };
      a.q = array(a.sizes_of_q(), false), a.k = array(a.sizes_of_k(), false), a.v = array(a.sizes_of_v(), false);
      a.out = array(a.sizes_of_out(), false), a.dout = array(a.sizes_of_out(), false), a.stats = array(a.sizes_of_stats(), false);
      a.bias = array(a.sizes_of_bias(), false);
      a.dq = array(a.sizes_of_q(), true), a.dk = array(a.sizes_of_k(), true), a.dv = array(a.sizes_of_v(), true);
      return a;
    },
    [](Memory& m) -> ir::Instruction {
      return ir::CopyBytes{m.elements(4, true), m.elements(4, false), 16, Device("cpu"), Device("cpu")};
    },
    [](Memory& m) -> ir::Instruction { return rows_of(m); },
    [](Memory& m) -> ir::Instruction {
      ir::MapEach each;
      each.program = copy_program();
      each.counts = {15, 7};
      for (const int64_t n : each.counts) {
        each.addresses.push_back(m.elements(n, false));
        each.addresses.push_back(m.elements(n, true));
      }
      return each;
    },
    [](Memory& m) -> ir::Instruction {
      using What = Communicator::What;
      const auto call = [&](What what, int64_t read, int64_t written) {
        Communicator::Call c{what, nullptr, nullptr, 4, DType::F32};
        if (read) c.from = m.elements(read, false);
        if (written) c.to = m.elements(written, true);
        return c;
      };
      return ir::Exchange{std::make_shared<OfThree>(),
                          {call(What::AllReduce, 4, 4), call(What::AllGather, 4, 12), call(What::ReduceScatter, 12, 4),
                           call(What::Send, 4, 0), call(What::Receive, 0, 4)}};
    },
};

TEST(CheckOperands, an_operand_may_fill_its_storage_and_one_byte_less_is_refused_for_every_kind_of_instruction) {
  std::set<size_t> kinds;
  for (const Make make : kKinds) {
    Memory m;
    const ir::Instruction instruction = make(m);
    SCOPED_TRACE(::testing::Message() << "kind " << instruction.index());
    kinds.insert(instruction.index());
    size_t operands = 0;
    ir::each_operand(instruction, [&](const void*, const ir::OperandUse&) { ++operands; });
    EXPECT_GE(operands, m.storages.size());
    EXPECT_NO_THROW(check_operands(instruction, m.accesses));
    for (const Ref<Storage>& s : m.storages) {
      --s->bytes;
      EXPECT_THROW(check_operands(instruction, m.accesses), RuntimeError) << s->bytes;
      ++s->bytes;
      s->data = static_cast<char*>(s->data) + 1;
      EXPECT_THROW(check_operands(instruction, m.accesses), RuntimeError) << s->bytes;
      s->data = static_cast<char*>(s->data) - 1;
    }
  }
  EXPECT_EQ(kinds.size() + 1, std::variant_size_v<ir::Instruction>);
}

TEST(CheckOperands, what_is_written_must_be_among_the_storages_written) {
  for (const Make make : kKinds) {
    Memory m;
    const ir::Instruction instruction = make(m);
    Accesses all_read;
    for (const Ref<Storage>& s : m.storages) all_read.reads.push_back(s.get());
    EXPECT_THROW(check_operands(instruction, all_read), RuntimeError) << "kind " << instruction.index();
  }
}

TEST(CheckOperands, negative_strides_reach_in_front_of_the_address_and_repeated_elements_nowhere) {
  Memory m;
  ir::Map map = map_of(m);
  float* const first = static_cast<float*>(map.inputs[0].data);
  map.inputs[0] = {first + 14, DType::F32, {-5, -1}};
  EXPECT_NO_THROW(check_operands(map, m.accesses));
  map.inputs[0].data = first + 13;
  EXPECT_THROW(check_operands(map, m.accesses), RuntimeError);
  map.inputs[0] = {first + 14, DType::F32, {0, 0}};
  EXPECT_NO_THROW(check_operands(map, m.accesses));
  map.inputs[0] = {first, DType::F32, {int64_t{1} << 62, 1}};
  EXPECT_THROW(check_operands(map, m.accesses), RuntimeError);
}

TEST(CheckOperands, no_elements_lie_nowhere) {
  Memory m;
  ir::Map map = map_of(m);
  map.shape = {3, 0};
  map.inputs[0].data = map.outputs[0].data = &m;
  EXPECT_NO_THROW(check_operands(map, m.accesses));
}

TEST(CheckOperands, the_error_names_the_operator_and_the_operand) {
  Memory m;
  ir::Reduce r = reduce_of(m);
  r.inputs[0].strides = {5, 2};
  try {
    check_operands(r, m.accesses);
    FAIL() << "not refused";
  } catch (const RuntimeError& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("sum: the input of a reduction lies outside"), std::string::npos) << text;
    EXPECT_NE(text.find("strides [5, 2]"), std::string::npos) << text;
  }
}

// Counts the submitted instructions.
class CountingStream final : public DeviceStream {
 public:
  uint64_t submit(ir::Instruction, std::vector<Ref<Storage>>) override { return ++count_; }
  void wait(DeviceStream&, uint64_t) override {}
  uint64_t completed() const noexcept override { return count_; }
  uint64_t submitted() const noexcept override { return count_; }
  void reach(uint64_t) noexcept override {}
  std::unique_ptr<TimeStamp> stamp() override { return nullptr; }

 private:
  uint64_t count_ = 0;
};

class CountingBackend final : public testing::ToyMemory {
 public:
  Properties properties(Device device) override {
    Properties p = ToyMemory::properties(device);
    p.synchronous = true;
    return p;
  }
  std::unique_ptr<DeviceStream> create_stream(Device, int) override { return std::make_unique<CountingStream>(); }
};

TEST(CheckOperands, a_queue_hands_no_such_instruction_to_its_device_in_debug_and_sanitizer_builds) {
  CountingBackend backend;
  Queue queue(backend, Device("cpu"));
  Memory m;
  ir::Map map = map_of(m);
  EXPECT_EQ(queue.submit(ir::Instruction(map), m.accesses), 1u);
  map.inputs[0].strides = {5, 2};
  if (!kChecksOperands) GTEST_SKIP() << "a release build, which does not check";
  EXPECT_THROW(queue.submit(ir::Instruction(map), m.accesses), RuntimeError);
  EXPECT_EQ(queue.stream().submitted(), 1u);
}

}  // namespace
}  // namespace naru::runtime
