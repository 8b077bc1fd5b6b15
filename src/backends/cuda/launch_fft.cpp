// Fourier transforms on a stream: copies operands to layouts that cuFFT supports, calls it, and does what it lacks (scales, conjugates).
#include <bit>

#include "backends/cuda/launcher.h"
#include "ir/op_ids.h"
#include "ir/program_builder.h"

namespace naru::backends::cuda {
namespace {

using ir::Fft;
using Kind = Fft::Kind;

uint64_t bits_of(double number, DType type) {
  return type == DType::F64 ? std::bit_cast<uint64_t>(number) : std::bit_cast<uint32_t>(static_cast<float>(number));
}

// to = from * factor; a copy if factor is 1.
ir::Map scaled(const Dims& shape, void* from, const Dims& from_strides, void* to, const Dims& to_strides, DType type, double factor) {
  ir::View source{from, type, from_strides}, target{to, type, to_strides};
  if (factor == 1) return ir::copy_of(shape, std::move(source), std::move(target));
  ir::Map map;
  ir::ProgramBuilder b(map.program);
  const auto x = b.input(type, type), number = b.param(type);
  b.output(b.node(ir::op::mul, type, {x, number}));
  map.params = {bits_of(factor, type)};
  map.shape = shape;
  map.inputs = {std::move(source)};
  map.outputs = {std::move(target)};
  return map;
}

// One side of a transform as an array of reals: dimensions `shape`, then along the transform, then for complex values the two parts.
struct Reals {
  Dims shape, strides;
  Reals(const Dims& rows, const Dims& row_strides, int64_t step, int64_t length, bool complex) : shape(rows), strides(row_strides) {
    shape.push_back(length), strides.push_back(step);
    if (complex) shape.push_back(2), strides.push_back(1);
  }
};

// Scales real and imaginary parts separately if their factors differ, else all at once.
void scale(render::c::Launcher& launcher, const Fft& op, void* from, const Dims& from_strides, void* to, const Dims& to_strides,
           const Dims& shape, bool complex, double factor, double imaginary) {
  if (from == to && factor == 1 && imaginary == 1) return;
  if (!complex || factor == imaginary) return render::c::run(scaled(shape, from, from_strides, to, to_strides, op.dtype, factor), launcher);
  Dims one = shape;
  one.back() = 1;
  const auto behind = [&](void* p) { return static_cast<char*>(p) + size_of(op.dtype); };
  if (from != to || factor != 1) render::c::run(scaled(one, from, from_strides, to, to_strides, op.dtype, factor), launcher);
  render::c::run(scaled(one, behind(from), from_strides, behind(to), to_strides, op.dtype, imaginary), launcher);
}

// Clears the imaginary part of the first value of each row and, if n is even, of the last.
void clear_imaginary(render::c::Launcher& launcher, const Fft& op, void* rows) {
  const int64_t given = op.given(), count = product(op.shape);
  const auto clear = [&](int64_t number) {
    ir::Map map;
    ir::ProgramBuilder b(map.program);
    b.output(b.node(ir::op::copy, op.dtype, {b.param(op.dtype)}));
    map.params = {0};
    map.shape = {count};
    map.outputs = {{static_cast<char*>(rows) + static_cast<size_t>(2 * number + 1) * size_of(op.dtype), op.dtype, {2 * given}}};
    render::c::run(map, launcher);
  };
  clear(0);
  if (op.n % 2 == 0) clear(given - 1);
}

}  // namespace

void LibraryLauncher::transform(const Fft& op) {
  Transforms& transforms = device_.transforms();
  const FftPlacing placing = placing_of(op);
  const size_t item = size_of(op.dtype);
  // The library's real transforms exist in one direction only; the other direction is computed through conjugates.
  const bool conjugates_in = op.kind == Kind::HalfToReal && !op.inverse, conjugates_out = op.kind == Kind::RealToHalf && op.inverse;
  void *in = op.in.data, *out = op.out.data;
  if (placing.copies_in) {
    const Reals user(op.shape, op.in.strides, op.in.step, op.given(), op.complex_in());
    const Dims dense = contiguous_strides(user.shape);
    in = scratch(static_cast<size_t>(product(user.shape)) * item);
    scale(launcher_, op, op.in.data, user.strides, in, dense, user.shape, op.complex_in(), 1, conjugates_in ? -1 : 1);
    if (op.kind == Kind::HalfToReal) clear_imaginary(launcher_, op, in);
  }
  const Reals user(op.shape, op.out.strides, op.out.step, op.made(), op.complex_out());
  const Dims dense = contiguous_strides(user.shape);
  if (placing.copies_out) out = scratch(static_cast<size_t>(product(user.shape)) * item);
  const size_t bytes = transforms.workspace(placing.rows);
  void* const work = bytes > 0 ? scratch(bytes) : nullptr;
  if (!only_prepares_) transforms.start(placing.rows, op.inverse, in, out, work, stream_);
  scale(launcher_, op, out, placing.copies_out ? dense : user.strides, op.out.data, user.strides, user.shape, op.complex_out(), op.scale,
        conjugates_out ? -op.scale : op.scale);
}

}  // namespace naru::backends::cuda
