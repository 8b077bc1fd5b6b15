// User kernels on host memory: compiled by the system's C compiler; the pool runs their groups.
#include <fmt/format.h>

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <thread>

#include "backends/cpu/exec/helper_thread.h"
#include "backends/cpu/exec/instructions.h"
#include "backends/cpu/exec/thread_pool.h"
#include "core/per_thread.h"
#include "kernels/host/c_compiler.h"
#include "kernels/host/kernel_job.h"
#include "kernels/host/shared_object.h"
#include "kernels/text/division.h"
#include "kernels/text/kernel.h"
#include "naru/error.h"
#include "runtime/device/kernel_cache.h"
#include "runtime/os/fork.h"
#include "runtime/os/interrupt.h"

namespace naru::cpu {
namespace {

using render::c::UserC;
using render::c::UserFunction;

// The result of -march=native depends on the processor.
std::string processor() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("flags") || line.starts_with("Features")) return line;
  return "";
}

// Loads a library from its bytes. Never unloaded: kernels live as long as the process.
UserFunction load(const std::string& bytes) {
  std::string why;
  for (const std::string& folder : {std::filesystem::temp_directory_path().string(), runtime::kernel_cache().folder()}) {
    if (folder.empty()) continue;
    std::string path = folder + "/naru-kernel-XXXXXX";
    const int file = mkstemp(path.data());
    if (file < 0) continue;
    const bool whole = write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
    close(file);
    void* const library = whole ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
    if (!library && whole) why = dlerror();
    unlink(path.c_str());
    if (library) return reinterpret_cast<UserFunction>(dlsym(library, render::c::kUserFunction));
  }
  throw RuntimeError("naru.kernel: a compiled kernel could not be loaded: {}. Set TMPDIR to a folder that programs may be loaded from",
                     why);
}

// The stacks of a group's items, kept for the thread's next kernel.
class Stacks {
 public:
  // The compiler checks that a kernel with barriers fits into its part of the stack.
  static constexpr int64_t kBytes = 64 << 10;
  static constexpr int64_t kFrame = 16 << 10, kMostHuge = 256 << 20;
  // A stack; after all stacks there is one pointer per item.
  static constexpr int64_t kEach = kBytes + static_cast<int64_t>(sizeof(void*));
  Stacks() = default;
  Stacks(const Stacks&) = delete;
  ~Stacks() { release(); }
  char* of(int64_t items) {
    if (items > items_) {
      release();
      void* const memory =
          mmap(nullptr, static_cast<size_t>(items * kEach), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory == MAP_FAILED) throw OutOfMemoryError("naru.kernel: no memory for the stacks of {} items. Use fewer threads", items);
      // Use huge pages: items switch so often that one page per stack would overflow the TLB.
      if (items * kBytes * num_threads() <= kMostHuge) madvise(memory, static_cast<size_t>(items * kEach), MADV_HUGEPAGE);
      memory_ = static_cast<char*>(memory), items_ = items;
    }
    return memory_;
  }

 private:
  void release() {
    if (memory_) munmap(memory_, static_cast<size_t>(items_ * kEach));
    memory_ = nullptr, items_ = 0;
  }
  char* memory_ = nullptr;
  int64_t items_ = 0;
};

// Limits: of an item's arrays, if it runs on a thread's stack; of a group's shared arrays, which are in thread-local memory.
constexpr int64_t kFrameOfThread = 256 << 10, kShared = 1 << 20;

// A kernel only computes: it may import libm, and the functions that compilers call for copies and thread-local memory.
void check_library(const std::string& bytes, const std::string& kernel) {
  static const auto& kNeeded = *new const std::set<std::string_view>{"memcpy",
                                                                     "memmove",
                                                                     "memset",
                                                                     "memcmp",
                                                                     "__tls_get_addr",
                                                                     "__stack_chk_fail",
                                                                     "__cxa_finalize",
                                                                     "__gmon_start__",
                                                                     "_ITM_deregisterTMCloneTable",
                                                                     "_ITM_registerTMCloneTable"};
  static void* const mathematics = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
  const auto object = SharedObject::read(bytes);
  if (!object) throw RuntimeError("naru.kernel '{}': what the C compiler has made is no shared library", kernel);
  for (const std::string& name : object->undefined) {
    if (kNeeded.count(name)) continue;
    Dl_info of_name, of_library;
    void* const found = mathematics ? dlsym(mathematics, name.c_str()) : nullptr;
    // (dlsym also searches a library's dependencies.)
    if (found && dladdr(found, &of_name) && dladdr(dlsym(mathematics, "cbrt"), &of_library) && of_name.dli_fbase == of_library.dli_fbase)
      continue;
    throw RuntimeError("naru.kernel '{}': refused the source: it uses '{}', which is no function of kernels (docs/kernels.md)", kernel,
                       name);
  }
  if (object->thread_bytes > kShared)
    throw RuntimeError("naru.kernel '{}': its shared arrays have {} bytes; at most {} are allowed. Use memory of a tensor", kernel,
                       object->thread_bytes, kShared);
}

