// Compiled reductions against the interpreter, bit for bit, and against the order specified in ir/reduce.h.
#include <cstring>
#include <map>

#include "render/random_graph.h"

namespace naru::test {
namespace {

using ir::ReduceOp;
using ir::V;
using ir::VType;

constexpr ReduceOp kOps[] = {ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min, ReduceOp::Any, ReduceOp::All};

bool takes(ReduceOp op, VType t) {
  const bool logical = op == ReduceOp::Any || op == ReduceOp::All;
  return logical ? t == VType::Bool : t != VType::Bool;
}

std::string label(ReduceOp op, VType t) {
  return "op " + std::to_string(static_cast<int>(op)) + " type " + std::to_string(static_cast<int>(t));
}

ir::ReduceKernel plain(ReduceOp op, DType from, DType to) {
  ir::ReduceKernel k;
  k.map.inputs = {{from}};
  k.map.results = {ir::convert(ir::input(k.map.graph, 0, from), to).id()};
  k.op = op;
  k.type = ir::vtype_of(to);
  return k;
}

::testing::AssertionResult equal(VType type, const uint8_t* got, const uint8_t* expected, int64_t count, render::Isa isa) {
  const DType t = dtype_of(type);
  for (int64_t i = 0; i < count; ++i) {
    const size_t at = static_cast<size_t>(i) * size_of(t);
    if (!same(t, got + at, expected + at))
      return ::testing::AssertionFailure() << name_of(isa) << ", result " << i << ": " << text_of(t, got + at)
                                           << ", the interpreter: " << text_of(t, expected + at);
  }
  return ::testing::AssertionSuccess();
}

// Inputs have n elements (scalar ones: one, or one per row), each ending at a guard page.
std::vector<std::unique_ptr<GuardedBuffer>> place(const ir::MapKernel& map, const std::vector<std::vector<uint8_t>>& inputs, int64_t n,
                                                  std::vector<void*>& operands, int64_t rows = 0) {
  std::vector<std::unique_ptr<GuardedBuffer>> placed;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int64_t count = map.inputs[i].per_row ? rows : map.inputs[i].scalar ? 1 : n;
    const size_t bytes = size_of(map.inputs[i].dtype) * static_cast<size_t>(count);
    placed.push_back(std::make_unique<GuardedBuffer>(bytes, GuardedBuffer::Side::Behind));
    if (bytes > 0) std::memcpy(placed.back()->data(), inputs[i].data(), bytes);
    operands.push_back(placed.back()->data());
  }
  return placed;
}

::testing::AssertionResult contiguous_agrees(const ir::ReduceKernel& kernel, const std::vector<ir::ContiguousFunction>& functions,
                                             const std::vector<std::vector<uint8_t>>& inputs, const std::vector<uint64_t>& params,
                                             int64_t n) {
  std::vector<void*> operands;
  const auto placed = place(kernel.map, inputs, n, operands);
  const size_t results = kernel.map.results.size(), all = results * ir::size_of(kernel.type);
  std::vector<uint8_t> expected(all);
  // The reduced values themselves, if the kernel stores them.
  const size_t bytes = kernel.map.outputs.empty() ? 0 : ir::size_of(kernel.type) * static_cast<size_t>(n);
  std::vector<uint8_t> values(bytes);
  operands.push_back(values.data());
  ir::interpret_contiguous(kernel, operands.data(), params.data(), n, 11, expected.data());
  for (size_t k = 0; k < functions.size(); ++k) {
    if (functions[k] == nullptr) return ::testing::AssertionFailure() << "no code was made";
    GuardedBuffer out(all, GuardedBuffer::Side::Behind);
    GuardedBuffer stored(bytes, GuardedBuffer::Side::Behind);
    operands.back() = stored.data();
    functions[k](operands.data(), params.data(), n, 11, out.data());
    if (auto r = equal(kernel.type, stored.data(), values.data(), bytes ? n : 0, isas()[k]); !r) return r << ", stored, n = " << n;
    if (!stored.surroundings_intact()) return ::testing::AssertionFailure() << "wrote outside its output";
    if (auto r = equal(kernel.type, out.data(), expected.data(), static_cast<int64_t>(results), isas()[k]); !r) return r << ", n = " << n;
    if (!out.surroundings_intact()) return ::testing::AssertionFailure() << "wrote outside its result";
  }
  return ::testing::AssertionSuccess();
}

std::vector<ir::ContiguousFunction> contiguous_all(const ir::ReduceKernel& kernel) {
  std::vector<ir::ContiguousFunction> all;
  for (const render::Isa isa : isas()) all.push_back(render::compile_contiguous(kernel, isa));
  return all;
}

TEST(NativeReductions, ContiguousEqualTheInterpreterForEveryOperatorTypeAndLength) {
  for (const ReduceOp op : kOps)
    for (const VType t : {VType::Bool, VType::I32, VType::I64, VType::F32, VType::F64}) {
      if (!takes(op, t)) continue;
      SCOPED_TRACE(label(op, t));
      const ir::ReduceKernel kernel = plain(op, dtype_of(t), dtype_of(t));
      const auto functions = contiguous_all(kernel);
      Bits bits(static_cast<uint64_t>(t));
      for (int64_t n = 0; n <= 200; ++n) ASSERT_TRUE(contiguous_agrees(kernel, functions, {mixed_elements(dtype_of(t), n, bits)}, {}, n));
      for (const int64_t n : {1000, 4096, 5000, 16383, 16384})
        ASSERT_TRUE(contiguous_agrees(kernel, functions, {mixed_elements(dtype_of(t), n, bits)}, {}, n));
    }
}

TEST(NativeReductions, ContiguousFollowTheOrderThatIsPromised) {
  const ir::ReduceKernel kernel = plain(ReduceOp::Sum, DType::F32, DType::F32);
  for (const ir::ContiguousFunction f : contiguous_all(kernel))
    for (const int64_t n : {1, 5, 63, 64, 65, 127, 777, 16384}) {
      std::vector<float> x(static_cast<size_t>(n));
      Bits bits(static_cast<uint64_t>(n));
      for (float& v : x) v = static_cast<float>(static_cast<double>(bits.next() >> 11) * 0x1p-53 * 1000 - 300);
      float lane[64] = {};
      for (size_t i = 0; i < x.size(); ++i) lane[i % 64] += x[i];
      for (int half = 32; half >= 1; half /= 2)
        for (int l = 0; l < half; ++l) lane[l] += lane[l + half];
      void* inputs[] = {x.data()};
      float sum = 0;
      ASSERT_NE(f, nullptr);
      f(inputs, nullptr, n, 0, &sum);
      EXPECT_EQ(sum, lane[0]) << n;
    }
}

TEST(NativeReductions, ConvertWhatTheyReduce) {
  for (int from = 0; from < kDTypes; ++from)
    for (const DType to : {DType::I64, DType::F32, DType::F64}) {
      const auto dtype = static_cast<DType>(from);
      SCOPED_TRACE(std::string(name_of(dtype)) + " " + std::string(name_of(to)));
      const ir::ReduceKernel kernel = plain(ReduceOp::Sum, dtype, to);
      const auto functions = contiguous_all(kernel);
      Bits bits(static_cast<uint64_t>(from));
      for (const int64_t n : {1, 3, 17, 64, 100, 1000})
        ASSERT_TRUE(contiguous_agrees(kernel, functions, {mixed_elements(dtype, n, bits)}, {}, n));
    }
}

// several: more results, which are any values within the graph: ones that others are made of, inputs, numbers, the same one twice.
ir::ReduceKernel random_reduce(uint64_t seed, int64_t n, std::vector<std::vector<uint8_t>>& inputs, std::vector<uint64_t>& params,
                               int64_t rows = 0, bool several = false) {
  Bits bits(seed);
  const ReduceOp op = kOps[bits.below(6)];
  const bool logical = op == ReduceOp::Any || op == ReduceOp::All;
  constexpr VType kNumbers[] = {VType::I32, VType::I64, VType::F32, VType::F64};
  const VType type = logical ? VType::Bool : kNumbers[bits.below(4)];
  RandomKernel r = random_kernel(seed, static_cast<int>(seed % 25), n, 0, type, rows);
  inputs = std::move(r.inputs);
  params = std::move(r.params);
  std::vector<uint32_t> fitting;
  for (uint32_t id = 0; id < r.kernel.graph.nodes().size(); ++id)
    if (r.kernel.graph[id].type == type && id <= r.kernel.results[0]) fitting.push_back(id);
  for (uint64_t more = several ? 1 + bits.below(3) : 0; more > 0; --more) r.kernel.results.push_back(fitting[bits.below(fitting.size())]);
  return {std::move(r.kernel), op, type};
}

TEST(NativeReductions, ContiguousOfRandomGraphsEqualTheInterpreter) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::vector<std::vector<uint8_t>> inputs;
    std::vector<uint64_t> params;
    const auto n = static_cast<int64_t>(seed * 7 % 411);
    const ir::ReduceKernel kernel = random_reduce(seed, n, inputs, params);
    ASSERT_TRUE(contiguous_agrees(kernel, contiguous_all(kernel), inputs, params, n)) << "seed " << seed;
  }
}

