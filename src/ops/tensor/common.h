// Shared by the operators: making results, running elementwise operators, device checks, and submission of instructions.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "core/tensor_impl.h"
#include "ir/instruction.h"
#include "ir/op_ids.h"
#include "naru/random.h"
#include "naru/tensor.h"
#include "runtime/device/registry.h"
#include "runtime/queue/queue.h"

namespace naru::ops {

// A new tensor with undefined contents. Its memory is allocated now or, if lazy, when the first write to it runs.
Tensor make_result(const Dims& sizes, DType dtype, Device device, const char* op, bool lazy = false);
// The same with given strides, which must be dense: no gaps, and no two elements at one address.
Tensor make_result(const Dims& sizes, const Dims& strides, DType dtype, Device device, const char* op, bool lazy = false);
// A view of the same storage. Records nothing for autograd.
Tensor make_view(const Tensor& base, Dims sizes, Dims strides, int64_t offset, const char* op);

// An operand of an internal elementwise operator: a tensor or a scalar, and the dtype that the operator sees it as.
struct OpOperand {
  const Tensor* tensor = nullptr;
  Scalar scalar;
  DType as;
};
// out = op(operands), converted to out's dtype; tensors broadcast to out's shape. Records nothing for autograd.
void apply_into(ir::OpId id, std::span<const OpOperand> operands, const Tensor& out);
// The same into a new tensor of the broadcast shape. If all operands are scalars, use apply_into, whose `out` gives the shape.
Tensor apply(ir::OpId id, std::initializer_list<OpOperand> operands, DType out, const char* op);
Tensor apply(ir::OpId id, std::span<const OpOperand> operands, DType out, const char* op);

// The device of all operands. 0-d cpu tensors may be mixed with any device; they count as scalars. Otherwise throws DeviceMismatchError, whose text
// names every operand by its role.
Device common_device(std::span<const Tensor* const> tensors, std::span<const char* const> roles, const char* op);
[[noreturn]] void throw_device_mismatch(std::span<const Tensor* const> tensors, std::span<const char* const> roles, const char* op,
                                        Device first, Device second);
void require_defined(const Tensor& t, const char* op, const char* role);
// A static undefined tensor, for pointers and references.
inline const Tensor& no_tensor() {
  static const Tensor& none = *new Tensor;
  return none;
}

// The value of a 0-d tensor, read by the host.
Scalar read_scalar(const Tensor& t);
// Checks of element values, for devices that may have none (meta). holds: a one-element condition is true, or cannot be read. number_or: the value of
// a one-element tensor, or `otherwise` if it cannot be read.
bool holds(const Tensor& condition);
double number_or(const Tensor& t, double otherwise);

// True if the calling thread's cpu work is captured, not executed (naru/device/graph.h): the host cannot check values then.
bool recording_host() noexcept;

// One draw from the generator (null: the default one): (key, offset), as the random operators expect them. Throws during a capture for any generator
// but the default one.
std::pair<uint64_t, uint64_t> draw(Generator* generator);

// The instruction's view of t: address (memory is allocated if there is none yet) and strides over `shape`.
ir::View view_of(const Tensor& t, const Dims& shape);
// Submits to the tensor's device.
void submit(ir::Instruction&& instruction, std::initializer_list<const Tensor*> reads, std::initializer_list<const Tensor*> writes);
void submit(ir::Instruction&& instruction, std::span<const Tensor* const> reads, std::span<const Tensor* const> writes);

// In deterministic mode, fills uninitialized memory with a known value: NaN, the greatest integer, or true.
void fill_unwritten(const Tensor& t);

// RuntimeError, which names op and `ending`, if elements of the target share memory (an expanded tensor).
void require_distinct_elements(const Tensor& target, const char* op, const char* ending = "");

// Cpu work on at most this many elements runs immediately on the calling thread; more is deferred for fusion.
inline constexpr int64_t kSmall = 4096;
// True if the host can read the elements at consecutive addresses now, with nothing pending. Check is_pending before `data`: a thread that runs the
// pending work sets `data` first and clears the pending state last.
inline bool is_host_ready(const TensorImpl& t) noexcept {
  return t.contiguous && t.storage->device.is_cpu() && !runtime::is_pending(*t.storage) && t.storage->data;
}

// NotImplementedError with PyTorch's text, which names its kernel, for a dtype that an operator does not support.
[[noreturn]] void throw_not_implemented(std::string_view kernel, DType type);
// NotImplementedError, which names PyTorch's kernel, if t is Bool (PyTorch's kernel lacks it too).
void refuse_bool(DType t, const char* kernel);
// The same if t is not a floating-point type.
void require_floating(DType t, const char* kernel);
// Increments the version counter of the tensor's storage.
void bump_version(const Tensor& t);
// Grows the storage to hold this many elements of t's dtype, with zeros after the existing ones; all its views see the new memory. RuntimeError if
// the memory is shared outside naru.
void grow_storage(const Tensor& t, int64_t elements);
// Replaces the tensor's storage. Counts as a write, so nodes that saved the tensor notice it.
void replace_storage(const Tensor& t, Ref<Storage> storage);
// A 1-d tensor over the whole of t's storage.
Tensor whole_storage(const Tensor& t, DType type);
// True if its cpu memory was made by share_memory_.
bool is_in_shared_memory(const Tensor& t);

// While one is alive, small elementwise work is deferred too, so that chains over small tensors fuse.
class ForceFusion {
 public:
  ForceFusion() noexcept;
  ~ForceFusion();
};

// The bits of a scalar as a kernel parameter of type vtype_of(as).
uint64_t param_bits(Scalar s, DType as);

}  // namespace naru::ops
