#include "backends/cpu/exec/kernels.h"

#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>

#include "runtime/os/fork.h"
#include "runtime/os/system.h"

namespace naru::cpu {
namespace {

using ir::MapKernel;
using ir::Prim;
using ir::Program;

// A hash table that only grows: readers follow links without a lock, writers take one.
template <class Value>
class Table {
 public:
  template <class Make>
  const Value& find(const Program& program, uint64_t key, Make make) {
    std::atomic<Entry*>& bucket = buckets_[(program.hash() ^ key * 0x9e3779b97f4a7c15u) % kBuckets];
    if (const Value* found = look(bucket.load(std::memory_order_acquire), program, key)) return *found;
    const std::lock_guard lock(mutex_);
    Entry* first = bucket.load(std::memory_order_acquire);
    if (const Value* found = look(first, program, key)) return *found;
    auto entry = std::make_unique<Entry>();
    entry->program = program;
    entry->key = key;
    entry->next = first;
    make(entry->value);
    bucket.store(entry.get(), std::memory_order_release);
    return entry.release()->value;
  }

  std::mutex& mutex() noexcept { return mutex_; }

 private:
  struct Entry {
    Program program;
    uint64_t key = 0;
    Entry* next = nullptr;
    Value value;
  };
  static const Value* look(const Entry* e, const Program& program, uint64_t key) {
    for (; e; e = e->next)
      if (e->key == key && e->program.same(program)) return &e->value;
    return nullptr;
  }
  static constexpr size_t kBuckets = 4096;
  std::atomic<Entry*> buckets_[kBuckets] = {};
  std::mutex mutex_;
};

// Never destroyed: threads that outlive main() use the kernels.
template <class Value>
Table<Value>& table() {
  static auto* const t = [] {
    auto* made = new Table<Value>;
    runtime::hold_at_fork(made->mutex());
    return made;
  }();
  return *t;
}

std::atomic<bool> jit{true};
std::atomic<int> isa{-1};

render::Isa current_isa() noexcept {
  int v = isa.load(std::memory_order_relaxed);
  if (v < 0) {
    v = static_cast<int>(render::best_isa());
    isa.store(v, std::memory_order_relaxed);
  }
  return jit.load(std::memory_order_relaxed) ? static_cast<render::Isa>(v) : render::Isa::None;
}

// Sentinels: compilation was tried, and there is no machine code.
void no_map(void* const*, const uint64_t*, int64_t, int64_t) {}
void no_contiguous(void* const*, const uint64_t*, int64_t, int64_t, void*) {}
void no_strided(void* const*, const int64_t*, const uint64_t*, int64_t, int64_t, int64_t, int64_t, void*, int64_t) {}

// The code in `slot`, compiled on the first call; nullptr if it can't be compiled.
template <class Function, class Compile>
Function code_in(std::atomic<Function>& slot, Function none, Compile compile) {
  Function f = slot.load(std::memory_order_acquire);
  if (!f) {
    // Two threads may compile the same kernel; the code of the first is kept.
    f = compile();
    if (f)
      runtime::system::code_written();
    else
      f = none;
    Function before = nullptr;
    if (!slot.compare_exchange_strong(before, f, std::memory_order_acq_rel)) f = before;
  }
  return f == none ? nullptr : f;
}

int cost_of(const ir::Node& n) noexcept {
  switch (n.prim) {
    case Prim::Param:
    case Prim::Const:
      return 0;
    case Prim::Div:
    case Prim::Rem:
    case Prim::Sqrt:
      return 6;
    default:
      return 1;
  }
}

void inspect(const MapKernel& kernel, bool& uses_index, int& cost) {
  cost = 0;
  for (const ir::Node& n : kernel.graph.nodes()) {
    uses_index |= n.prim == Prim::Index;
    cost += cost_of(n);
  }
  if (cost < 1) cost = 1;
}

Program with_scalars(const Program& program, uint32_t scalars) {
  Program p = program;
  for (int i = 0; i < p.inputs_count; ++i) p.inputs[i].scalar = scalars >> i & 1;
  return p;
}

}  // namespace

uint32_t scalars_of(const Program& program) noexcept {
  uint32_t bits = 0;
  for (int i = 0; i < program.inputs_count; ++i) bits |= static_cast<uint32_t>(program.inputs[i].scalar) << i;
  return bits;
}

const Kernel& kernel_of(const Program& program, uint32_t scalars) {
  return table<Kernel>().find(program, scalars, [&](Kernel& k) {
    k.kernel = with_scalars(program, scalars).lower();
    inspect(k.kernel, k.uses_index, k.cost);
    if (k.kernel.inputs.size() == 1 && k.kernel.results.size() == 1)
      k.copies = k.kernel.graph[k.kernel.results[0]].prim == Prim::Input && k.kernel.inputs[0].dtype == k.kernel.outputs[0];
  });
}

const ReductionKernel& reduction_kernel_of(const Program& program, ir::ReduceOp op, uint32_t scalars, bool keeps, uint32_t per_row) {
  static_assert(ir::kMaxInputs <= 16);
  const uint64_t key =
      scalars | static_cast<uint64_t>(per_row) << 16 | static_cast<uint64_t>(op) << 32 | static_cast<uint64_t>(keeps) << 40;
  return table<ReductionKernel>().find(program, key, [&](ReductionKernel& k) {
    k.kernel.map = with_scalars(program, scalars).lower();
    for (size_t i = 0; i < k.kernel.map.inputs.size(); ++i) k.kernel.map.inputs[i].per_row = per_row >> i & 1;
    k.kernel.map.outputs.clear();
    k.kernel.op = op;
    k.kernel.type = k.kernel.map.graph[k.kernel.map.results[0]].type;
    if (keeps) k.kernel.map.outputs.push_back(dtype_of(k.kernel.type));
    inspect(k.kernel.map, k.uses_index, k.cost);
  });
}

void Kernel::run(void* const* operands, const uint64_t* params, int64_t n, int64_t index0, bool streaming) const {
  const render::Isa set = current_isa();
  if (set != render::Isa::None) {
    auto& slot = code[static_cast<size_t>(set)][streaming];
    if (auto f = code_in<ir::MapFunction>(slot, no_map, [&] { return render::compile(kernel, set, streaming); }))
      return f(operands, params, n, index0);
  }
  ir::interpret(kernel, operands, params, n, index0);
}

void ReductionKernel::contiguous(void* const* inputs, const uint64_t* params, int64_t n, int64_t index0, void* out) const {
  const render::Isa set = current_isa();
  if (set != render::Isa::None) {
    auto& slot = contiguous_code[static_cast<size_t>(set)];
    if (auto f = code_in<ir::ContiguousFunction>(slot, no_contiguous, [&] { return render::compile_contiguous(kernel, set); }))
      return f(inputs, params, n, index0, out);
  }
  ir::interpret_contiguous(kernel, inputs, params, n, index0, out);
}

void ReductionKernel::strided(void* const* inputs, const int64_t* row_strides, const uint64_t* params, int64_t rows, int64_t cols,
                              int64_t index0, int64_t index_stride, void* out, int64_t plane) const {
  const render::Isa set = current_isa();
  if (set != render::Isa::None) {
    auto& slot = strided_code[static_cast<size_t>(set)];
    if (auto f = code_in<ir::StridedFunction>(slot, no_strided, [&] { return render::compile_strided(kernel, set); }))
      return f(inputs, row_strides, params, rows, cols, index0, index_stride, out, plane);
  }
  ir::interpret_strided(kernel, inputs, row_strides, params, rows, cols, index0, index_stride, out, plane);
}

void convert(DType from, const void* source, DType to, void* target, int64_t n) {
  if (from == to) {
    if (target != source) std::memcpy(target, source, static_cast<size_t>(n) * size_of(to));
    return;
  }
  static std::atomic<const Kernel*> kernels[kDTypes][kDTypes] = {};
  auto& slot = kernels[static_cast<int>(from)][static_cast<int>(to)];
  const Kernel* k = slot.load(std::memory_order_acquire);
  if (!k) {
    auto* made = new Kernel;
    made->kernel.results.push_back(ir::convert(ir::input(made->kernel.graph, 0, from), to).id());
    made->kernel.inputs.push_back({from, false});
    made->kernel.outputs.push_back(to);
    const Kernel* before = nullptr;
    if (slot.compare_exchange_strong(before, made, std::memory_order_acq_rel)) {
      k = made;
    } else {
      delete made;
      k = before;
    }
  }
  void* const operands[] = {const_cast<void*>(source), target};
  k->run(operands, nullptr, n, 0);
}

const SmallKernel& small_kernel(const Program& program) {
  struct Entry {
    std::atomic<const SmallKernel*> of[render::kMostIsas] = {};  // per instruction set
  };
  const render::Isa set = current_isa();
  const Entry& entry = table<Entry>().find(program, 0, [](Entry&) {});
  auto& slot = const_cast<Entry&>(entry).of[static_cast<int>(set)];
  if (const SmallKernel* found = slot.load(std::memory_order_acquire)) return *found;
  const Kernel& kernel = kernel_of(program, scalars_of(program));
  auto made = std::make_unique<SmallKernel>();
  made->kernel = &kernel.kernel;
  if (set != render::Isa::None)
    made->machine =
        code_in<ir::MapFunction>(kernel.code[static_cast<size_t>(set)][0], no_map, [&] { return render::compile(kernel.kernel, set); });
  const SmallKernel* before = nullptr;
  if (slot.compare_exchange_strong(before, made.get(), std::memory_order_acq_rel)) return *made.release();
  return *before;
}

bool set_jit(bool on) noexcept { return jit.exchange(on); }

const char* isa_name() noexcept { return render::name_of(current_isa()); }

bool set_isa(const char* name) {
  const render::Isa set = render::isa_named(name);
  if (set == render::Isa::None && std::string_view(name) != "none") return false;
  if (set > render::best_isa()) return false;
  isa.store(static_cast<int>(set));
  return true;
}

}  // namespace naru::cpu
