// Convolutions on a stream: copies operands to layouts that the library supports, calls it, and adds the bias, which it does not get.
#include "backends/gpu/convolutions.h"
#include "backends/gpu/launcher.h"
#include "ir/op_ids.h"
#include "ir/program_builder.h"
#include "naru/error.h"

namespace naru::backends::gpu {
namespace {

using ir::Convolution;

ir::View view_of_array(const Convolution::Array& a, DType type) { return {a.data, type, Dims(std::span<const int64_t>(a.strides))}; }

// One of x, w and y, and its address during the library call.
struct Operand {
  const Convolution::Array& user;
  Sizes5 sizes;
  bool written;
  void* data = nullptr;
};

// The libraries' matrix kernels load 16 bytes at a time.
bool is_aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; }

bool lies_last(const Convolution::Array& a, const Sizes5& sizes) {
  return is_dense(a.strides, sizes, true) && !is_dense(a.strides, sizes, false);
}

// result += bias.
ir::Map bias_added(const Convolution& q) {
  const Convolution::Array& result = q.use == Convolution::Use::Forward ? q.y : q.x;
  const Sizes5 sizes = q.use == Convolution::Use::Forward ? q.sizes_of_y() : q.sizes_of_x();
  ir::Map map;
  map.program = ir::ProgramBuilder::single(ir::op::add, {q.dtype, q.dtype}, q.dtype, q.dtype);
  map.shape = Dims(std::span<const int64_t>(sizes));
  map.inputs = {view_of_array(result, q.dtype), {const_cast<void*>(q.bias), q.dtype, {0, q.bias_stride, 0, 0, 0}}};
  map.outputs = {view_of_array(result, q.dtype)};
  return map;
}

bool by_library(const Convolution& q, bool channels_last, ConvolutionLibrary& library, StreamLauncher& launcher, bool& starved) {
  const std::optional<DenseConvolution> convolution = dense_convolution(q, channels_last);
  if (!convolution) return false;
  std::optional<ConvolutionLibrary::Way> way = library.way(*convolution, 0);
  if (!way) return false;
  bool without = false;  // no memory for copies
  const auto memory = [&](size_t bytes) -> void* {
    try {
      return launcher.scratch(bytes);
    } catch (const OutOfMemoryError&) {
      starved = without = true;
      return nullptr;
    }
  };
  Operand operands[] = {{q.x, q.sizes_of_x(), q.use == Convolution::Use::Input},
                        {q.w, q.sizes_of_w(), q.use == Convolution::Use::Weight},
                        {q.y, q.sizes_of_y(), q.use == Convolution::Use::Forward}};
  for (Operand& o : operands)
    o.data = is_dense(o.user.strides, o.sizes, channels_last) && is_aligned(o.user.data)
                 ? o.user.data
                 : memory(static_cast<size_t>(product(o.sizes)) * size_of(q.dtype));
  if (without) return false;
  const auto copy = [&](const Operand& o, bool back) {
    if (o.data == o.user.data) return;
    const Sizes5 dense = dense_strides(o.sizes, channels_last);
    const ir::View mine{o.data, q.dtype, Dims(std::span<const int64_t>(dense))}, users = view_of_array(o.user, q.dtype);
    render::c::run(ir::copy_of(Dims(std::span<const int64_t>(o.sizes)), back ? mine : users, back ? users : mine), launcher);
  };
  for (const Operand& o : operands)
    if (!o.written) copy(o, false);
  for (; way; way = library.way(*convolution, way->number + 1)) {
    void* const workspace = way->workspace > 0 ? memory(way->workspace) : nullptr;
    if (way->workspace > 0 && !workspace) continue;
    if (!launcher.only_prepares() &&
        !library.start(*convolution, way->number, operands[0].data, operands[1].data, operands[2].data, workspace, launcher.stream()))
      continue;
    for (const Operand& o : operands)
      if (o.written) copy(o, true);
    return true;
  }
  return false;
}

}  // namespace

bool convolve_by_library(const Convolution& q, ConvolutionLibrary& library, StreamLauncher& launcher) {
  bool starved = false;
  // Try the images' own layout first. If the library has nothing for channels-last, use row-major copies.
  const bool last = lies_last(q.x, q.sizes_of_x()) || lies_last(q.y, q.sizes_of_y());
  if ((last && by_library(q, true, library, launcher, starved)) || by_library(q, false, library, launcher, starved)) {
    if (q.bias) render::c::run(bias_added(q), launcher);
    return true;
  }
  if (starved) library.warn_out_of_workspace();
  return false;
}

}  // namespace naru::backends::gpu
