#include "ops/common.h"

#include <fmt/format.h>
#include <complex>

#include <algorithm>
#include <bit>
#include <limits>

#include "autograd/node.h"
#include "core/language.h"
#include "core/uninitialized.h"
#include "ir/inspect.h"
#include "naru/ops.h"
#include "naru/precision.h"
#include "ops/complex.h"
#include "ops/fast_call.h"
#include "ops/sparse.h"
#include "ops/strides.h"
#include "ops/type_names.h"
#include "ops/unsigned.h"
#include "runtime/fallback.h"
#include "runtime/memory.h"

namespace naru {
namespace {
thread_local std::optional<Device> chosen_device;
}
Device default_device() noexcept { return chosen_device.value_or(Device(DeviceType::Cpu)); }
void set_default_device(std::optional<Device> device) { chosen_device = device; }

namespace ops {
namespace {

// Results above this many bytes remember the line that made them; so do all results on devices, where it costs nothing beside a launch.
constexpr int64_t kRemember = 16384;

thread_local int fuse_depth = 0;

size_t checked_bytes(const Dims& sizes, DType dtype, const char* op) {
  auto n = static_cast<int64_t>(size_of(dtype));
  bool overflow = false, none = false;
  for (int64_t s : sizes) {
    if (s < 0) throw RuntimeError("Trying to create tensor with negative dimension {}: {} ({})", s, sizes.str(), op);
    none |= s == 0;
    overflow |= __builtin_mul_overflow(n, s, &n);
  }
  if (overflow && !none)
    throw RuntimeError("Storage size calculation overflowed with sizes={} ({}: wanted fewer than 2^63 bytes)", sizes.str(), op);
  return none ? 0 : static_cast<size_t>(n);
}

}  // namespace

FuseScope::FuseScope() noexcept { ++fuse_depth; }
FuseScope::~FuseScope() { --fuse_depth; }

Tensor make_result(const Dims& sizes, DType dtype, Device device, const char* op, bool lazy) {
  const size_t bytes = checked_bytes(sizes, dtype, op);
  const Device d = device.is_cpu() ? Device(DeviceType::Cpu, 0) : device.has_index() ? device : runtime::resolve(device);
  if (!d.is_cpu()) runtime::require_type(d, dtype, op);
  Origin origin{op, 0};
  if (current_line && (bytes > kRemember || !d.is_cpu())) {
    origin.where = current_line();
    if (const auto context = memory_context.load(std::memory_order_relaxed)) [[unlikely]]
      origin.context = context();
  }
  Dims strides = contiguous_strides(sizes);
  auto* impl = new TensorImpl(lazy ? runtime::make_lazy_storage(d, bytes, origin) : runtime::make_storage(d, bytes, origin), dtype);
  Tensor t(impl);
  impl->sizes = sizes;
  impl->strides = std::move(strides);
  impl->numel = product(sizes);
  impl->origin = origin;
  return t;
}

Tensor make_result(const Dims& sizes, const Dims& strides, DType dtype, Device device, const char* op, bool lazy) {
  Tensor t = make_result(sizes, dtype, device, op, lazy);
  TensorImpl& impl = *t.impl();
  if (impl.strides == strides) return t;
  impl.strides = strides;
  impl.contiguous = is_contiguous(sizes, strides);
  return t;
}

Tensor make_view(const Tensor& base, Dims sizes, Dims strides, int64_t offset, const char* op) {
  refuse_sparse(base, op);
  const TensorImpl& b = *base.impl();
  auto* impl = new TensorImpl(b.storage, b.dtype);
  Tensor t(impl);
  impl->set_geometry(std::move(sizes), std::move(strides), offset);
  impl->base = b.base ? b.base : Ref<TensorImpl>::share(base.impl());
  impl->origin = b.origin;
  impl->silent_version = b.silent_version;
  impl->view_kind = b.view_kind;
  if (!grad_enabled()) {
    impl->view_kind = ViewKind::MadeWithoutGrad;
    if (impl->base->autograd) autograd::see_history(t);
  }
  if (!impl->origin.op) impl->origin.op = op;
  return t;
}

void require_defined(const Tensor& t, const char* op, const char* role) {
  if (!t.defined()) throw RuntimeError("{}: {} is an undefined tensor; wanted a tensor", op, role);
}

uint64_t param_bits(Scalar s, DType as) {
  switch (ir::vtype_of(as)) {
    case ir::VType::Bool:
      return s.to_bool();
    case ir::VType::I32: {
      // A number takes part as one of the type itself: 300 is 44 beside uint8.
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

namespace {

std::string describe(const Tensor& t, const char* role) {
  const TensorImpl& i = *t.impl();
  std::string text = fmt::format("\n  {}: shape {}, {}, on {}", role, i.sizes.str(), name_of(i.dtype), t.device().str());
  if (i.origin.where && line_text)
    text += fmt::format(", made by {} at {}", i.origin.op ? i.origin.op : "an operator", line_text(i.origin.where));
  else if (i.origin.op)
    text += fmt::format(", made by {}", i.origin.op);
  return text;
}

// PyTorch's words where one of the devices is meta: the first operand's is the one expected.
std::string meta_mismatch(std::span<const Tensor* const> tensors) {
  const Device expected = tensors[0]->device();
  for (const Tensor* t : tensors)
    if (t->defined() && t->device() != expected && (t->device().is_meta() || expected.is_meta()))
      return fmt::format("Tensor on device {} is not on the expected device {}!", t->device().str(), expected.str());
  return {};
}

[[noreturn]] void throw_mismatch(std::span<const Tensor* const> tensors, std::span<const char* const> roles, const char* op, Device first,
                                 Device second) {
  // PyTorch names the accelerator first, and cpu without an index.
  if (first.is_cpu()) std::swap(first, second);
  if (second.is_cpu()) second = Device(DeviceType::Cpu);
  std::string text = meta_mismatch(tensors);
  if (text.empty())
    text = fmt::format("Expected all tensors to be on the same device, but found at least two devices, {} and {}! (operator {})",
                       first.str(), second.str(), op);
  std::string odd;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i]->defined()) continue;
    text += describe(*tensors[i], roles[i]);
    if (odd.empty() && tensors[i]->device() == second) odd = roles[i];
  }
  throw DeviceMismatchError(text + fmt::format("\n  To mend it, move {0} first: {0} = {1}", odd, spelled_move(odd, first)));
}

}  // namespace

Device common_device(std::span<const Tensor* const> tensors, std::span<const char* const> roles, const char* op) {
  Device found = tensors[0]->impl()->storage->device;
  bool found_is_number = tensors[0]->impl()->sizes.empty();
  for (size_t i = 1; i < tensors.size(); ++i) {
    if (!tensors[i]->defined()) continue;
    const Device d = tensors[i]->impl()->storage->device;
    if (d == found) {
      found_is_number &= tensors[i]->impl()->sizes.empty();
    } else if (d.is_cpu() && tensors[i]->impl()->sizes.empty()) {
      continue;
    } else if (found.is_cpu() && found_is_number) {
      found = d;
      found_is_number = tensors[i]->impl()->sizes.empty();
    } else {
      throw_mismatch(tensors, roles, op, found.is_cpu() ? d : found, found.is_cpu() ? found : d);
    }
  }
  return found;
}

bool recording_host() noexcept {
  return runtime::host_captures.load(std::memory_order_relaxed) != 0 && runtime::queue_of(Device(DeviceType::Cpu, 0)).recording();
}

Scalar read_scalar(const Tensor& t) {
  const TensorImpl& i = *t.impl();
  if (i.storage->device.is_meta()) throw RuntimeError("Tensor.item() cannot be called on meta tensors");
  if (!i.storage->device.is_cpu()) return read_scalar(t.cpu());
  if (!in_programs(i.dtype)) [[unlikely]] {
    refuse_sparse(t, "_local_scalar_dense");
    if (is_complex(i.dtype)) return std::complex(read_scalar(real_part(t)).to_double(), read_scalar(imaginary_part(t)).to_double());
    const int64_t bits = read_scalar(as_signed(t)).to_int();
    return i.dtype == kUInt64 ? Scalar::of_unsigned(static_cast<uint64_t>(bits))
                              : Scalar(bits & (i.dtype == kUInt16 ? 0xffff : 0xffffffff));
  }
  runtime::wait_for_host(*i.storage);
  const void* p = i.address();
  switch (i.dtype) {
    case DType::Bool:
      return *static_cast<const uint8_t*>(p) != 0;
    case DType::U8:
      return *static_cast<const uint8_t*>(p);
    case DType::I8:
      return *static_cast<const int8_t*>(p);
    case DType::I16:
      return *static_cast<const int16_t*>(p);
    case DType::I32:
      return *static_cast<const int32_t*>(p);
    case DType::I64:
      return *static_cast<const int64_t*>(p);
    case DType::F16:
      return half_to_float(*static_cast<const uint16_t*>(p));
    case DType::BF16:
      return bfloat_to_float(*static_cast<const uint16_t*>(p));
    case DType::F32:
      return *static_cast<const float*>(p);
    case DType::F64:
      return *static_cast<const double*>(p);
  }
  return 0;
}

namespace {
bool readable(const Tensor& t) {
  const Storage& s = *t.impl()->storage;
  if (s.device.is_cpu() || runtime::queue_of(s.device).capabilities().elements) return true;
  // Work is handed over when it would be if the host read.
  if (runtime::Queue* q = s.pending.load(std::memory_order_acquire)) q->flush();
  return false;
}
}  // namespace

bool holds(const Tensor& condition) { return !readable(condition) || read_scalar(condition).to_bool(); }
double number_or(const Tensor& t, double otherwise) { return readable(t) ? read_scalar(t).to_double() : otherwise; }

void require_distinct_elements(const Tensor& target, const char* op, const char* ending) {
  const TensorImpl& t = *target.impl();
  for (size_t i = 0; i < t.sizes.size(); ++i)
    if (t.sizes[i] > 1 && t.strides[i] == 0 && t.numel > 0)
      throw RuntimeError(
          "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
          "Please clone() the tensor before performing the operation. ({}{})",
          op, ending);
}

ir::View view_of(const Tensor& t, const Dims& shape) {
  const TensorImpl& i = *t.impl();
  if (runtime::Queue* q = i.storage->pending.load(std::memory_order_acquire)) q->flush();
  if (!i.storage->data && i.storage->bytes) runtime::allocate_storage(*i.storage);
  // No elements lie nowhere: a view may begin behind the end of its memory, or have none.
  return {i.numel ? i.address() : nullptr, i.dtype, runtime::expanded_strides(i, shape)};
}

namespace {
[[noreturn]] void refuse_instruction(const ir::Instruction& instruction, const Tensor& t) {
  std::string name;
  ir::each_name(instruction, [&](const char* n) { name = n; });
  refuse_unknown(t, name.empty() ? "kernel" : name);
  std::abort();  // it is of a type that instructions know
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
      if (t->defined() && !in_programs(t->impl()->dtype)) refuse_instruction(instruction, *t);
  const Device device = writes[0]->impl()->storage->device;
  // An index out of bounds is found when the call is long past.
  if (!device.is_cpu() && current_line)
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

void throw_not_implemented(std::string_view kernel, DType type) {
  throw NotImplementedError("\"{}\" not implemented for '{}'", kernel, torch_name(type));
}

void refuse_bool(DType t, const char* kernel) {
  if (t == DType::Bool) throw NotImplementedError("\"{}\" not implemented for 'Bool' (convert to numbers first)", kernel);
}

void require_floating(DType t, const char* kernel) {
  if (!is_floating(t))
    throw NotImplementedError("\"{}\" not implemented for '{}' (convert to floating point first)", kernel, torch_name(t));
}

void bump_version(const Tensor& t) {
  Storage& s = *t.impl()->storage;
  if (s.inference && !inference_enabled) [[unlikely]]
    throw RuntimeError(
        "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor before doing "
        "inplace update.");
  (t.impl()->silent_version ? s.silent_writes : s.version).fetch_add(1, std::memory_order_relaxed);
}

namespace {
Scalar greatest_integer(DType t) {
  const auto bits = 8 * static_cast<int>(size_of(t));
  if (t != DType::U8 && !is_wide_unsigned(t)) return std::numeric_limits<int64_t>::max() >> (64 - bits);
  const uint64_t most = std::numeric_limits<uint64_t>::max() >> (64 - bits);
  return bits == 64 ? Scalar::of_unsigned(most) : Scalar(static_cast<int64_t>(most));
}
}  // namespace

void fill_unwritten(const Tensor& t) {
  if (!deterministic_algorithms() || !fills_uninitialized_memory() || t.numel() == 0) return;
  const DType type = t.dtype();
  const NoGrad off;
  if (is_inexact(type))
    t.fill_(Operand(std::numeric_limits<double>::quiet_NaN()));
  else if (type == DType::Bool)
    t.fill_(Operand(true));
  else
    t.fill_(Operand(greatest_integer(type)));
}

void grow_storage(const Tensor& t, int64_t elements) {
  Storage& old = *t.impl()->storage;
  const auto room = static_cast<int64_t>(old.bytes / size_of(t.dtype()));
  if (elements <= room) return;
  if (!old.resizable) throw RuntimeError("Trying to resize storage that is not resizable");
  const Tensor larger = zeros({elements}, Options(t.dtype(), t.device()));
  fill_unwritten(larger.narrow(0, room, elements - room));
  if (room > 0) larger.narrow(0, 0, room).copy_(make_view(t.detach(), {room}, {1}, 0, "resize_"));
  runtime::take_memory(old, *larger.impl()->storage);
}

void replace_storage(const Tensor& t, Ref<Storage> storage) {
  Ref<Storage>& own = t.impl()->storage;
  storage->version.store(std::max(own->version.load(std::memory_order_relaxed), storage->version.load(std::memory_order_relaxed)) + 1,
                         std::memory_order_relaxed);
  own = std::move(storage);
}

namespace {

// Types that instructions do not know, among operands or result.
enum class Meets : uint8_t { KnownTypes, Complex, Unsigned, Sparse };
Meets meets(std::span<const OpOperand> operands, const TensorImpl& out) noexcept {
  DType greatest = out.dtype;
  for (const OpOperand& o : operands) {
    greatest = std::max(greatest, o.as);
    if (o.tensor) greatest = std::max(greatest, o.tensor->impl()->dtype);
  }
  if (in_programs(greatest)) return Meets::KnownTypes;
  return is_sparse_form(greatest) ? Meets::Sparse : is_wide_unsigned(greatest) ? Meets::Unsigned : Meets::Complex;
}

}  // namespace

void apply_into(ir::OpId id, std::span<const OpOperand> operands, const Tensor& out) {
  const TensorImpl& o = *out.impl();
  if (o.numel == 0) return;
  if (const Meets m = meets(operands, o); m != Meets::KnownTypes) [[unlikely]] {
    if (m == Meets::Sparse) {
      for (const OpOperand& x : operands)
        if (x.tensor) refuse_sparse(*x.tensor, ir::op_table()[id].name);
      refuse_sparse(out, ir::op_table()[id].name);
    }
    return m == Meets::Unsigned ? apply_unsigned(id, operands, out) : apply_complex(id, operands, out);
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
      // An operand that shares the output's memory elsewhere is copied first.
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
        throw_mismatch(both, kRoles, ir::op_table()[id].name, out.device(), in.tensor->device());
      }
      s.bits = param_bits(in.tensor ? read_scalar(*in.tensor) : in.scalar, in.as);
    }
  }
  const std::span<const runtime::Source> all(sources.data(), operands.size());
  if (o.storage->device.is_cpu() && o.numel <= kSmall && fuse_depth == 0 &&
      (run_at_once(id, all, o) || (id == ir::op::copy && copied_at_once(all[0], o))))
    return;
  runtime::Queue& queue = runtime::queue_of(o.storage->device);
  queue.append(id, all, o);
  // Small idle work does not wait for company; behind a reduction it does, until the temporaries that are reduced have gone.
  if (queue.synchronous() && o.numel <= kSmall && fuse_depth == 0 && !queue.recording()) queue.flush_nodes();
}

Tensor apply(ir::OpId id, std::initializer_list<OpOperand> operands, DType out, const char* op) {
  Dims shape;
  Device device;
  bool first = true;
  for (const OpOperand& o : operands) {
    if (!o.tensor) continue;
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
  apply_into(id, {operands.begin(), operands.size()}, result);
  return result;
}

}  // namespace ops
}  // namespace naru
