// The fast path of elementwise operators: one node over small cpu tensors with nothing pending, done at once on the calling thread.
#pragma once

#include <array>
#include <atomic>
#include <span>

#include "ir/program.h"
#include "ops/common.h"
#include "ops/half.h"
#include "ops/numbers.h"
#include "ops/rules.h"
#include "runtime/memory.h"
#include "runtime/small_work.h"

namespace naru::ops {

// out = op(sources), where all that it touches is at hand, and each source lies as `out` does or is one element. False: nothing is done.
bool run_at_once(ir::OpId id, std::span<const runtime::Source> sources, const TensorImpl& out);
// The same for copies of few elements that lie anyhow, of out's type.
bool copied_at_once(const runtime::Source& source, const TensorImpl& out);

// The same for dense tensors of one type and shape, with numbers beside them: types and kernel stand in a flat table, so that neither rules nor
// programs are looked at. Operands are added in order; then it is run.
class FastCall {
 public:
  // False: this operand asks for the general path.
  bool add(const TensorImpl* t) {
    if (!t || !is_at_hand(*t)) return false;
    if (!first_) {
      first_ = t;
      if (t->numel > kSmall || t->numel == 0 || !in_programs(t->dtype)) return false;
    } else if (t->dtype != first_->dtype || !(t->sizes == first_->sizes)) {
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
  // An operand that the operator does not read.
  void add_unused() { input_of_[count_++] = 0; }

  // The first tensor; null where there is none.
  const TensorImpl* first() const noexcept { return first_; }
  bool has_numbers() const noexcept { return numbers_ > 0; }
  // Once it has run.
  const Types& types() const noexcept { return types_; }

  // A new tensor, made by `op`. find_types is asked once for each operator and kinds of operands.
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
  // Numbers stand among the first operands only; each is of a kind, or a tensor.
  static constexpr int kOperands = 5, kNumbers = 3;
  static constexpr int8_t kNumber = -1;
  static constexpr unsigned kKinds = 2 + static_cast<unsigned>(Scalar::Kind::Float);  // a tensor, or one of Scalar's
  static constexpr unsigned kPlace[kNumbers] = {1, kKinds, kKinds* kKinds};
  static constexpr unsigned kAllKinds = kKinds * kKinds * kKinds;
  // By operator (derivatives too), type of the tensors, and kinds of the operands. Entries live as long as the process.
  static std::atomic<const Prepared*> table[ir::op::kTable * 4 * kDTypes * kAllKinds];

  const Prepared* prepare(std::atomic<const Prepared*>& slot, ir::OpId id, Types types) const;

  const TensorImpl* first_ = nullptr;
  unsigned kinds_ = 0;
  int count_ = 0, tensors_ = 0, numbers_ = 0;
  std::array<void*, kOperands + 1> addresses_;
  std::array<Scalar, kNumbers> scalars_;
  std::array<uint8_t, kNumbers> place_;     // which operand a number is
  std::array<int8_t, kOperands> input_of_;  // which input an operand is, or kNumber
  Types types_;
};

}  // namespace naru::ops