TEST(NativeReductions, ContiguousStoreWhatTheyReduceWhereItIsAnOutput) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    std::vector<std::vector<uint8_t>> inputs;
    std::vector<uint64_t> params;
    const auto n = static_cast<int64_t>(seed * 7 % 411);
    ir::ReduceKernel kernel = random_reduce(seed, n, inputs, params);
    kernel.map.outputs = {dtype_of(kernel.type)};
    ASSERT_TRUE(contiguous_agrees(kernel, contiguous_all(kernel), inputs, params, n)) << "seed " << seed;
  }
}

std::vector<ir::StridedFunction> strided_all(const ir::ReduceKernel& kernel) {
  std::vector<ir::StridedFunction> all;
  for (const render::Isa isa : isas()) all.push_back(render::compile_strided(kernel, isa));
  return all;
}

// Inputs have rows * pitch elements; the first `columns` of each row are reduced, and the last row ends at a guard page.
::testing::AssertionResult strided_agrees(const ir::ReduceKernel& kernel, const std::vector<ir::StridedFunction>& functions,
                                          const std::vector<std::vector<uint8_t>>& inputs, const std::vector<uint64_t>& params,
                                          int64_t rows, int64_t columns, int64_t pitch) {
  std::vector<void*> operands;
  std::vector<int64_t> strides;
  const int64_t used = rows == 0 ? 0 : (rows - 1) * pitch + columns;
  const auto placed = place(kernel.map, inputs, used, operands, rows);
  for (const auto& input : kernel.map.inputs)
    strides.push_back((input.per_row ? 1 : input.scalar ? 0 : pitch) * static_cast<int64_t>(size_of(input.dtype)));
  const int64_t count = static_cast<int64_t>(kernel.map.results.size()) * columns;
  const int64_t plane = static_cast<int64_t>(ir::size_of(kernel.type)) * columns;
  const size_t bytes = ir::size_of(kernel.type) * static_cast<size_t>(count);
  std::vector<uint8_t> expected(bytes);
  ir::fill_identity(kernel.op, kernel.type, expected.data(), count);
  ir::interpret_strided(kernel, operands.data(), strides.data(), params.data(), rows, columns, 100, 1000, expected.data(), plane);
  for (size_t k = 0; k < functions.size(); ++k) {
    if (functions[k] == nullptr) return ::testing::AssertionFailure() << "no code was made";
    GuardedBuffer out(bytes, GuardedBuffer::Side::Behind);
    // In two calls: the second continues from the first one's results.
    ir::fill_identity(kernel.op, kernel.type, out.data(), count);
    const int64_t first = rows / 3;
    functions[k](operands.data(), strides.data(), params.data(), first, columns, 100, 1000, out.data(), plane);
    std::vector<void*> later = operands;
    for (size_t i = 0; i < later.size(); ++i) later[i] = static_cast<char*>(later[i]) + first * strides[i];
    functions[k](later.data(), strides.data(), params.data(), rows - first, columns, 100 + first * 1000, 1000, out.data(), plane);
    if (auto r = equal(kernel.type, out.data(), expected.data(), count, isas()[k]); !r)
      return r << ", rows " << rows << ", columns " << columns;
    if (!out.surroundings_intact()) return ::testing::AssertionFailure() << "wrote outside its results";
  }
  return ::testing::AssertionSuccess();
}

