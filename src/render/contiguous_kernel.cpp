// Contiguous reductions, in the order of ir/reduce.h: the kernel of one chunk.
#include "render/reduction_code.h"

namespace naru::render {
namespace {

class ContiguousCode : ReductionCode {
 public:
  ContiguousCode(const ir::ReduceKernel& kernel, Isa isa)
      : ReductionCode(kernel, isa), steps_(static_cast<int>(ir::kLanes) / machine_.lanes()) {}

  ir::ContiguousFunction emit() {
    if (!begin()) return nullptr;
    accumulators_ = identities(steps_);
    const Label rest = a_.new_label(), tree = a_.new_label();
    whole_groups(rest);
    a_.bind(rest);
    a_.subtract_and_branch(n_, frame_.position, Condition::LessOrEqual, tree);
    remaining_steps();
    a_.bind(tree);
    combine_lanes();
    const int each = static_cast<int>(ir::size_of(kernel_.type));
    for (size_t r = 0; r < results(); ++r) machine_.store_first(kernel_.type, accumulators_[r][0], at(out_, static_cast<int>(r) * each));
    return reinterpret_cast<ir::ContiguousFunction>(code_.finish());
  }

 private:
  bool begin() {
    Register operands;
    if (!code_.begin(asmjit::FuncSignatureT<void, void* const*, const uint64_t*, int64_t, int64_t, void*>(),
                     {&operands, &frame_.params, &n_, &index0_, &out_}))
      return false;
    const auto operand = [&](size_t i) {
      const Register base = a_.new_register();
      a_.load(base, at(operands, static_cast<int>(8 * i)));
      return base;
    };
    const size_t inputs = kernel_.map.inputs.size();
    for (size_t i = 0; i < inputs; ++i) frame_.base.push_back(operand(i));
    if (!kernel_.map.outputs.empty()) mapped_ = operand(inputs);
    start_position();
    return true;
  }

  void set_index() {
    if (plan_.uses_index) a_.set_sum(frame_.index, index0_, frame_.position);
  }

  // Processes groups of 64 elements while there are any; then jumps to `rest`.
  void whole_groups(const Label& rest) {
    Walker w = walker();
    const Register last = a_.new_register();
    const Label loop = a_.new_label();
    const int room = machine_.registers() - 2 - steps_ * accumulator_registers(), together = interleaved(steps_, room);
    a_.set_sum(last, n_, -ir::kLanes);
    a_.branch(last, Condition::Less, rest);
    w.hoist(room - together * step_registers() - 2 * static_cast<int>(combiner_.plan().order.size() > 1));
    a_.align_loop();
    a_.bind(loop);
    set_index();
    for (int first = 0; first < steps_; first += together) take(w, first, together, accumulators_);
    a_.add(frame_.position, ir::kLanes);
    a_.branch(frame_.position, Condition::LessOrEqual, last, loop);
  }

  // n_ elements, at least one and less than a group: step by step, with the accumulators in memory.
  void remaining_steps() {
    const VType type = kernel_.type;
    const int bytes = machine_.bytes_of(type);
    const auto count = static_cast<int>(results());
    const asmjit::BaseMem stack = a_.new_stack(static_cast<uint32_t>(count * steps_ * bytes), 64);
    const Register place = a_.new_register();
    a_.load_address(place, stack);
    const auto in_memory = [&](int r, int step) { return at(place, (r * steps_ + step) * bytes); };
    const auto each = [&](auto&& f) {
      for (int r = 0; r < count; ++r)
        for (int s = 0; s < steps_; ++s) f(accumulators_[static_cast<size_t>(r)][static_cast<size_t>(s)], in_memory(r, s));
    };
    each([&](const Value& accumulator, const Address& to) { machine_.spill(type, accumulator, to); });
    const Label next = a_.new_label();
    a_.bind(next);
    set_index();
    machine_.set_tail(n_);
    Walker w = walker();
    const Values values = tail_values(w);
    for (int r = 0; r < count; ++r) {
      const Value before = machine_.fill(type, in_memory(r, 0));
      const Value after = combiner_.run({machine_.copy(type, before)}, {values[static_cast<size_t>(r)]})[0];
      machine_.spill(type, machine_.blend_tail(type, after, before), in_memory(r, 0));
    }
    a_.add(place, bytes);
    a_.add(frame_.position, machine_.lanes());
    a_.subtract_and_branch(n_, machine_.lanes(), Condition::Greater, next);
    a_.load_address(place, stack);
    each([&](const Value& accumulator, const Address& from) { machine_.move(type, accumulator, machine_.fill(type, from)); });
  }

  // The tree: first across steps, then within one.
  void combine_lanes() {
    for (const Values& all : accumulators_) {
      for (int half = steps_ / 2; half >= 1; half /= 2)
        for (int s = 0; s < half; ++s) combiner_.into(all[static_cast<size_t>(s)], all[static_cast<size_t>(s + half)]);
      for (int by = machine_.lanes() / 2; by >= 1; by /= 2)
        combiner_.into(all[0], machine_.copy(kernel_.type, machine_.shift_down(kernel_.type, all[0], by)));
    }
  }

  const int steps_;
  Register n_, index0_, out_;
  std::vector<Values> accumulators_;  // per result
};

}  // namespace

ir::ContiguousFunction compile_contiguous(const ir::ReduceKernel& kernel, Isa isa) {
  return can_run(isa) ? ContiguousCode(kernel, isa).emit() : nullptr;
}

}  // namespace naru::render