UserFunction compile(const UserC& kernel) {
  static const auto& compiler = *new const CCompiler(CCompiler::find());
  static const auto& machine = *new const std::string(processor());
  const std::string text = render::c::user_c_text(kernel), &name = kernel.source->kernels()[static_cast<size_t>(kernel.entry)].name;
  runtime::KernelCache& cache = runtime::kernel_cache();
  const std::string key = runtime::KernelCache::key(text, compiler.options(), compiler.name() + "\n" + machine);
  if (const auto kept = cache.find(key)) return load(*kept);
  const int64_t frame = kernel.barriers() ? Stacks::kFrame : kFrameOfThread;
  try {
    const std::string& own = kernel.source->text();
    std::string complete = text;
    if (render::c::has_division(own))
      complete = render::c::with_defined_division(own.find('#') == std::string::npos ? text : compiler.preprocess(text));
    const std::string library = compiler.compile(complete, frame);
    cache.count_compilation();
    check_library(library, name);
    const UserFunction function = load(library);
    cache.store(key, library);
    return function;
  } catch (const CCompiler::Refused& refused) {
    if (refused.log.find("frame-larger-than") != std::string::npos)
      throw RuntimeError(
          "naru.kernel '{}': its items have arrays of their own beyond {} bytes, which kernels{} can't have on the cpu. Use shared arrays, "
          "or memory of a tensor",
          name, frame, kernel.barriers() ? " with barrier()" : "");
    throw RuntimeError(ir::refusal(*kernel.source, name, fmt::format("the C compiler ({})", compiler.name()), refused.log));
  }
}

// True if a run might never end.
bool has_loops(const ir::KernelSource& source) {
  for (size_t i = 0; i < source.tokens().size(); ++i)
    for (const char* word : {"for", "while", "do", "goto"})
      if (source.word(i) == word) return true;
  return false;
}

struct Function {
  UserFunction run = nullptr;
  bool loops = false;
};

Function function_of(const ir::UserKernel& k) {
  struct Known {
    std::mutex mutex;
    std::map<std::pair<uint64_t, int64_t>, Function> functions;  // by kernel, and size of its open array in bytes
  };
  static auto* const known = [] {
    auto* made = new Known;
    runtime::hold_at_fork(made->mutex);
    return made;
  }();
  const bool wide = render::c::is_wide(k);
  const uint64_t key = k.source->id() << 16 | static_cast<uint64_t>(k.entry) << 1 | static_cast<uint64_t>(wide);
  const std::lock_guard lock(known->mutex);
  Function& f = known->functions[{key, k.shared}];
  if (!f.run) f = {compile({k.source, k.entry, wide, k.shared}), has_loops(*k.source)};
  return f;
}

}  // namespace

void compile(const ir::UserKernel& k) { function_of(k); }
void cancel_kernels_of(std::thread::id owner) { KernelJob::cancel_of(owner); }

void run(const ir::UserKernel& k) {
  const ir::KernelEntry& entry = k.source->kernels()[static_cast<size_t>(k.entry)];
  std::array<int64_t, 3> threads = k.threads;
  // If items can't see their groups, choose groups that suit the loops.
  if (!entry.groups) threads = {std::clamp<int64_t>(k.items[0], 1, 4096), 1, 1};
  int64_t geometry[9], groups = 1;
  for (size_t d = 0; d < 3; ++d) {
    geometry[d] = k.items[d], geometry[3 + d] = threads[d];
    geometry[6 + d] = (k.items[d] + threads[d] - 1) / threads[d];
    groups *= geometry[6 + d];
  }
  const Function function = function_of(k);
  const int64_t items = threads[0] * threads[1] * threads[2];
  const auto some = [&](KernelJob* job, int64_t first, int64_t last) {
    char* const memory = entry.barriers ? per_thread<Stacks>().of(items) : nullptr;
    volatile int torn = 0;
    const auto call = [&] { torn = function.run(k.memory.data(), k.numbers.data(), geometry, first, last, memory, Stacks::kBytes); };
    if (!job)
      call();
    else if (!job->run(call))
      throw runtime::Interrupted(fmt::format("naru.kernel '{}' was interrupted in the middle of its work (Ctrl-C)", entry.name));
    if (torn)
      throw RuntimeError(
          "naru.kernel '{}': some items of a group met a barrier() that others did not. Let all items of a group pass every barrier(), "
          "outside of conditions that differ between them",
          entry.name);
  };
  // Small work is not worth handing to other threads.
  const int64_t pieces = groups * items < 16384 && !entry.barriers ? 1 : std::min<int64_t>(groups, int64_t{8} * num_threads());
  const auto all = [&](KernelJob* job) {
    if (pieces <= 1) return some(job, 0, groups);
    parallel_for(pieces, [&](int64_t i) { some(job, groups * i / pieces, groups * (i + 1) / pieces); });
  };
  if (!function.loops) return all(nullptr);
  // The kernel may never end by itself.
  KernelJob job(std::this_thread::get_id());
  const runtime::InterruptWatch watch;
  if (!watch.active()) return all(&job);
  run_on_helper_thread([&] { all(&job); },
                       [&] {
                         if (watch.interrupted()) job.cancel();
                       },
                       runtime::kInterruptMilliseconds);
}

}  // namespace naru::cpu
