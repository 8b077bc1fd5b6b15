#include "backends/ptx/executor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "core/language.h"
#include "ir/inspect.h"
#include "kernels/source/kernel_source.h"
#include "naru/error.h"
#include "render/c/kernel_name.h"
#include "runtime/device/kernel_cache.h"
#include "runtime/device/registry.h"
#include "runtime/memory/allocator.h"
#include "runtime/profile/kernel_report.h"

namespace naru::backends::ptx {
namespace {

constexpr int kSharedLimit = 227 << 10;  // of a block on an H100

const char* text_of(ir::CType t) noexcept {
  constexpr const char* kNames[] = {"bool",  "int8",   "uint8",   "int16",    "uint16",  "int32",  "uint32",
                                    "int64", "uint64", "float16", "bfloat16", "float32", "float64"};
  return kNames[static_cast<size_t>(t)];
}

std::string trimmed(std::string_view s) {
  const size_t begin = s.find_first_not_of(" \t"), end = s.find_last_not_of(" \t\r");
  return begin == std::string_view::npos ? std::string() : std::string(s.substr(begin, end - begin + 1));
}

// Line `line` of a file within a text: behind `#line 1 "file"`, or of the whole text.
std::string source_line(std::string_view text, const std::string& file, uint32_t line) {
  if (line == 0) return {};
  const std::string mark = fmt::format("#line 1 \"{}\"\n", file);
  if (const size_t at = text.find(mark); at != std::string_view::npos) text.remove_prefix(at + mark.size());
  for (; line > 1; --line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return trimmed(text.substr(0, text.find('\n')));
}

Three three(const std::array<int64_t, 3>& n) noexcept {
  return {static_cast<unsigned>(n[0]), static_cast<unsigned>(n[1]), static_cast<unsigned>(n[2])};
}

}  // namespace

std::string OperandMemory::text() const {
  const bool vowel = std::string_view("aeio").find(name[0]) != std::string_view::npos;
  std::string s = !type.empty() ? fmt::format("`{}`", name) : fmt::format("{} {}", vowel ? "an" : "a", name);
  if (!sizes.empty())
    s += fmt::format(" ({}{})", fmt::join(sizes, ", "), sizes.size() == 1 ? "," : "");
  else
    s += fmt::format(" ({} bytes)", bytes);
  if (!type.empty()) s += " " + type;
  if (origin.op) s += fmt::format(", made by {}", origin.op);
  if (const std::string at = line_text(origin.where); !at.empty()) s += fmt::format(" at {}", at);
  return s;
}

// Launches an instruction's kernels. One for each instruction.
class PtxLauncher final : public render::c::Launcher {
 public:
  PtxLauncher(Executor& executor, const std::vector<OperandMemory>& memory, std::string made, const std::function<bool()>& cancelled)
      : executor_(executor), memory_(memory), made_(std::move(made)), cancelled_(cancelled) {}

  const render::c::Target& target() const override { return executor_.target_; }

  void prepare(const render::c::Launch& launch) override { kernel_of(launch); }

