// Strided reductions (neighbours in memory belong to different results), in the order of ir/reduce.h.
#include "render/reduction_code.h"

namespace naru::render {
namespace {

constexpr int kMaxColumnSteps = 8;

class StridedCode : ReductionCode {
 public:
  StridedCode(const ir::ReduceKernel& kernel, Isa isa) : ReductionCode(kernel, isa), dtype_(dtype_of(kernel.type)) {}

  ir::StridedFunction emit() {
    if (!begin()) return nullptr;
    const Label tail = a_.new_label(), done = a_.new_label();
    whole_blocks(tail);
    a_.bind(tail);
    a_.subtract_and_branch(columns_, frame_.position, Condition::LessOrEqual, done);
    remaining_columns();
    a_.bind(done);
    return reinterpret_cast<ir::StridedFunction>(code_.finish());
  }

 private:
  bool begin() {
    if (!code_.begin(asmjit::FuncSignatureT<void, void* const*, const int64_t*, const uint64_t*, int64_t, int64_t, int64_t, int64_t, void*,
                                            int64_t>(),
                     {&inputs_, &strides_, &frame_.params, &rows_, &columns_, &index0_, &index_stride_, &out_, &plane_}))
      return false;
    start_position();
    outs_ = {out_};
    for (size_t r = 1; r < results(); ++r) {
      outs_.push_back(a_.new_register());
      a_.move(outs_[r], outs_[r - 1]);
      a_.add(outs_[r], plane_);
    }
    for (size_t i = 0; i < kernel_.map.inputs.size(); ++i) frame_.base.push_back(a_.new_register());
    row_ = a_.new_register();
    return true;
  }

  Address place(size_t result, int step) const { return element_at(outs_[result], frame_, dtype_, step * machine_.lanes()); }

  // Back to the first row.
  void rewind() {
    for (size_t i = 0; i < frame_.base.size(); ++i) a_.load(frame_.base[i], at(inputs_, static_cast<int>(8 * i)));
    a_.move(row_, rows_);
    if (plan_.uses_index) a_.set_sum(frame_.index, index0_, frame_.position);
  }

  // Emits a loop that runs `body` for each row, if there are any.
  template <class Body>
  void for_rows(bool aligned, Body body) {
    const Label loop = a_.new_label(), empty = a_.new_label();
    a_.branch(row_, Condition::LessOrEqual, empty);
    if (aligned) a_.align_loop();
    a_.bind(loop);
    body();
    for (size_t i = 0; i < frame_.base.size(); ++i)
      if (!kernel_.map.inputs[i].scalar || kernel_.map.inputs[i].per_row) a_.add(frame_.base[i], at(strides_, static_cast<int>(8 * i)));
    if (plan_.uses_index) a_.add(frame_.index, index_stride_);
    a_.subtract_and_branch(row_, 1, Condition::Greater, loop);
    a_.bind(empty);
  }

  // Steps per block, so that all accumulators and one step of the map fit in registers.
  int block_steps(int room) const {
    if (plan_.calls) return 1;
    const int each = std::max(1, accumulator_registers());
    const auto fits = [&](int steps) {
      // A Bool needs three masks: the accumulator, the value and a temporary.
      const bool masks =
          kernel_.type != VType::Bool || machine_.masks() == 0 || 3 * steps * static_cast<int>(results()) <= machine_.masks();
      return steps * each + step_registers() <= room && masks;
    };
    int steps = kMaxColumnSteps;
    while (steps > 1 && !fits(steps)) steps /= 2;
    return steps;
  }

  // Processes blocks of columns, with all accumulators in registers, while there are any; then jumps to `tail`.
  void whole_blocks(const Label& tail) {
    const int all = machine_.registers() - 3, steps = block_steps(all), room = all - steps * std::max(1, accumulator_registers());
    const int together = std::min(interleaved(steps, room), 4);
    Walker w = walker();
    const Register last = a_.new_register();
    const Label block = a_.new_label();
    a_.set_sum(last, columns_, -steps * machine_.lanes());
    a_.branch(last, Condition::Less, tail);
    rewind();
    w.hoist(room - together * step_registers());
    a_.bind(block);
    rewind();
    std::vector<Values> accumulators(results());
    for (size_t r = 0; r < results(); ++r)
      for (int s = 0; s < steps; ++s) accumulators[r].push_back(machine_.load(dtype_, place(r, s), false));
    for_rows(true, [&] {
      for (int first = 0; first < steps; first += together) take(w, first, together, accumulators);
    });
    for (size_t r = 0; r < results(); ++r)
      for (int s = 0; s < steps; ++s) machine_.store(dtype_, accumulators[r][static_cast<size_t>(s)], place(r, s), StoreMode::Full);
    a_.add(frame_.position, steps * machine_.lanes());
    a_.branch(frame_.position, Condition::LessOrEqual, last, block);
  }

  // columns_ columns, at least one: a step at a time.
  void remaining_columns() {
    Walker w = walker();
    const Label block = a_.new_label();
    rewind();
    w.hoist(machine_.registers() - 6 - accumulator_registers() - step_registers());
    a_.bind(block);
    rewind();
    machine_.set_tail(columns_);
    Values accumulators;
    for (size_t r = 0; r < results(); ++r) accumulators.push_back(machine_.load(dtype_, place(r, 0), true));
    for_rows(false, [&] {
      const Values values = tail_values(w);
      for (size_t r = 0; r < results(); ++r) combiner_.into(accumulators[r], values[r]);
    });
    for (size_t r = 0; r < results(); ++r) machine_.store(dtype_, accumulators[r], place(r, 0), StoreMode::Tail);
    a_.add(frame_.position, machine_.lanes());
    a_.subtract_and_branch(columns_, machine_.lanes(), Condition::Greater, block);
  }

  const DType dtype_;
  Register inputs_, strides_, rows_, columns_, index0_, index_stride_, out_, plane_, row_;
  std::vector<Register> outs_;  // per result
};

}  // namespace

ir::StridedFunction compile_strided(const ir::ReduceKernel& kernel, Isa isa) {
  return can_run(isa) ? StridedCode(kernel, isa).emit() : nullptr;
}

}  // namespace naru::render