TEST(NativeReductions, StridedEqualTheInterpreterForEveryOperatorTypeAndWidth) {
  for (const ReduceOp op : kOps)
    for (const VType t : {VType::Bool, VType::I32, VType::I64, VType::F32, VType::F64}) {
      if (!takes(op, t)) continue;
      SCOPED_TRACE(label(op, t));
      const ir::ReduceKernel kernel = plain(op, dtype_of(t), dtype_of(t));
      const auto functions = strided_all(kernel);
      Bits bits(static_cast<uint64_t>(t));
      for (int64_t columns = 0; columns <= 150; ++columns) {
        const int64_t rows = 1 + columns % 4, pitch = columns + columns % 3;
        ASSERT_TRUE(strided_agrees(kernel, functions, {mixed_elements(dtype_of(t), rows * pitch, bits)}, {}, rows, columns, pitch));
      }
      for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{0, 9}, {256, 1}, {256, 33}, {100, 400}})
        ASSERT_TRUE(strided_agrees(kernel, functions, {mixed_elements(dtype_of(t), rows * columns, bits)}, {}, rows, columns, columns));
    }
}

TEST(NativeReductions, StridedOfRandomGraphsEqualTheInterpreter) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    std::vector<std::vector<uint8_t>> inputs;
    std::vector<uint64_t> params;
    const auto rows = static_cast<int64_t>(1 + seed % 5), columns = static_cast<int64_t>(seed * 13 % 300);
    // Every other kernel also has inputs with one element per row.
    const ir::ReduceKernel kernel = random_reduce(seed, rows * columns, inputs, params, seed % 2 == 0 ? rows : 0);
    ASSERT_TRUE(strided_agrees(kernel, strided_all(kernel), inputs, params, rows, columns, columns)) << "seed " << seed;
  }
}

