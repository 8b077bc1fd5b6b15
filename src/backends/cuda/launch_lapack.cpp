// Linear algebra on a stream: calls cuSOLVER, and adapts its results to LAPACK's conventions: 32-bit pivots, zeros in the other triangle,
// singular values of wide matrices, an error number for matrices that are not finite.
#include "backends/cuda/launcher.h"
#include "ir/op_ids.h"
#include "ir/program_builder.h"

namespace naru::backends::cuda {
namespace {

using ir::Lapack;
using Routine = Lapack::Routine;

// to = from, clamped to [1, most], because the library exchanges rows at these indices.
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

// Zeroes the triangle of column-major matrices that is not part of the factor.
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

// Elements of column-major matrices as reals, along columns; turned: along rows.
ir::View elements(const Lapack::Array& a, bool turned = false) {
  const int64_t parts = a.complex ? 2 : 1;
  Dims strides{a.matrix * parts, a.column * parts, parts};
  if (turned) std::swap(strides[1], strides[2]);
  if (a.complex) strides.push_back(1);
  return {a.data, a.dtype, std::move(strides)};
}
Dims shape_of(const Lapack& op, const Lapack::Array& a) {
  Dims shape{op.batch, a.cols, a.rows};
  if (a.complex) shape.push_back(2);
  return shape;
}

// finite[i] = whether all elements of matrix i of array 0 are finite.
ir::Reduce all_finite(const Lapack& op, void* finite) {
  ir::Reduce r;
  r.op = ir::ReduceOp::All;
  r.program = ir::ProgramBuilder::single(ir::op::isfinite, {op.dtype}, op.dtype, DType::Bool);
  r.shape = shape_of(op, op.arrays[0]);
  r.reduced = static_cast<int>(r.shape.size()) - 1;
  r.inputs = {elements(op.arrays[0])};
  r.out = {finite, DType::Bool, {1}};
  return r;
}

// to = `number` where the matrix is not finite.
ir::Map set_unless(const Lapack& op, void* finite, const Lapack::Array& a, int64_t number) {
  ir::Map map;
  ir::ProgramBuilder b(map.program);
  const auto keep = b.input(DType::Bool, DType::Bool), x = b.input(a.dtype, a.dtype), other = b.param(a.dtype);
  b.output(b.node(ir::op::where, a.dtype, {keep, x, other}));
  map.params = {a.dtype == DType::I32 ? static_cast<uint32_t>(number) : static_cast<uint64_t>(number)};
  map.shape = shape_of(op, a);
  Dims steps(map.shape.size(), 0);
  steps[0] = 1;
  map.inputs = {{finite, DType::Bool, steps}, elements(a)}, map.outputs = {elements(a)};
  return map;
}

// to[i] = the address of matrix i of array 0.
ir::Map addresses(const Lapack& op, void* to) {
  const Lapack::Array& a = op.arrays[0];
  ir::Map map;
  ir::ProgramBuilder b(map.program);
  b.output(b.node(ir::op::arange, DType::I64, {b.param(DType::I64), b.param(DType::I64)}));
  map.params = {reinterpret_cast<uint64_t>(a.data), static_cast<uint64_t>(a.matrix) * size_of(a.dtype) * (a.complex ? 2 : 1)};
  map.shape = {op.batch};
  map.outputs = {{to, DType::I64, {1}}};
  return map;
}

bool is_wide(const Lapack& op) { return op.routine == Routine::Svd && op.arrays[0].rows < op.arrays[0].cols; }

}  // namespace

// The library has no SVD of matrices that are wider than high: use A^T = conj(V) S U^T.
void LibraryLauncher::factor_wide(const Lapack& op) {
  Lapack turned = op;
  const auto make = [&](const Lapack::Array& of) {
    Lapack::Array a = of;
    a.rows = of.cols, a.cols = of.rows, a.column = a.rows, a.matrix = a.rows * a.cols;
    a.data = scratch(static_cast<size_t>(op.batch * a.matrix) * size_of(a.dtype) * (a.complex ? 2 : 1));
    return a;
  };
  const auto copy = [&](const Lapack::Array& from, const Lapack::Array& to) {
    render::c::run(ir::copy_of(shape_of(op, to), elements(from, true), elements(to)), launcher_);
  };
  turned.arrays[0] = make(op.arrays[0]);
  copy(op.arrays[0], turned.arrays[0]);
  if (op.vectors) turned.arrays[2] = make(op.arrays[3]), turned.arrays[3] = make(op.arrays[2]);
  factor_each(turned);
  if (op.vectors) copy(turned.arrays[3], op.arrays[2]), copy(turned.arrays[2], op.arrays[3]);
}

void LibraryLauncher::factor_each(const Lapack& op) {
  Factors& factors = device_.factors();
  if (Factors::in_one_call(op)) {
    void* const matrices = scratch(static_cast<size_t>(op.batch) * sizeof(void*));
    render::c::run(addresses(op, matrices), launcher_);
    return factors.start_all(op, static_cast<void**>(matrices), stream_);
  }
  const Factors::Room room = factors.room(op);
  void* const work = room.device > 0 ? scratch(room.device) : nullptr;
  const bool pivoted = op.routine == Routine::Lu || op.routine == Routine::LuSolve;
  const int64_t count = pivoted ? op.arrays[1].rows : 0;
  int64_t* const pivots = pivoted ? static_cast<int64_t*>(scratch(static_cast<size_t>(op.batch * count) * sizeof(int64_t))) : nullptr;
  const Dims shape{op.batch, count};
  const ir::View here{pivots, DType::I64, {count, 1}};
  const ir::View there = pivoted ? ir::View{op.arrays[1].data, DType::I32, {op.arrays[1].matrix, 1}} : ir::View{};
  if (op.routine == Routine::LuSolve) render::c::run(pivots_copied(shape, there, here, op.arrays[0].rows), launcher_);
  for (int64_t i = 0; i < op.batch; ++i) factors.start(op, i, pivoted ? pivots + i * count : nullptr, work, room, stream_);
  if (op.routine == Routine::Lu) render::c::run(pivots_copied(shape, here, there, op.arrays[0].rows), launcher_);
}

void LibraryLauncher::factor(const Lapack& op) {
  if (only_prepares_) return;
  // Iterative routines might never end, or return anything, if elements are infinite or NaN. Report the error numbers that the host reports
  // for such matrices (backends/cpu/libraries/lapack_routines.h).
  const bool iterates = op.routine == Routine::Svd || op.routine == Routine::Eigh;
  const int64_t number = op.routine == Routine::Svd ? -4 : 1;
  void* const finite = iterates ? scratch(static_cast<size_t>(op.batch)) : nullptr;
  if (iterates) render::c::run(all_finite(op, finite), launcher_), render::c::run(set_unless(op, finite, op.arrays[0], 0), launcher_);
  is_wide(op) ? factor_wide(op) : factor_each(op);
  if (iterates) render::c::run(set_unless(op, finite, op.arrays.back(), number), launcher_);
  if (op.routine == Routine::Cholesky) render::c::run(other_triangle_cleared(op), launcher_);
}

}  // namespace naru::backends::cuda
