// Linear algebra on a stream: cuSOLVER's calls, matrix by matrix, and what LAPACK has otherwise: pivots of 32 bits, zeros beyond a triangle.
#include "backends/cuda/launcher.h"
#include "ir/op_ids.h"
#include "ir/program_builder.h"

namespace naru::backends::cuda {
namespace {

using ir::Lapack;
using Routine = Lapack::Routine;

// to = from, kept within 1 and most: what stands there is where the library exchanges rows.
ir::Map pivots_copied(const Dims& shape, ir::View from, ir::View to, int64_t most) {
  ir::Map map;
  ir::ProgramBuilder b(map.program);
  const auto x = b.input(from.dtype, DType::I64), least = b.param(DType::I64), greatest = b.param(DType::I64);
  b.output(b.node(ir::op::clamp, to.dtype, {x, least, greatest}));
  map.params = {1, static_cast<uint64_t>(most)};
  map.shape = shape;
  map.inputs = {std::move(from)}, map.outputs = {std::move(to)};
  return map;
}

// Zeros in the triangle of column-major matrices that a factor does not have.
ir::Map other_triangle_cleared(const Lapack& op) {
  const Lapack::Array& a = op.arrays[0];
  const int64_t parts = a.complex ? 2 : 1, n = a.rows;
  ir::Map map;
  ir::ProgramBuilder b(map.program);
  const DType whole = DType::I64;
  const auto zero = b.param(whole), one = b.param(whole), line = b.param(whole), size = b.param(whole), pair = b.param(whole);
  const auto x = b.input(a.dtype, a.dtype);
  const auto nothing = b.param(a.dtype);
  const auto node = [&](ir::OpId id, std::initializer_list<ir::ProgramBuilder::Arg> args) {
    return ir::ProgramBuilder::result(b.node(id, whole, args), whole);
  };
  const auto index = node(ir::op::arange, {zero, one});
  const auto col = node(ir::op::remainder, {node(ir::op::floor_divide, {index, line}), size});
  const auto row = node(ir::op::floor_divide, {node(ir::op::remainder, {index, line}), pair});
  const auto keep = ir::ProgramBuilder::result(b.node(op.upper ? ir::op::le : ir::op::ge, DType::Bool, {row, col}), DType::Bool);
  b.output(b.node(ir::op::where, a.dtype, {keep, x, nothing}));
  const auto u = [](int64_t i) { return static_cast<uint64_t>(i); };
  map.params = {0, 1, u(n * parts), u(n), u(parts), 0};
  map.shape = {op.batch, n, n * parts};
  const ir::View view{a.data, a.dtype, {a.matrix * parts, a.column * parts, 1}};
  map.inputs = {view}, map.outputs = {view};
  return map;
}

}  // namespace

void StreamLauncher::factor(const Lapack& op) {
  Factors& factors = device_.factors();
  const Factors::Room room = factors.room(op);
  void* const work = room.device > 0 ? scratch(room.device) : nullptr;
  const bool pivoted = op.routine == Routine::Lu || op.routine == Routine::LuSolve;
  const int64_t count = pivoted ? op.arrays[1].rows : 0;
  int64_t* const pivots = pivoted ? static_cast<int64_t*>(scratch(static_cast<size_t>(op.batch * count) * sizeof(int64_t))) : nullptr;
  const Dims shape{op.batch, count};
  const ir::View here{pivots, DType::I64, {count, 1}};
  const ir::View there = pivoted ? ir::View{op.arrays[1].data, DType::I32, {op.arrays[1].matrix, 1}} : ir::View{};
  if (op.routine == Routine::LuSolve) render::c::run(pivots_copied(shape, there, here, op.arrays[0].rows), *this);
  for (int64_t i = 0; i < op.batch && !only_prepares_; ++i)
    factors.start(op, i, pivoted ? pivots + i * count : nullptr, work, room, stream_);
  if (op.routine == Routine::Lu) render::c::run(pivots_copied(shape, here, there, op.arrays[0].rows), *this);
  if (op.routine == Routine::Cholesky) render::c::run(other_triangle_cleared(op), *this);
}

}  // namespace naru::backends::cuda
