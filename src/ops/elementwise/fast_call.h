// The fast path of elementwise operators: runs one operator over small cpu tensors without pending uses immediately, on the calling thread.
#pragma once

#include <array>
#include <atomic>
#include <span>

#include "ir/program.h"
#include "ops/elementwise/half.h"
#include "ops/elementwise/rules.h"
#include "ops/tensor/common.h"
#include "ops/tensor/numbers.h"
#include "runtime/memory/memory.h"
#include "runtime/queue/host_work.h"

namespace naru::ops {

// out = op(sources), if all memory is ready on the host and each source has the layout of `out` or has one element. Returns false, and does nothing,
// otherwise.
bool run_immediate(ir::OpId id, std::span<const runtime::Source> sources, const TensorImpl& out);
// The same for copies of few elements with any strides. The source has out's dtype.
bool copy_immediate(const runtime::Source& source, const TensorImpl& out);

// The same for dense tensors of one dtype and shape, mixed with scalars. A flat table holds types and kernels, so a call needs neither type rules nor
// programs. Add the operands in order, then call run().
class FastCall {
 public:
  // Returns false if this operand needs the general path.
  bool add(const TensorImpl* t) {
    if (!t || !is_host_ready(*t)) return false;
    if (!first_) {
      first_ = t;
      if (t->numel > kSmall || t->numel == 0 || t->special) return false;
    } else if (t->dtype != first_->dtype || t->special || !(t->sizes == first_->sizes)) {
      return false;
    }
    input_of_[count_++] = static_cast<int8_t>(tensors_);
    addresses_[tensors_++] = t->address();
    return true;
  }
  bool add(Scalar s) {
    if (s.kind() > Scalar::Kind::Float) return false;
    kinds_ += (1u + static_cast<unsigned>(s.kind())) * kPlace[count_];
    input_of_[count_] = kNumber;
    place_[numbers_] = static_cast<uint8_t>(count_++);
    scalars_[numbers_++] = s;
    return true;
  }
  // Adds an operand that the operator does not read.
  void add_unused() { input_of_[count_++] = 0; }

  // The first tensor; null if there is none.
  const TensorImpl* first() const noexcept { return first_; }
  bool has_numbers() const noexcept { return numbers_ > 0; }
  // Valid after run().
  const Types& types() const noexcept { return types_; }

  // Returns a new tensor whose origin is `op`. find_types is called once for each operator and combination of operand kinds.
  template <class F>
  Tensor run(ir::OpId id, const char* op, F find_types) {
    std::atomic<const Prepared*>& slot = table[(id * kDTypes + static_cast<unsigned>(first_->dtype)) * kAllKinds + kinds_];
    const Prepared* prepared = slot.load(std::memory_order_acquire);
    if (!prepared) prepared = prepare(slot, id, find_types());
    types_ = prepared->types;
    auto* impl = new TensorImpl(runtime::make_storage(Device(DeviceType::Cpu, 0), static_cast<size_t>(first_->numel) * size_of(types_.out)),
                                types_.out);
    Tensor out(impl);
    impl->sizes = first_->sizes;
    impl->strides = first_->strides;
    impl->numel = first_->numel;
    impl->origin.op = op;
    addresses_[tensors_] = impl->storage->data;
    std::array<uint64_t, kNumbers> params;
    for (int p = 0; p < numbers_; ++p) {
      const bool rounds = is_half(types_.compute) && rounds_number(id, place_[p]);
      params[p] = param_bits(rounds ? as_half(scalars_[p], types_.compute) : scalars_[p], types_.compute);
    }
    prepared->kernel->run(addresses_.data(), params.data(), impl->numel);
    return out;
  }

 private:
  struct Prepared {
    const runtime::DirectKernel* kernel;
    Types types;
  };
  // Only the first kNumbers operands can be scalars. Each of them is a tensor or one of Scalar's kinds.
  static constexpr int kOperands = 5, kNumbers = 3;
  static constexpr int8_t kNumber = -1;
  static constexpr unsigned kKinds = 2 + static_cast<unsigned>(Scalar::Kind::Float);  // a tensor, or one of Scalar's kinds
  static constexpr unsigned kPlace[kNumbers] = {1, kKinds, kKinds* kKinds};
  static constexpr unsigned kAllKinds = kKinds * kKinds * kKinds;
  // Indexed by operator (derivatives included), dtype of the tensors, and kinds of the operands. Entries live as long as the process.
  static std::atomic<const Prepared*> table[ir::op::kTable * 4 * kDTypes * kAllKinds];

  const Prepared* prepare(std::atomic<const Prepared*>& slot, ir::OpId id, Types types) const;

  const TensorImpl* first_ = nullptr;
  unsigned kinds_ = 0;
  int count_ = 0, tensors_ = 0, numbers_ = 0;
  std::array<void*, kOperands + 1> addresses_;
  std::array<Scalar, kNumbers> scalars_;
  std::array<uint8_t, kNumbers> place_;     // operand index of each scalar
  std::array<int8_t, kOperands> input_of_;  // input index of each operand, or kNumber
  Types types_;
};

}  // namespace naru::ops