TEST(NativeReductions, SeveralResultsAreThoseOfEachByItself) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    std::vector<std::vector<uint8_t>> inputs;
    std::vector<uint64_t> params;
    const auto n = static_cast<int64_t>(seed * 7 % 411), rows = static_cast<int64_t>(1 + seed % 5);
    const ir::ReduceKernel kernel = random_reduce(seed, n, inputs, params, 0, true);
    ASSERT_TRUE(contiguous_agrees(kernel, contiguous_all(kernel), inputs, params, n)) << "seed " << seed;
    for (size_t r = 0; r < kernel.map.results.size() && n > 0; ++r) {
      std::vector<void*> operands;
      const auto placed = place(kernel.map, inputs, n, operands);
      std::vector<uint8_t> all(8 * kernel.map.results.size()), alone(8);
      ir::ReduceKernel one = kernel;
      one.map.results = {kernel.map.results[r]};
      ir::interpret_contiguous(kernel, operands.data(), params.data(), n, 11, all.data());
      ir::interpret_contiguous(one, operands.data(), params.data(), n, 11, alone.data());
      ASSERT_TRUE(equal(kernel.type, all.data() + r * ir::size_of(kernel.type), alone.data(), 1, render::Isa::None)) << "seed " << seed;
    }
    const auto columns = static_cast<int64_t>(seed * 13 % 300);
    const ir::ReduceKernel strided = random_reduce(seed, rows * columns, inputs, params, seed % 2 == 0 ? rows : 0, true);
    ASSERT_TRUE(strided_agrees(strided, strided_all(strided), inputs, params, rows, columns, columns)) << "seed " << seed;
  }
}

// Inputs with one element per row, used at any position, several times and late: depending on the evaluation order, the result may or may not
// overwrite the registers that hold the repeated element.
TEST(NativeReductions, StridedTakeOneElementForEachRowInEveryPosition) {
  using Formula = V (*)(V x, V row, V all);
  const Formula formulas[] = {
      [](V x, V row, V all) { return (x - row) * all + row * row; },
      [](V x, V row, V) { return row * x; },
      [](V x, V row, V) { return x * row; },
      [](V x, V row, V) { return row - x; },
      [](V x, V row, V) { return ir::prim_min(row, x); },
      [](V x, V row, V) { return ir::where(x < row, row, x); },
      [](V x, V row, V) { return ir::where(row < x, x, row); },
      [](V, V row, V) { return row; },
      [](V, V row, V) { return -row; },
      [](V x, V row, V all) { return (row + all) * (x + row); },
      [](V x, V row, V) { return ir::is_float(x.type()) ? ir::fma(row, x, x) : row * x + x; },
      [](V x, V row, V) { return ir::is_float(x.type()) ? ir::fma(x, x, row) : x * x + row; },
  };
  int number = 0;
  for (const Formula formula : formulas)
    for (int d = 1; d < kDTypes; ++d) {
      const auto t = static_cast<DType>(d);
      SCOPED_TRACE("formula " + std::to_string(number / (kDTypes - 1)) + " of " + std::string(name_of(t)));
      ++number;
      ir::ReduceKernel kernel;
      kernel.map.inputs = {{t}, {t, true, true}, {t, true}};
      ir::Graph& g = kernel.map.graph;
      kernel.map.results = {formula(ir::input(g, 0, t), ir::input(g, 1, t), ir::input(g, 2, t)).id()};
      kernel.op = ReduceOp::Sum;
      kernel.type = g[kernel.map.results[0]].type;
      const auto functions = strided_all(kernel);
      Bits bits(3);
      for (const int64_t columns : {1, 7, 16, 130, 300}) {
        const int64_t rows = 9;
        ASSERT_TRUE(strided_agrees(kernel, functions,
                                   {mixed_elements(t, rows * columns, bits), mixed_elements(t, rows, bits), mixed_elements(t, 1, bits)}, {},
                                   rows, columns, columns));
      }
    }
}

}  // namespace
}  // namespace naru::test
