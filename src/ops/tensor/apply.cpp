// Submission of elementwise operators and instructions to a device's queue.
#include <fmt/format.h>

#include <array>
#include <bit>

#include "ir/inspect.h"
#include "naru/ops.h"
#include "ops/complex/complex.h"
#include "ops/elementwise/fast_call.h"
#include "ops/elementwise/float8.h"
#include "ops/elementwise/unsigned.h"
#include "ops/shape/strides.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"
#include "runtime/memory/memory.h"
#include "runtime/queue/fallback.h"

namespace naru::ops {
namespace {

thread_local int fuse_depth = 0;

}  // namespace

ForceFusion::ForceFusion() noexcept { ++fuse_depth; }
ForceFusion::~ForceFusion() { --fuse_depth; }

uint64_t param_bits(Scalar s, DType as) {
  switch (ir::vtype_of(as)) {
    case ir::VType::Bool:
      return s.to_bool();
    case ir::VType::I32: {
      // A scalar is converted to the tensor's type, with wrap-around: 300 is 44 for uint8.
      const int64_t v = s.to_int();
      return static_cast<uint32_t>(as == DType::U8    ? static_cast<uint8_t>(v)
                                   : as == DType::I8  ? static_cast<int8_t>(v)
                                   : as == DType::I16 ? static_cast<int16_t>(v)
                                                      : static_cast<int32_t>(v));
    }
    case ir::VType::I64:
      return s.to_bits();
    case ir::VType::F32:
      return std::bit_cast<uint32_t>(static_cast<float>(s.to_double()));
    case ir::VType::F64:
      return std::bit_cast<uint64_t>(s.to_double());
  }
  return 0;
}

bool recording_host() noexcept {
  return runtime::host_captures.load(std::memory_order_relaxed) != 0 && runtime::queue_of(Device(DeviceType::Cpu, 0)).recording();
}

ir::View view_of(const Tensor& t, const Dims& shape) {
  const TensorImpl& i = *t.impl();
  if (runtime::Queue* q = i.storage->pending.load(std::memory_order_acquire)) q->flush();
  if (!i.storage->data && i.storage->bytes) runtime::allocate_storage(*i.storage);
  // An empty tensor gets no address: a view may begin past the end of its memory, or have no memory.
  return {i.numel ? i.address() : nullptr, i.dtype, runtime::expanded_strides(i, shape)};
}

namespace {
[[noreturn]] void refuse_instruction(const ir::Instruction& instruction, const Tensor& t) {
  std::string name;
  ir::each_name(instruction, [&](const char* n) { name = n; });
  refuse_unknown(t, name.empty() ? "kernel" : name);
  std::abort();  // refuse_unknown throws for every dtype that is not in programs
}
}  // namespace

void submit(ir::Instruction&& instruction, std::span<const Tensor* const> reads, std::span<const Tensor* const> writes) {
  runtime::Accesses accesses;
  for (const Tensor* t : reads)
    if (t->defined()) accesses.reads.push_back(t->impl()->storage.get());
  for (const Tensor* t : writes)
    if (t->defined()) accesses.writes.push_back(t->impl()->storage.get());
  for (const auto tensors : {reads, writes})
    for (const Tensor* t : tensors)
      if (t->defined() && t->impl()->special) refuse_instruction(instruction, *t);
  const Device device = (*accesses.writes.begin())->device;
  // An index out of bounds is reported long after the call, so keep the source location.
  if (!device.is_cpu())
    std::visit(
        [](auto& i) {
          if constexpr (requires { i.where; }) i.where = current_line();
        },
        instruction);
  runtime::queue_of(device).submit(std::move(instruction), accesses);
}
void submit(ir::Instruction&& instruction, std::initializer_list<const Tensor*> reads, std::initializer_list<const Tensor*> writes) {
  submit(std::move(instruction), std::span<const Tensor* const>(reads.begin(), reads.size()),
         std::span<const Tensor* const>(writes.begin(), writes.size()));
}

namespace {

// What among operands and result instructions do not support: bits of Special.
uint8_t special_among(std::span<const OpOperand> operands, const TensorImpl& out) noexcept {
  uint8_t special = out.special;
  for (const OpOperand& o : operands) {
    special |= special_type(o.as);
    if (o.tensor) special |= o.tensor->impl()->special;
  }
  return special;
}

}  // namespace

void apply_into(ir::OpId id, std::span<const OpOperand> operands, const Tensor& out) {
  const TensorImpl& o = *out.impl();
  if (o.numel == 0) return;
  if (const uint8_t special = special_among(operands, o)) [[unlikely]] {
    if (special & kHasParts) {
      for (const OpOperand& x : operands)
        if (x.tensor) refuse_parts(*x.tensor, ir::op_table()[id].name);
      refuse_parts(out, ir::op_table()[id].name);
    }
    if (special & kFloat8Elements) return apply_float8(id, operands, out);
    return special & kUnsignedElements ? apply_unsigned(id, operands, out) : apply_complex(id, operands, out);
  }
  if (operands.size() > 1 && !operands[1].tensor) id = ir::op::with_number(id, operands[1].scalar.to_double());
  std::array<runtime::Source, ir::kMaxArgs> sources;
  std::array<Tensor, ir::kMaxArgs> held;
  for (size_t k = 0; k < operands.size(); ++k) {
    const OpOperand& in = operands[k];
    runtime::Source& s = sources[k];
    s.as = in.as;
    if (in.tensor && in.tensor->impl()->storage->device == o.storage->device) {
      const TensorImpl& t = *in.tensor->impl();
      s.strides = runtime::expanded_strides(t, o.sizes);
      // Copy an operand that overlaps the output with another layout.
      if (t.storage.get() == o.storage.get() &&
          !(t.offset == o.offset && t.dtype == o.dtype && s.strides == runtime::expanded_strides(o, o.sizes))) {
        held[k] = make_result(t.sizes, t.dtype, t.storage->device, "clone");
        const OpOperand copy{in.tensor, {}, t.dtype};
        apply_into(ir::op::copy, {&copy, 1}, held[k]);
        s.tensor = held[k].impl();
        s.strides = runtime::expanded_strides(*s.tensor, o.sizes);
      } else {
        s.tensor = &t;
      }
    } else {
      if (in.tensor && in.tensor->numel() != 1) {
        const Tensor* const both[] = {in.tensor, &out};
        static constexpr const char* kRoles[] = {"operand", "result"};
        throw_device_mismatch(both, kRoles, ir::op_table()[id].name, out.device(), in.tensor->device());
      }
      s.bits = param_bits(in.tensor ? read_scalar(*in.tensor) : in.scalar, in.as);
    }
  }
  const std::span<const runtime::Source> all(sources.data(), operands.size());
  if (o.storage->device.is_cpu() && o.numel <= kSmall && fuse_depth == 0 &&
      (run_immediate(id, all, o) || (id == ir::op::copy && copy_immediate(all[0], o))))
    return;
  runtime::Queue& queue = runtime::queue_of(o.storage->device);
  queue.append(id, all, o);
  // Submit small work to a synchronous queue immediately. After a deferred reduction it stays deferred, until the temporaries that the reduction
  // reads have been destroyed, so that they are never written to memory.
  if (queue.synchronous() && o.numel <= kSmall && fuse_depth == 0 && !queue.recording()) queue.flush_nodes();
}

namespace {
// For operators that record nothing, or not here.
Tensor apply_batched(ir::OpId id, std::span<const OpOperand> operands, DType out, const char* op) {
  std::vector<const Tensor*> tensors;
  int64_t rank = 0;
  for (const OpOperand& o : operands)
    if (o.tensor) tensors.push_back(o.tensor), rank = std::max(rank, o.tensor->dim());
  const batching::Batch b{std::span<const Tensor* const>(tensors)};
  std::array<Tensor, ir::kMaxArgs> values;
  std::array<OpOperand, ir::kMaxArgs> all;
  for (size_t i = 0; i < operands.size(); ++i) {
    all[i] = operands[i];
    if (operands[i].tensor) values[i] = b.aligned(*operands[i].tensor, rank), all[i].tensor = &values[i];
  }
  return b.entry(apply(id, std::span<const OpOperand>(all.data(), operands.size()), out, op));
}
}  // namespace

Tensor apply(ir::OpId id, std::span<const OpOperand> operands, DType out, const char* op) {
  Dims shape;
  Device device;
  bool first = true;
  for (const OpOperand& o : operands) {
    if (!o.tensor) continue;
    if (is_batched(*o.tensor)) [[unlikely]]
      return apply_batched(id, operands, out, op);
    shape = first ? o.tensor->sizes() : broadcast_shapes(shape, o.tensor->sizes());
    const Device d = o.tensor->impl()->storage->device;
    if (first || device.is_cpu()) device = d;
    first = false;
  }
  Dims strides = contiguous_strides(shape);
  if (std::ranges::any_of(operands, [](const OpOperand& o) { return o.tensor && !o.tensor->is_contiguous(); })) {
    std::vector<Operand> given;
    for (const OpOperand& o : operands)
      if (o.tensor) given.push_back(*o.tensor);
    strides = elementwise_strides(shape, given);
  }
  const Tensor result = make_result(shape, strides, out, device, op, true);
  apply_into(id, operands, result);
  return result;
}
Tensor apply(ir::OpId id, std::initializer_list<OpOperand> operands, DType out, const char* op) {
  return apply(id, std::span<const OpOperand>(operands.begin(), operands.size()), out, op);
}

}  // namespace naru::ops