  void start(const render::c::Launch& launch) override {
    if (launch.groups == 0) return;
    Executor::Kernel& kernel = kernel_of(launch);
    Program& p = *kernel.program;
    const bool has_three = launch.group3[0] > 0;
    const Three grid = has_three ? three(launch.groups3) : Three{static_cast<unsigned>(launch.groups), 1, 1};
    const Three block = has_three ? Three{static_cast<unsigned>(launch.group3[0]), static_cast<unsigned>(launch.group3[1]),
                                          static_cast<unsigned>(launch.group3[2])}
                                  : Three{static_cast<unsigned>(launch.group), 1, 1};
    const unsigned threads = block.x * block.y * block.z;
    if (threads > 1024 || (p.most_threads && threads > static_cast<unsigned>(p.most_threads)))
      throw RuntimeError("kernel '{}': blocks of {} threads; at most {} are allowed", kernel.name, threads,
                         p.most_threads ? p.most_threads : 1024);
    if (launch.shared + static_cast<int>(p.shared_bytes) > kSharedLimit)
      throw RuntimeError(
          "device {}: a kernel whose groups share {} bytes; at most {} are possible there. Give fewer with shared=, or use smaller shared "
          "arrays",
          executor_.device_.str(), launch.shared + static_cast<int>(p.shared_bytes), kSharedLimit);

    std::vector<Region> regions;
    const auto add = [&](uintptr_t base, uint64_t bytes, bool written, std::function<std::string()> text) {
      Region r;
      r.base = base, r.bytes = bytes, r.written = written, r.text = std::move(text);
      regions.push_back(std::move(r));
    };
    for (const OperandMemory& m : memory_) add(m.base, m.bytes, m.written, [&m] { return m.text(); });
    for (const auto& [memory, bytes] : scratch_)
      add(reinterpret_cast<uintptr_t>(memory.get()), bytes, true, [] { return std::string("memory for intermediate values"); });
    for (const auto& f : faults_)
      add(reinterpret_cast<uintptr_t>(f->records.data()), f->records.size() * sizeof(render::c::Fault), true,
          [] { return std::string("the records of bad indices"); });
    for (const Variable& v : p.variables)
      if (v.space != Space::Shared)
        add(reinterpret_cast<uintptr_t>(p.memory.data()) + v.at, v.bytes, v.space == Space::Global,
            [&v] { return fmt::format("the variable `{}`", v.name); });

    const size_t n = launch.memory.size();
    if (p.parameters.size() != n + 1)
      throw RuntimeError("kernel '{}' has {} parameters, and the launch gives {}", kernel.name, p.parameters.size(), n + 1);
    std::vector<std::byte> parameters(p.parameter_bytes);
    const auto put = [&](size_t k, const void* from, size_t bytes) {
      std::memcpy(parameters.data() + p.parameters[k].at, from, std::min<size_t>(bytes, p.parameters[k].bytes));
    };
    for (size_t k = 0; k < n; ++k) put(k, &launch.memory[k], 8);
    // Addresses need no offsets from the start of a block.
    std::memset(launch.arguments.data(), 0, n * 8);
    if (render::c::in_memory(n, launch.arguments.size(), executor_.target_)) {
      const void* const at = launch.arguments.data();
      put(n, &at, 8);
      add(reinterpret_cast<uintptr_t>(at), launch.arguments.size(), false, [] { return std::string("the kernel's arguments"); });
    } else {
      put(n, launch.arguments.data(), launch.arguments.size());
    }
    std::sort(regions.begin(), regions.end(), [](const Region& a, const Region& b) { return a.base < b.base; });

    Machine machine(p, grid, block, static_cast<unsigned>(launch.shared), std::move(parameters), regions);
    machine.run(cancelled_);
    uint64_t memory = 0;
    for (const Region& r : regions) memory += r.bytes;
    report(kernel, machine, memory);
  }

  void* scratch(size_t bytes) override {
    constexpr size_t kAlign = 64;
    // Filled with what no code can rely on.
    auto* const memory = static_cast<std::byte*>(::operator new(std::max<size_t>(bytes, 1), std::align_val_t(kAlign)));
    std::memset(memory, 0xcd, bytes);
    scratch_.emplace_back(Piece(memory), bytes);
    return memory;
  }

  void* faults(int count, render::c::FaultError error) override {
    if (count == 0) return nullptr;
    faults_.push_back(std::make_unique<Records>());
    faults_.back()->records.resize(static_cast<size_t>(count));
    faults_.back()->error = std::move(error);
    return faults_.back()->records.data();
  }

  // After the instruction: errors of bad indices, and the first fault.
  void finish() const {
    for (const auto& f : faults_)
      for (size_t k = 0; k < f->records.size(); ++k)
        if (const render::c::Fault& r = f->records[k]; r.found != render::c::Fault::kNothing)
          std::rethrow_exception(f->error(static_cast<int>(k), r.found, r.value));
    if (!first_.empty()) throw RuntimeError(first_);
  }

 private:
  struct Free {
    void operator()(std::byte* p) const noexcept { ::operator delete(p, std::align_val_t(64)); }
  };
  using Piece = std::unique_ptr<std::byte, Free>;
  struct Records {
    std::vector<render::c::Fault> records;
    render::c::FaultError error;
  };

