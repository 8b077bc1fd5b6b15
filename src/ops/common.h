// What the operators share: making results, running elementwise operators, device checks, and the hand-over to autograd.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "core/tensor_impl.h"
#include "ir/instruction.h"
#include "ir/op_ids.h"
#include "naru/random.h"
#include "naru/tensor.h"
#include "runtime/queue.h"
#include "runtime/registry.h"

namespace naru::ops {

// A new tensor with undefined contents; its memory is taken when the first write to it runs (lazy) or now.
Tensor make_result(const Dims& sizes, DType dtype, Device device, const char* op, bool lazy = false);
// The same with strides of its own, which leave no gaps and put no two elements at one place.
Tensor make_result(const Dims& sizes, const Dims& strides, DType dtype, Device device, const char* op, bool lazy = false);
// A view of the same storage. Records nothing for autograd.
Tensor make_view(const Tensor& base, Dims sizes, Dims strides, int64_t offset, const char* op);

// Operand of an internal elementwise operator: a tensor or a number, and the type the operator sees it as.
struct OpOperand {
  const Tensor* tensor = nullptr;
  Scalar scalar;
  DType as;
};
// out = op(operands), converted to out's dtype; tensors broadcast to out's shape. Records nothing for autograd.
void apply_into(ir::OpId id, std::span<const OpOperand> operands, const Tensor& out);
// The same into a new tensor of the broadcast shape (numbers only: pass the shape via apply_into).
Tensor apply(ir::OpId id, std::initializer_list<OpOperand> operands, DType out, const char* op);

// The device all operands live on; cpu tensors without dimensions may stand beside any device (they count as numbers). Throws
// DeviceMismatchError naming every operand otherwise. `roles` name the operands in the message.
Device common_device(std::span<const Tensor* const> tensors, std::span<const char* const> roles, const char* op);
void require_defined(const Tensor& t, const char* op, const char* role);
// An undefined tensor to point at.
inline const Tensor& no_tensor() {
  static const Tensor& none = *new Tensor;
  return none;
}

// The number of a tensor without dimensions, read by the host.
Scalar read_scalar(const Tensor& t);
// For checks of elements, on devices that may have none (meta): whether a condition of one element holds, or can't be asked; and the number of
// a tensor of one element, or `otherwise` where it has none.
bool holds(const Tensor& condition);
double number_or(const Tensor& t, double otherwise);

// Whether the calling thread's work on cpu is recorded, not done (naru/graph.h), so that the host can't check values.
bool recording_host() noexcept;

// One draw of the generator (null: the default one): (key, offset), as the random operators take them. Throws in a capture, where only the
// default generator may be drawn from.
std::pair<uint64_t, uint64_t> draw(Generator* generator);

// View for an instruction: address (memory is made if there is none yet) and strides over `shape`.
ir::View view_of(const Tensor& t, const Dims& shape);
// Submits to the tensor's device.
void submit(ir::Instruction&& instruction, std::initializer_list<const Tensor*> reads, std::initializer_list<const Tensor*> writes);
void submit(ir::Instruction&& instruction, std::span<const Tensor* const> reads, std::span<const Tensor* const> writes);

// Gives elements that nobody has written a value that is known, in deterministic mode: NaN, the greatest integer, true.
void fill_unwritten(const Tensor& t);

// Throws RuntimeError, which names op with its ending, where elements of the target share memory (it is expanded).
void require_distinct_elements(const Tensor& target, const char* op, const char* ending = "");

// Up to so many elements cpu work is done at once on the calling thread; more is deferred for fusion.
inline constexpr int64_t kSmall = 4096;
// Whether the host finds the elements at consecutive addresses, now: with nothing pending. (Asked for first: another thread that runs what is
// pending gives the storage its memory, and only then says that nothing is.)
inline bool is_at_hand(const TensorImpl& t) noexcept {
  return t.contiguous && t.storage->device.is_cpu() && !runtime::is_pending(*t.storage) && t.storage->data;
}

// NotImplementedError in PyTorch's words, which name its kernel, for a type that an operator does not compute in.
[[noreturn]] void throw_not_implemented(std::string_view kernel, DType type);
// Throws NotImplementedError, naming what PyTorch calls the kernel that it lacks too, where t is Bool.
void refuse_bool(DType t, const char* kernel);
// The same where t is no floating point type.
void require_floating(DType t, const char* kernel);
// Counts a write to the tensor's storage.
void bump_version(const Tensor& t);
// The storage gets room for so many of t's elements, zeros behind those it has; all its views see the new memory. RuntimeError where the memory is shared
// with others.
void grow_storage(const Tensor& t, int64_t elements);
// Puts another storage in the place of the tensor's. Counts as a write, for whoever has saved the tensor.
void replace_storage(const Tensor& t, Ref<Storage> storage);
// A vector over the whole of a tensor's storage.
Tensor whole_storage(const Tensor& t, DType type);
// Whether its memory on the cpu is what share_memory_ made.
bool is_in_shared_memory(const Tensor& t);

// Inside, even small elementwise work is deferred, so that chains over small tensors fuse as well.
class FuseScope {
 public:
  FuseScope() noexcept;
  ~FuseScope();
};

// Bits of a number as a kernel parameter of type vtype_of(as).
uint64_t param_bits(Scalar s, DType as);

}  // namespace naru::ops
