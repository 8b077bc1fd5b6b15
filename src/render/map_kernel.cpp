// Elementwise kernels: a loop over several steps at a time, then a loop over single steps, the last of which is a tail.
#include "render/code.h"
#include "render/shortcut.h"
#include "render/walker.h"

namespace naru::render {
namespace {

// Large graphs take long to compile: from kLargeGraph on, do not interleave four steps, and from kLargestLoop on, if registers do not suffice for
// two, emit only the tail's body and use it for all steps.
constexpr size_t kLargeGraph = 100, kLargestLoop = 200;

// How many steps the main loop interleaves; 0 for no main loop. Constants need registers as well.
int unrolling(const Plan& plan, const LaneMachine& machine) {
  if (plan.calls) return 0;
  const bool large = plan.order.size() > kLargeGraph;
  const int vectors = machine.registers_of(plan.vectors, plan.bools), room = (machine.registers() - 2) * 3 / 4;
  const auto masks_for = [&](int steps) { return machine.masks() == 0 || steps * plan.bools < machine.masks(); };
  if (!large && 4 * (vectors + 1) <= room && masks_for(4)) return 4;
  if (2 * vectors <= room && masks_for(2)) return 2;
  return plan.order.size() > kLargestLoop ? 0 : 1;
}

std::vector<bool> scalars(const ir::MapKernel& kernel) {
  std::vector<bool> scalar;
  for (const auto& input : kernel.inputs) scalar.push_back(input.scalar);
  return scalar;
}

class MapCode {
 public:
  MapCode(const ir::MapKernel& kernel, Isa isa, bool streaming)
      : kernel_(kernel),
        plan_(kernel.graph, kernel.results, scalars(kernel)),
        code_(isa),
        a_(code_.assembler()),
        machine_(code_.lanes()),
        whole_(streaming ? StoreMode::Streaming : StoreMode::Full) {}

  ir::MapFunction emit() {
    if (!begin()) return nullptr;
    const Label done = a_.new_label(), single = a_.new_label();
    std::optional<Shortcut> way;
    if (machine_.asks_all_lanes() && !plan_.calls) way = shortcut_of(kernel_, plan_, scalars(kernel_));
    if (const int steps = unrolling(plan_, machine_); steps > 0)
      main_loop(steps, way, steps, single);
    else if (way)  // the shortcut alone is worth a main loop
      main_loop(std::clamp(unrolling(Plan(way->graph, way->results, scalars(kernel_)), machine_), 1, 2), way, 1, single);
    a_.bind(single);
    a_.subtract_and_branch(n_, frame_.position, Condition::LessOrEqual, done);
    single_steps();
    a_.bind(done);
    return reinterpret_cast<ir::MapFunction>(code_.finish());
  }

 private:
  bool begin() {
    Register operands;
    if (!code_.begin(asmjit::FuncSignatureT<void, void* const*, const uint64_t*, int64_t, int64_t>(),
                     {&operands, &frame_.params, &n_, &index0_}))
      return false;
    for (size_t i = 0; i < kernel_.inputs.size() + kernel_.outputs.size(); ++i) {
      const Register base = a_.new_register();
      a_.load(base, at(operands, static_cast<int>(8 * i)));
      (i < kernel_.inputs.size() ? frame_.base : outputs_).push_back(base);
    }
    frame_.position = a_.new_register();
    a_.zero(frame_.position);
    if (plan_.uses_index) frame_.index = a_.new_register();
    return true;
  }

  Walker walker() const { return walker(kernel_.graph, plan_, kernel_.results); }
  Walker walker(const ir::Graph& graph, const Plan& plan, const std::vector<uint32_t>& results) const {
    Walker w(graph, plan, machine_, frame_);
    w.results = results;
    return w;
  }

  void run(Walker& walker, int steps, StoreMode mode, int first = 0) {
    if (plan_.uses_index) a_.set_sum(frame_.index, index0_, frame_.position);
    walker.run(steps, first, mode == StoreMode::Tail, [&](size_t result, int step, const Value& value) {
      const DType dtype = kernel_.outputs[result];
      machine_.store(dtype, value, element_at(outputs_[result], frame_, dtype, (first + step) * machine_.lanes()), mode);
    });
  }

  // Emitted after a main loop's body of `steps` steps.
  void next_steps(int steps, const Register& last, const Label& loop) {
    a_.add(frame_.position, steps * machine_.lanes());
    a_.branch(frame_.position, Condition::LessOrEqual, last, loop);
  }

  // Branches to `quick` if the shortcut applies to all lanes of `steps` steps.
  void ask(const Shortcut& way, int steps, const Label& quick) {
    const std::vector<uint32_t> asked{way.condition};
    const Plan plan(kernel_.graph, asked, scalars(kernel_));
    Walker w = walker(kernel_.graph, plan, asked);
    std::vector<Value> answers;
    if (plan.uses_index) a_.set_sum(frame_.index, index0_, frame_.position);
    w.run(steps, 0, false, [&](size_t, int, const Value& value) { answers.push_back(value); });
    machine_.branch_where_all(answers, quick);
  }

  // Runs while `steps` whole steps are left, `together` of them interleaved where the shortcut does not apply; then jumps to `rest`.
  void main_loop(int steps, const std::optional<Shortcut>& way, int together, const Label& rest) {
    Walker w = walker();
    const Register last = a_.new_register();
    const Label loop = a_.new_label();
    a_.set_sum(last, n_, -steps * machine_.lanes());
    a_.branch(last, Condition::Less, rest);
    w.hoist(machine_.registers() - 2 - together * plan_.vectors);
    const Label quick = a_.new_label();
    a_.align_loop();
    a_.bind(loop);
    if (way) ask(*way, steps, quick);
    for (int first = 0; first < steps; first += together) run(w, together, whole_, first);
    next_steps(steps, last, loop);
    if (!way) return;
    a_.branch(frame_.position, Condition::Greater, last, rest);
    a_.bind(quick);
    const Plan plan(way->graph, way->results, scalars(kernel_));
    Walker left = walker(way->graph, plan, way->results);
    run(left, steps, whole_);
    next_steps(steps, last, loop);
  }

  // n_ elements, at least one.
  void single_steps() {
    Walker w = walker();
    const Label loop = a_.new_label();
    a_.bind(loop);
    machine_.set_tail(n_);
    run(w, 1, StoreMode::Tail);
    a_.add(frame_.position, machine_.lanes());
    a_.subtract_and_branch(n_, machine_.lanes(), Condition::Greater, loop);
  }

  const ir::MapKernel& kernel_;
  const Plan plan_;
  Code code_;
  Assembler& a_;
  LaneMachine& machine_;
  StoreMode whole_;
  Frame frame_;
  Register n_, index0_;
  std::vector<Register> outputs_;
};

}  // namespace

ir::MapFunction compile(const ir::MapKernel& kernel, Isa isa, bool streaming) {
  return can_run(isa) ? MapCode(kernel, isa, streaming).emit() : nullptr;
}

}  // namespace naru::render