  Executor::Kernel& kernel_of(const render::c::Launch& launch) {
    return executor_.kernels_.of(
        launch, [&] { return executor_.compile(render::c::with_name(launch.text(), render::c::kernel_name(launch.key))); });
  }

  void report(const Executor::Kernel& kernel, const Machine& machine, uint64_t memory) {
    // Each byte once, as far as that can be known: no more than there is, and than was read and written.
    const uint64_t touched = std::min(memory, 32 * machine.counts().global_sectors);
    runtime::KernelReport& all = runtime::kernel_report();
    const Counts& c = machine.counts();
    const auto n = [](uint64_t x) { return static_cast<double>(x); };
    all.count(kernel.name, {{"blocks", n(c.blocks)},
                            {"warps", n(c.warps)},
                            {"threads", n(c.threads)},
                            {"instructions", n(c.instructions)},
                            {"thread_instructions", n(c.thread_instructions)},
                            {"integer", n(c.by_class[0])},
                            {"float", n(c.by_class[1])},
                            {"double", n(c.by_class[2])},
                            {"special", n(c.by_class[3])},
                            {"convert", n(c.by_class[4])},
                            {"memory", n(c.by_class[5])},
                            {"control", n(c.by_class[6])},
                            {"synchronization", n(c.by_class[7])},
                            {"touched_bytes", n(touched)},
                            {"global_accesses", n(c.global_accesses)},
                            {"global_sectors", n(c.global_sectors)},
                            {"ideal_sectors", n(c.ideal_sectors)},
                            {"read_bytes", n(c.read_bytes)},
                            {"written_bytes", n(c.written_bytes)},
                            {"shared_accesses", n(c.shared_accesses)},
                            {"bank_conflicts", n(c.bank_conflicts)},
                            {"atomics", n(c.atomics)},
                            {"barriers", n(c.barriers)},
                            {"branches", n(c.branches)},
                            {"divergent_branches", n(c.divergent_branches)}});
    for (const Fault& f : machine.faults()) {
      runtime::KernelFault found;
      found.kernel = kernel.name.starts_with("naru_user_") ? kernel.name.substr(10) : kernel.name;
      found.kind = words_of(f.kind);
      found.file = f.file, found.line = f.line, found.source = source_line(kernel.text, f.file, f.line);
      found.thread =
          fmt::format("thread ({}, {}, {}) of block ({}, {}, {})", f.thread.x, f.thread.y, f.thread.z, f.block.x, f.block.y, f.block.z);
      found.instruction = f.instruction, found.text = f.text, found.made = made_, found.times = f.times;
      if (first_.empty() && !all.collects()) first_ = found.sentence();
      all.add(std::move(found));
    }
  }

