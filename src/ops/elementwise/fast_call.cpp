#include "ops/elementwise/fast_call.h"

#include <algorithm>

#include "ir/program_builder.h"
#include "ops/shape/strides.h"

namespace naru::ops {

std::atomic<const FastCall::Prepared*> FastCall::table[];

const FastCall::Prepared* FastCall::prepare(std::atomic<const Prepared*>& slot, ir::OpId id, Types types) const {
  ir::Program program;
  ir::ProgramBuilder b(program);
  for (int i = 0; i < tensors_; ++i) b.input(first_->dtype, types.compute);
  std::array<ir::Program::Arg, kOperands> args;
  for (int i = 0; i < count_; ++i)
    args[i] = input_of_[i] == kNumber ? b.param(types.compute) : b.input_at(static_cast<size_t>(input_of_[i]), types.compute);
  b.output(b.node(id, types.out, {args.data(), static_cast<size_t>(count_)}));
  std::unique_ptr<Prepared> made(new Prepared{&runtime::host_work().kernel(program), types});
  const Prepared* before = nullptr;
  return slot.compare_exchange_strong(before, made.get()) ? made.release() : before;
}

bool run_immediate(ir::OpId id, std::span<const runtime::Source> sources, const TensorImpl& out) {
  if (runtime::is_pending(*out.storage) || !(out.contiguous || is_dense(out.sizes, out.strides))) return false;
  ir::Program program;
  ir::ProgramBuilder b(program);
  std::array<ir::Program::Arg, ir::kMaxArgs> args;
  std::array<void*, ir::kMaxArgs + 1> operands;
  std::array<uint64_t, ir::kMaxArgs> params;
  const Dims out_strides = runtime::expanded_strides(out, out.sizes);
  for (size_t k = 0; k < sources.size(); ++k) {
    const runtime::Source& s = sources[k];
    if (!s.tensor) {
      args[k] = b.param(s.as);
      params[args[k].index] = s.bits;
      continue;
    }
    if (runtime::is_pending(*s.tensor->storage)) return false;
    const bool one = std::all_of(s.strides.begin(), s.strides.end(), [](int64_t d) { return d == 0; });
    if (!one && !(s.strides == out_strides)) return false;
    // An input that overlaps the output at another address would be overwritten before it is read.
    if (s.tensor->storage.get() == out.storage.get() && s.tensor->address() != out.address()) return false;
    args[k] = b.input(s.tensor->dtype, s.as, one && out.numel > 1);
    operands[args[k].index] = s.tensor->address();
  }
  b.output(b.node(id, out.dtype, {args.data(), sources.size()}));
  const runtime::DirectKernel& kernel = runtime::host_work().kernel(program);
  if (!out.storage->data) runtime::allocate_storage(*out.storage);
  operands[program.inputs_count] = out.address();
  kernel.run(operands.data(), params.data(), out.numel);
  return true;
}

namespace {

template <class T>
void copy_elements(const Dims& sizes, const T* from, const Dims& from_strides, T* to, const Dims& to_strides) {
  const size_t last = sizes.size() - 1;
  Dims at(sizes.size(), 0);
  for (;;) {
    for (int64_t e = 0; e < sizes[last]; ++e) to[e * to_strides[last]] = from[e * from_strides[last]];
    size_t d = last;
    for (;;) {
      if (d-- == 0) return;
      from += from_strides[d], to += to_strides[d];
      if (++at[d] < sizes[d]) break;
      from -= sizes[d] * from_strides[d], to -= sizes[d] * to_strides[d];
      at[d] = 0;
    }
  }
}

}  // namespace

bool copy_immediate(const runtime::Source& source, const TensorImpl& out) {
  constexpr int64_t kFew = 256;
  if (out.numel > kFew || out.sizes.empty() || !source.tensor || runtime::is_pending(*out.storage)) return false;
  const TensorImpl& from = *source.tensor;
  if (from.dtype != out.dtype || source.as != out.dtype || out.dtype == DType::Bool || runtime::is_pending(*from.storage) ||
      !from.storage->data)
    return false;
  if (!out.storage->data) runtime::allocate_storage(*out.storage);
  const auto copy = [&]<class T>(T) {
    copy_elements(out.sizes, reinterpret_cast<const T*>(from.address()), source.strides, reinterpret_cast<T*>(out.address()), out.strides);
  };
  switch (size_of(out.dtype)) {
    case 1:
      return copy(uint8_t()), true;
    case 2:
      return copy(uint16_t()), true;
    case 4:
      return copy(uint32_t()), true;
    default:
      return copy(uint64_t()), true;
  }
}

}  // namespace naru::ops