  Executor& executor_;
  const std::vector<OperandMemory>& memory_;
  const std::string made_;
  const std::function<bool()>& cancelled_;
  std::vector<std::pair<Piece, size_t>> scratch_;
  std::vector<std::unique_ptr<Records>> faults_;
  std::string first_;
};

Executor::Executor(Device device) : device_(device), compiler_(gpu::make_ptx_compiler(architecture_)), target_(target()) {
  if (architecture_.empty())
    throw DeviceUnavailableError(
        fmt::format("device {}: execute=ptx needs NVRTC, CUDA's run-time compiler (no GPU is needed): {}. To install it: {}", device.str(),
                    compiler_->trouble(), compiler_->remedy()));
}

// As a real device (backends/cuda/device.cpp), with as many multiprocessors as an H100: how a kernel is cut depends on them.
render::c::Target Executor::target() {
  render::c::Target t;
  t.dialect = &render::c::cuda();
  t.parameters = 4096;
  t.local = 48 << 10;
  t.units = 132;
  t.largest_group = 1024;
  return t;
}

std::vector<OperandMemory> Executor::memory_of(const ir::Instruction& instruction, const std::function<void*(void*)>& to_host) const {
  std::vector<OperandMemory> found;
  const auto* const user = std::get_if<ir::UserKernel>(&instruction);
  std::vector<const ir::KernelParam*> parameters;
  if (user) {
    size_t k = 0;
    for (const ir::KernelParam& p : user->source->kernels()[static_cast<size_t>(user->entry)].params)
      if (p.pointer && k < user->memory.size() && user->memory[k++]) parameters.push_back(&p);
  }
  size_t number = 0;
  const runtime::CachingAllocator& allocator = runtime::allocator_of(device_);
  ir::each_operand(instruction, [&](const void* address, const ir::OperandUse& use) {
    const ir::KernelParam* const parameter = number < parameters.size() ? parameters[number] : nullptr;
    ++number;
    if (use.device && *use.device != device_) return;
    OperandMemory m;
    const runtime::CachingAllocator::Found block = allocator.find(address);
    const auto host = [&](const void* p) { return reinterpret_cast<uintptr_t>(to_host(const_cast<void*>(p))); };
    if (block.data) {
      m.base = host(block.data), m.bytes = block.bytes, m.origin = block.origin;
    } else {  // memory of another owner: as far as the operand goes
      int64_t first = -use.before, last = use.behind + 1;
      const auto item = static_cast<int64_t>(size_of(use.dtype));
      first *= item, last *= item;
      for (size_t d = 0; d < use.sizes.size(); ++d) {
        const int64_t reach = (use.sizes[d] - 1) * use.strides[d];
        (reach < 0 ? first : last) += reach;
      }
      m.base = host(address) + static_cast<uintptr_t>(first), m.bytes = static_cast<uint64_t>(last - first);
    }
    for (OperandMemory& known : found)
      if (known.base == m.base) {
        known.written |= use.written;
        known.bytes = std::max(known.bytes, m.bytes);
        return;
      }
    m.written = use.written;
    if (parameter) {
      m.name = parameter->name, m.type = text_of(parameter->type);
      const auto item = dtype_of(parameter->type) ? size_of(*dtype_of(parameter->type)) : 1;
      m.sizes = {static_cast<int64_t>(m.bytes / item)};
    } else {
      m.name = use.what;
      m.sizes.assign(use.sizes.begin(), use.sizes.end());
    }
    found.push_back(std::move(m));
  });
  return found;
}

Capabilities Executor::capabilities() {
  Capabilities c = render::c::capabilities_of(target());
  c.maps_each = c.cuda_source = true;
  return c;
}

bool Executor::takes(const ir::Instruction& instruction) noexcept {
  return !std::holds_alternative<ir::CopyBytes>(instruction) && !std::holds_alternative<ir::Exchange>(instruction) &&
         !ir::is_host_only(instruction);
}

void Executor::run(const ir::Instruction& instruction, const std::vector<OperandMemory>& memory, const std::function<bool()>& cancelled) {
  std::string made;
  for (const OperandMemory& m : memory)
    if (m.written && m.origin.op && !std::holds_alternative<ir::UserKernel>(instruction)) {
      made = m.origin.op;
      if (const std::string at = line_text(m.origin.where); !at.empty()) made += " at " + at;
      break;
    }
  PtxLauncher launcher(*this, memory, std::move(made), cancelled);
  render::c::run_any(instruction, launcher);
  launcher.finish();
}

void Executor::prepare(const ir::Instruction& instruction) {
  const auto* const k = std::get_if<ir::UserKernel>(&instruction);
  if (!k) return;
  const std::vector<OperandMemory> none;
  const std::function<bool()> never;
  PtxLauncher launcher(*this, none, "", never);
  render::c::prepare(*k, launcher);
}

Executor::Kernel Executor::compile(const std::string& text) const {
  const std::string name(render::c::kernel_of_text(text));
  runtime::KernelCache& cache = runtime::kernel_cache();
  const std::string key = runtime::KernelCache::key(text, compiler_->options(), compiler_->name() + "|ptx|" + architecture_);
  std::string ptx;
  if (auto known = cache.find(key)) {
    ptx = std::move(*known);
  } else {
    ptx = compiler_->compile(text, architecture_, device_);
    cache.count_compilation();
    cache.store(key, ptx);
  }
  return {read_program(ptx, name), name, text};
}

}  // namespace naru::backends::ptx
