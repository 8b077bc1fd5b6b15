// Objective-C's run time, the little that naru uses of Foundation, and Metal, for tests on machines that are not Apple's. It is as strict as they may be:
//   - a message that its receiver's class does not know, a message to an object that is gone, one reference too many given back, an object that is left to a
//     pool where there is none: each ends the process, and says why;
//   - so does what Metal forbids: two encoders at once, work in a command buffer after its end, one committed twice or waited for before, a kernel with an
//     argument that was not set, arguments beyond Metal's limits;
//   - work runs when it is waited for, or bit by bit each second time its state is asked for;
//   - memory that was given back is not there any more.
// Kernels' texts are compiled by the machine's own compiler, with metal_stdlib.h. What the machine has:
//   NARU_FAKE_METAL       devices: name|family|MiB|unified, separated by ";" (default: "Apple M3|1009|2048|1")
//   NARU_FAKE_METAL_NIL   selector@N: from the N-th time on that message gives null
//   NARU_FAKE_METAL_END   code@N: the N-th command buffer of the process ends with that error
//   NARU_FAKE_METAL_WRONG 1: kernels write nothing
//   NARU_FAKE_METAL_FLUSH 1: kernels flush denormal numbers, as Apple's GPUs may
//   NARU_FAKE_MPS_NONE    1: MetalPerformanceShaders do not support the devices
//   NARU_FAKE_MPS_LOG     a file: a line for each product that MPSMatrixMultiplication encodes
// MPSMatrixMultiplication sums in float64 and rounds once, so that its bits are not those of a chain in float32.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <regex>
#include <set>
#include <type_traits>
#include <vector>

#include "block.h"
#include "host_compiler.h"
#include "metal_objects.h"
#include "numbers.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Word = unsigned long;
struct Size {
  Word width, height, depth;
};

struct String : Of<String> {
  static constexpr const char* kName = "NSString";
  std::string text;
  explicit String(std::string t) : text(std::move(t)) {}
};
id string(const std::string& text) { return autoreleased(new String(text)); }
struct Array : Of<Array> {
  static constexpr const char* kName = "NSArray";
  std::vector<id> elements;
  void end() override {
    for (id e : elements) release(e);
  }
};
struct Error : Of<Error> {
  static constexpr const char* kName = "NSError";
  long code;
  std::string text;
  Error(long c, std::string t) : code(c), text(std::move(t)) {}
};
struct Process : Of<Process> {
  static constexpr const char* kName = "NSProcessInfo";
};
struct Architecture : Of<Architecture> {
  static constexpr const char* kName = "MTLArchitecture";
};

struct Device : Of<Device> {
  static constexpr const char* kName = "MTLDevice";
  std::string name;
  long family = 0;
  size_t memory = 0, used = 0;
  bool unified = false;
};
struct Buffer : Of<Buffer> {
  static constexpr const char* kName = "MTLBuffer";
  Device* device;
  size_t bytes, mapped;
  char* memory;
  Buffer(Device* d, size_t n) : device(d), bytes(n), mapped((n + 16383) / 16384 * 16384) {
    memory = static_cast<char*>(mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    device->used += bytes;
    memset(memory, 0xA5, bytes);  // what memory holds at first is anything
  }
  void end() override {
    device->used -= bytes;
    munmap(memory, mapped);
  }
};
struct Options : Of<Options> {
  static constexpr const char* kName = "MTLCompileOptions";
  bool fast = true;
  long mode = 2, functions = 0;
};
struct Library : Of<Library> {
  static constexpr const char* kName = "MTLLibrary";
  void* code = nullptr;
};
struct Place {
  unsigned item, group;
  void (*barrier)();
};
struct Function : Of<Function> {
  static constexpr const char* kName = "MTLFunction";
  void (*entry)(void**);
  Place* place;
  bool barriers;
  unsigned buffers;  // a bit for each that the kernel has
};
struct Pipeline : Of<Pipeline> {
  static constexpr const char* kName = "MTLComputePipelineState";
  Function* function;
  void end() override { release(function); }
};
struct SharedEvent : Of<SharedEvent> {
  static constexpr const char* kName = "MTLSharedEvent";
  uint64_t value = 0;
};

constexpr size_t kMostBuffers = 31;
struct Argument {
  Buffer* buffer = nullptr;
  size_t offset = 0;
  std::vector<char> bytes;
  bool set = false;
};
struct Command {
  enum Kind { Kernel, Signal, Wait, Product } kind;
  SharedEvent* event = nullptr;
  uint64_t value = 0;
  Pipeline* pipeline = nullptr;
  std::vector<Argument> arguments{};
  Size groups{}, threads{};
  std::function<void()> work{};
};

struct Queue;
struct Commands : Of<Commands> {
  static constexpr const char* kName = "MTLCommandBuffer";
  Queue* queue;
  std::vector<Command> list;
  std::vector<id> kept;
  size_t done = 0;
  struct Encoder* open = nullptr;
  bool committed = false, over = false;
  Error* error = nullptr;
  double end_time = 0;
  void keep(id o) { kept.push_back(retain(o)); }
  void forget() {
    for (id o : kept) release(o);
    kept.clear();
  }
  void end() override {
    if (committed && !over) fail("a command buffer is gone before its end");
    forget();
    if (error) release(error);
  }
};
struct Queue : Of<Queue> {
  static constexpr const char* kName = "MTLCommandQueue";
  std::deque<Commands*> waiting;
  static std::set<Queue*>& all() {
    static auto* const queues = new std::set<Queue*>;
    return *queues;
  }
  Queue() { all().insert(this); }
  void end() override {
    if (!waiting.empty()) fail("a command queue is gone before its work is done");
    all().erase(this);
  }
};
struct Encoder : Of<Encoder> {
  static constexpr const char* kName = "MTLComputeCommandEncoder";
  Commands* commands;
  Pipeline* pipeline = nullptr;
  std::vector<Argument> arguments{kMostBuffers};
  bool ended = false;
  void end() override {
    if (!ended) fail("an encoder is gone before endEncoding");
  }
};

Commands* unfinished(id self, const char* what);
}  // namespace
#include "metal_products.h"
namespace {

double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

unsigned control() {
#ifdef __x86_64__
  return __builtin_ia32_stmxcsr();
#else
  return 0;
#endif
}
void set_control([[maybe_unused]] unsigned word) {
#ifdef __x86_64__
  __builtin_ia32_ldmxcsr(word);
#endif
}

void run(Command& c) {
  static auto* const threads = new Block;
  std::vector<void*> pointers;
  for (Argument& a : c.arguments) pointers.push_back(a.buffer ? a.buffer->memory + a.offset : a.bytes.data());
  const Function& f = *c.pipeline->function;
  f.place->barrier = Block::barrier;
  const char* const flush = getenv("NARU_FAKE_METAL_FLUSH");
  const unsigned before = control();
  constexpr unsigned kFlushResults = 0x8000, kFlushOperands = 0x40;
  if (flush && *flush == '1') set_control(before | kFlushResults | kFlushOperands);
  for (f.place->group = 0; f.place->group < c.groups.width; ++f.place->group)
    threads->run(f.entry, pointers.data(), f.place->item, static_cast<unsigned>(c.threads.width), f.barriers);
  set_control(before);
}

// The next command of a queue. False: there is none, or it waits for another queue.
bool advance(Queue* q) {
  if (q->waiting.empty()) return false;
  Commands* const b = q->waiting.front();
  if (b->done < b->list.size()) {
    Command& c = b->list[b->done];
    if (c.kind == Command::Wait && c.event->value < c.value) return false;
    const char* const wrong = getenv("NARU_FAKE_METAL_WRONG");
    if (c.kind == Command::Kernel && !b->error && !(wrong && *wrong == '1')) run(c);
    if (c.kind == Command::Product && !b->error && !(wrong && *wrong == '1')) c.work();
    if (c.kind == Command::Signal && !b->error && c.event->value < c.value) c.event->value = c.value;
    ++b->done;
    return true;
  }
  q->waiting.pop_front();
  b->over = true;
  b->end_time = now();
  b->forget();
  release(b);
  return true;
}
bool advance_any(Queue* first) {
  if (advance(first)) return true;
  for (Queue* q : std::vector<Queue*>(Queue::all().begin(), Queue::all().end()))
    if (advance(q)) return true;
  return false;
}

Encoder* usable(id self, const char* what) {
  auto* const e = static_cast<Encoder*>(self);
  if (e->ended) fail(std::string(what) + " after endEncoding");
  return e;
}
Argument& argument(Encoder* e, Word index) {
  if (index >= kMostBuffers) fail("an argument number " + std::to_string(index) + ", and 30 is the last");
  e->arguments[index] = {};
  e->arguments[index].set = true;
  return e->arguments[index];
}
Commands* unfinished(id self, const char* what) {
  auto* const b = static_cast<Commands*>(self);
  if (b->committed) fail(std::string(what) + " after commit");
  if (b->open) fail(std::string(what) + " while an encoder is open");
  return b;
}

std::vector<id>& devices() {
  static auto* const list = [] {
    auto* const made = new std::vector<id>;
    const char* const text = getenv("NARU_FAKE_METAL");
    std::istringstream all(text ? text : "Apple M3|1009|2048|1");
    for (std::string one; std::getline(all, one, ';');) {
      std::istringstream in(one);
      std::string family, size, unified;
      auto* const d = new Device;
      std::getline(in, d->name, '|'), std::getline(in, family, '|'), std::getline(in, size, '|'), std::getline(in, unified);
      d->family = atol(family.c_str()), d->memory = strtoull(size.c_str(), nullptr, 10) << 20, d->unified = unified == "1";
      made->push_back(d);
    }
    return made;
  }();
  return *list;
}

// --- kernels' texts

// Arrays of a group are shared by its threads, which run on this one.
std::string in_cpp(const std::string& text) {
  static const std::regex shared(R"(\b(LOCAL|threadgroup)(\s+[A-Za-z_][\w ]*?\s+\w+\s*[\[;]))");
  static const std::regex second(R"(NARU_ATOMIC\w*\(threadgroup(, \w+)?\))");  // there is one address space here
  static const std::regex library(R"(#include <metal_stdlib>)");
  return std::regex_replace(std::regex_replace(std::regex_replace(text, shared, "static $2"), second, ""), library, "");
}

// A function that calls a kernel: it takes the addresses of its buffers.
std::string whole(const std::string& text) {
  const std::string body = in_cpp(text);
  std::string all =
      "#include \"" FAKE_METAL_STDLIB "\"\n#line 1 \"program_source\"\n" + body + "\nextern \"C\" { FakePlace fake_place; }\n";
  static const std::regex kernel(R"((?:KERNEL\s*\([^)]*\)|kernel\s+void)\s+(\w+)\s*\(([^{]*)\)\s*\{)");
  static const std::regex parameter(R"(([^,\[]*?)(\w+)\s*\[\[\s*(\w+)\s*(?:\(\s*(\d+)\s*\))?\s*\]\])");
  for (std::sregex_iterator at(body.begin(), body.end(), kernel), end; at != end; ++at) {
    const std::string name = (*at)[1], parameters = (*at)[2];
    if (name == "KERNEL") continue;
    std::string call;
    unsigned buffers = 0;
    for (std::sregex_iterator p(parameters.begin(), parameters.end(), parameter); p != end; ++p) {
      const std::string type = (*p)[1], attribute = (*p)[3], number = (*p)[4];
      call += call.empty() ? "" : ", ";
      if (attribute == "buffer") {
        buffers |= 1u << atoi(number.c_str());
        const bool reference = type.find('&') != std::string::npos;
        std::string of = type;
        of[of.find_last_of(reference ? '&' : '*')] = '*';
        call += std::string(reference ? "*" : "") + "(" + of + ")p[" + number + "]";
      } else if (attribute == "threadgroup_position_in_grid") {
        call += "fake_place.group";
      } else if (attribute == "thread_position_in_threadgroup") {
        call += "fake_place.item";
      } else {
        call += "unknown_attribute_" + attribute;
      }
    }
    const bool barriers =
        body.find("BARRIER;") != std::string::npos || std::regex_search(body, std::regex(R"(\n[^#\n]*threadgroup_barrier)"));
    all += "extern \"C\" void fake_run_" + name + "(void** p) { " + name + "(" + call + "); }\n";
    all += "extern \"C\" { extern const unsigned fake_buffers_" + name + ", fake_barriers_" + name + "; const unsigned fake_buffers_" +
           name + " = " + std::to_string(buffers) + "u, fake_barriers_" + name + " = " + (barriers ? "1" : "0") + "; }\n";
  }
  return all;
}

id compile(id, SEL s, id source, id options, id* error) {
  const Lock lock(mutex());
  check(source, "newLibraryWithSource:options:error:");
  const auto* const o = static_cast<Options*>(options);
  if (!o || o->fast || o->mode != 0 || o->functions != 1) fail("a text is compiled with fast mathematics");
  const std::string& text = static_cast<String*>(source)->text;
  std::string log;
  const std::string path = gives_nil(s) ? "" : host_library(whole(text), text, ".metal", "-std=gnu++14 -ffp-contract=off", log);
  if (path.empty()) {
    *error = autoreleased(new Error(3, log.empty() ? "not today" : log));
    return nullptr;
  }
  auto* const l = new Library;
  l->code = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!l->code) fail(dlerror());
  return l;
}

// --- the methods, with the types of Apple's headers

const bool methods_made = [] {
  METHOD(
      "NSObject", "respondsToSelector:", +[](id self, SEL, SEL s) { return self->isa->methods.count(s->name) != 0; });
  METHOD(
      "NSString", "stringWithUTF8String:", +[](id, SEL, const char* text) { return string(text); }, true);
  METHOD(
      "NSString", "UTF8String", +[](id self, SEL) { return static_cast<String*>(self)->text.c_str(); });
  METHOD(
      "NSArray", "count", +[](id self, SEL) { return static_cast<Word>(static_cast<Array*>(self)->elements.size()); });
  METHOD(
      "NSArray", "objectAtIndex:", +[](id self, SEL, Word i) { return static_cast<Array*>(self)->elements.at(i); });
  METHOD(
      "NSError", "localizedDescription", +[](id self, SEL) { return string(static_cast<Error*>(self)->text); });
  METHOD(
      "NSError", "code", +[](id self, SEL) { return static_cast<Error*>(self)->code; });
  METHOD(
      "NSProcessInfo", "processInfo",
      +[](id, SEL) -> id {
        static id one = new Process;
        return one;
      },
      true);
  METHOD(
      "NSProcessInfo", "operatingSystemVersionString", +[](id, SEL) { return string("Version 15.1 (Build 24B83)"); });

  METHOD(
      "MTLDevice", "name", +[](id self, SEL) { return string(static_cast<Device*>(self)->name); });
  METHOD(
      "MTLDevice", "architecture", +[](id, SEL) { return autoreleased(new Architecture); });
  METHOD(
      "MTLArchitecture", "name", +[](id, SEL) { return string("applegpu_g15g"); });
  METHOD(
      "MTLDevice", "registryID", +[](id, SEL) -> uint64_t { return 0x100000abc; });
  METHOD(
      "MTLDevice", "supportsFamily:", +[](id self, SEL, long family) { return family <= static_cast<Device*>(self)->family; });
  METHOD(
      "MTLDevice", "hasUnifiedMemory", +[](id self, SEL) { return static_cast<Device*>(self)->unified; });
  METHOD(
      "MTLDevice", "recommendedMaxWorkingSetSize", +[](id self, SEL) -> uint64_t { return static_cast<Device*>(self)->memory; });
  METHOD(
      "MTLDevice", "currentAllocatedSize", +[](id self, SEL) -> Word { return static_cast<Device*>(self)->used; });
  METHOD(
      "MTLDevice", "maxBufferLength", +[](id self, SEL) -> Word { return static_cast<Device*>(self)->memory / 2; });
  METHOD(
      "MTLDevice", "maxThreadgroupMemoryLength", +[](id, SEL) -> Word { return 32768; });
  METHOD(
      "MTLDevice", "newCommandQueue", +[](id, SEL s) -> id { return gives_nil(s) ? nullptr : new Queue; });
  METHOD(
      "MTLDevice", "newBufferWithLength:options:", +[](id self, SEL s, Word bytes, Word options) -> id {
        auto* const d = static_cast<Device*>(self);
        if (options != 0) fail("a buffer with options other than shared storage");
        if (bytes == 0 || bytes > d->memory / 2) fail("a buffer of " + std::to_string(bytes) + " bytes");
        return gives_nil(s) ? nullptr : new Buffer(d, bytes);
      });
  METHOD(
      "MTLDevice", "newBufferWithBytes:length:options:", +[](id self, SEL s, const void* from, Word bytes, Word options) -> id {
        if (options != 0 || bytes == 0) fail("a buffer with options other than shared storage, or empty");
        if (gives_nil(s)) return nullptr;
        auto* const b = new Buffer(static_cast<Device*>(self), bytes);
        memcpy(b->memory, from, bytes);
        return b;
      });
  METHOD(
      "MTLDevice", "newSharedEvent", +[](id, SEL s) -> id { return gives_nil(s) ? nullptr : new SharedEvent; });
  METHOD("MTLDevice", "newLibraryWithSource:options:error:", compile);
  METHOD(
      "MTLDevice", "newComputePipelineStateWithFunction:error:", +[](id, SEL s, id function, id* error) -> id {
        check(function, "newComputePipelineStateWithFunction:error:");
        if (gives_nil(s)) {
          *error = autoreleased(new Error(2, "too much threadgroup memory"));
          return nullptr;
        }
        auto* const p = new Pipeline;
        p->function = static_cast<Function*>(retain(function));
        return p;
      });
  METHOD(
      "MTLBuffer", "contents", +[](id self, SEL) -> void* { return static_cast<Buffer*>(self)->memory; });
  METHOD(
      "MTLCompileOptions", "new", +[](id, SEL) -> id { return new Options; }, true);
  METHOD(
      "MTLCompileOptions", "setFastMathEnabled:", +[](id self, SEL, bool on) { static_cast<Options*>(self)->fast = on; });
  METHOD(
      "MTLCompileOptions", "setMathMode:", +[](id self, SEL, long mode) { static_cast<Options*>(self)->mode = mode; });
  METHOD(
      "MTLCompileOptions",
      "setMathFloatingPointFunctions:", +[](id self, SEL, long which) { static_cast<Options*>(self)->functions = which; });
  METHOD(
      "MTLLibrary", "newFunctionWithName:", +[](id self, SEL s, id name) -> id {
        const std::string k = static_cast<String*>(name)->text;
        const auto find = [&](const std::string& symbol) { return dlsym(static_cast<Library*>(self)->code, symbol.c_str()); };
        void* const entry = find("fake_run_" + k);
        if (!entry || gives_nil(s)) return nullptr;
        auto* const f = new Function;
        f->entry = reinterpret_cast<void (*)(void**)>(entry);
        f->place = static_cast<Place*>(find("fake_place"));
        f->buffers = *static_cast<const unsigned*>(find("fake_buffers_" + k));
        f->barriers = *static_cast<const unsigned*>(find("fake_barriers_" + k)) != 0;
        return f;
      });
  METHOD(
      "MTLComputePipelineState", "maxTotalThreadsPerThreadgroup", +[](id, SEL) -> Word { return 1024; });
  METHOD(
      "MTLSharedEvent", "setSignaledValue:", +[](id self, SEL, uint64_t value) {
        auto* const e = static_cast<SharedEvent*>(self);
        if (e->value < value) e->value = value;
      });

  METHOD(
      "MTLCommandQueue", "commandBuffer", +[](id self, SEL s) -> id {
        if (gives_nil(s)) return nullptr;
        auto* const b = new Commands;
        b->queue = static_cast<Queue*>(self);
        b->keep(self);
        return autoreleased(b);
      });
  METHOD(
      "MTLCommandBuffer", "computeCommandEncoder", +[](id self, SEL) -> id {
        Commands* const b = unfinished(self, "computeCommandEncoder");
        auto* const e = new Encoder;
        e->commands = b;
        b->open = e;
        return autoreleased(e);
      });
  METHOD(
      "MTLCommandBuffer", "encodeSignalEvent:value:", +[](id self, SEL, id event, uint64_t value) {
        Commands* const b = unfinished(self, "encodeSignalEvent:value:");
        check(event, "encodeSignalEvent:value:");
        b->keep(event);
        b->list.push_back({Command::Signal, static_cast<SharedEvent*>(event), value});
      });
  METHOD(
      "MTLCommandBuffer", "encodeWaitForEvent:value:", +[](id self, SEL, id event, uint64_t value) {
        Commands* const b = unfinished(self, "encodeWaitForEvent:value:");
        check(event, "encodeWaitForEvent:value:");
        b->keep(event);
        b->list.push_back({Command::Wait, static_cast<SharedEvent*>(event), value});
      });
  METHOD(
      "MTLCommandBuffer", "commit", +[](id self, SEL) {
        Commands* const b = unfinished(self, "commit");
        b->committed = true;
        static int count = 0;
        ++count;
        long code = 0;
        int number = 0;
        const char* const text = getenv("NARU_FAKE_METAL_END");
        if (text && sscanf(text, "%ld@%d", &code, &number) == 2 && number == count)
          b->error = new Error(
              code, code == 8 ? "Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)" : "Caused GPU Timeout Error");
        b->queue->waiting.push_back(static_cast<Commands*>(retain(b)));
      });
  METHOD(
      "MTLCommandBuffer", "waitUntilCompleted", +[](id self, SEL) {
        auto* const b = static_cast<Commands*>(self);
        if (!b->committed) fail("waitUntilCompleted before commit");
        while (!b->over)
          if (!advance_any(b->queue)) fail("a wait that never ends: command buffers wait for each other");
      });
  METHOD(
      "MTLCommandBuffer", "status", +[](id self, SEL) -> Word {
        auto* const b = static_cast<Commands*>(self);
        static bool turn = false;
        if (b->committed && !b->over && (turn = !turn)) advance_any(b->queue);
        return !b->committed ? 0 : !b->over ? 3 : b->error ? 5 : 4;
      });
  METHOD(
      "MTLCommandBuffer", "error", +[](id self, SEL) -> id { return static_cast<Commands*>(self)->error; });
  METHOD(
      "MTLCommandBuffer", "GPUEndTime", +[](id self, SEL) { return static_cast<Commands*>(self)->end_time; });

  METHOD(
      "MTLComputeCommandEncoder", "setComputePipelineState:", +[](id self, SEL, id pipeline) {
        check(pipeline, "setComputePipelineState:");
        usable(self, "setComputePipelineState:")->pipeline = static_cast<Pipeline*>(pipeline);
      });
  METHOD(
      "MTLComputeCommandEncoder", "setBuffer:offset:atIndex:", +[](id self, SEL, id buffer, Word offset, Word index) {
        Encoder* const e = usable(self, "setBuffer:offset:atIndex:");
        Argument& a = argument(e, index);
        if (!buffer) return;
        check(buffer, "setBuffer:offset:atIndex:");
        a.buffer = static_cast<Buffer*>(buffer), a.offset = offset;
        if (offset >= a.buffer->bytes) fail("an offset beyond a buffer's end");
        e->commands->keep(buffer);
      });
  METHOD(
      "MTLComputeCommandEncoder", "setBytes:length:atIndex:", +[](id self, SEL, const void* bytes, Word length, Word index) {
        if (length == 0 || length > 4096) fail("setBytes with " + std::to_string(length) + " bytes");
        const auto* const from = static_cast<const char*>(bytes);
        argument(usable(self, "setBytes:length:atIndex:"), index).bytes.assign(from, from + length);
      });
  METHOD(
      "MTLComputeCommandEncoder", "dispatchThreadgroups:threadsPerThreadgroup:", +[](id self, SEL, Size groups, Size threads) {
        Encoder* const e = usable(self, "dispatchThreadgroups:threadsPerThreadgroup:");
        if (!e->pipeline) fail("a dispatch without a pipeline");
        if (groups.width == 0 || groups.height != 1 || groups.depth != 1) fail("a dispatch of no groups, or in more than one dimension");
        if (threads.width == 0 || threads.width > 1024 || threads.height != 1 || threads.depth != 1)
          fail("a dispatch with groups of no size");
        for (size_t i = 0; i < kMostBuffers; ++i)
          if ((e->pipeline->function->buffers >> i & 1) && !e->arguments[i].set)
            fail("argument " + std::to_string(i) + " of a kernel is not set");
        e->commands->keep(e->pipeline);
        Command c{Command::Kernel, nullptr, 0, e->pipeline, e->arguments, groups, threads};
        e->commands->list.push_back(std::move(c));
      });
  METHOD(
      "MTLComputeCommandEncoder", "endEncoding", +[](id self, SEL) {
        Encoder* const e = usable(self, "endEncoding");
        e->ended = true;
        e->commands->open = nullptr;
      });

  METHOD(
      "MPSMatrixDescriptor", "matrixDescriptorWithRows:columns:matrices:rowBytes:matrixBytes:dataType:",
      +[](id, SEL, Word rows, Word columns, Word matrices, Word row_bytes, Word matrix_bytes, unsigned type) -> id {
        auto* const d = new MatrixDescriptor;
        d->rows = rows, d->columns = columns, d->matrices = matrices, d->row_bytes = row_bytes, d->matrix_bytes = matrix_bytes,
        d->type = type;
        if (type != kFloat16 && type != kFloat32) fail("a matrix of an unknown type");
        if (!rows || !columns || !matrices || row_bytes % d->item() || row_bytes < columns * d->item()) fail("a matrix whose rows overlap");
        if (matrix_bytes % row_bytes || matrix_bytes < rows * row_bytes) fail("matrices that overlap, or are no whole rows apart");
        return autoreleased(d);
      },
      true);
  METHOD(
      "MPSMatrix", "alloc", +[](id, SEL) -> id { return new Matrix; }, true);
  METHOD(
      "MPSMatrix", "initWithBuffer:offset:descriptor:", +[](id self, SEL s, id buffer, Word offset, id descriptor) -> id {
        auto* const m = static_cast<Matrix*>(self);
        check(buffer, "initWithBuffer:offset:descriptor:"), check(descriptor, "initWithBuffer:offset:descriptor:");
        if (gives_nil(s)) return release(self), nullptr;
        m->buffer = static_cast<Buffer*>(retain(buffer)), m->descriptor = static_cast<MatrixDescriptor*>(retain(descriptor));
        m->offset = offset;
        if (offset % m->descriptor->item() || offset + m->descriptor->bytes() > m->buffer->bytes) fail("a matrix beyond its buffer");
        return m;
      });
  METHOD(
      "MPSMatrixMultiplication", "alloc", +[](id, SEL) -> id { return new Multiplication; }, true);
  METHOD(
      "MPSMatrixMultiplication", "initWithDevice:transposeLeft:transposeRight:resultRows:resultColumns:interiorColumns:alpha:beta:",
      +[](id self, SEL s, id device, bool left, bool right, Word rows, Word columns, Word interior, double alpha, double beta) -> id {
        auto* const k = static_cast<Multiplication*>(self);
        check(device, "initWithDevice:");
        if (gives_nil(s)) return release(self), nullptr;
        if (!rows || !columns || !interior || alpha != 1 || beta != 0) fail("a product of no size, or scaled");
        k->left_transposed = left, k->right_transposed = right, k->rows = rows, k->columns = columns, k->interior = interior;
        k->alpha = alpha, k->beta = beta, k->made = true;
        return k;
      });
  METHOD(
      "MPSMatrixMultiplication", "setBatchSize:", +[](id self, SEL, Word batch) { static_cast<Multiplication*>(self)->batch = batch; });
  METHOD(
      "MPSMatrixMultiplication", "encodeToCommandBuffer:leftMatrix:rightMatrix:resultMatrix:",
      +[](id self, SEL, id commands, id left, id right, id result) { multiply(self, commands, left, right, result); });
  return true;
}();

}  // namespace

// Called by objc_msgSend below, with the registers kept: the function of a message.
extern "C" __attribute__((visibility("hidden"), used)) void* fake_method(id receiver, SEL selector) {
  const Lock lock(mutex());
  check(receiver, selector->name.c_str());
  const bool of_class = is_class(receiver);
  const Class* const c = of_class ? static_cast<Class*>(receiver) : receiver->isa;
  const auto& methods = of_class ? c->of_class : c->methods;
  if (const auto at = methods.find(selector->name); at != methods.end()) return at->second.function;
  const auto& base = class_named("NSObject")->methods;
  if (const auto at = base.find(selector->name); at != base.end() && !of_class) return at->second.function;
  fail((of_class ? "the class " : "a ") + c->name + " does not know " + selector->name);
}

#ifdef __x86_64__
asm(R"(
.text
.globl objc_msgSend
.type objc_msgSend, @function
objc_msgSend:
  pushq %rbp
  movq %rsp, %rbp
  pushq %rdi
  pushq %rsi
  pushq %rdx
  pushq %rcx
  pushq %r8
  pushq %r9
  subq $16, %rsp
  movsd %xmm0, (%rsp)
  movsd %xmm1, 8(%rsp)
  call fake_method
  movq %rax, %r11
  movsd (%rsp), %xmm0
  movsd 8(%rsp), %xmm1
  addq $16, %rsp
  popq %r9
  popq %r8
  popq %rcx
  popq %rdx
  popq %rsi
  popq %rdi
  popq %rbp
  jmp *%r11
.size objc_msgSend, .-objc_msgSend
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl objc_msgSend
.type objc_msgSend, %function
objc_msgSend:
  stp x29, x30, [sp, #-96]!
  mov x29, sp
  stp x0, x1, [sp, #16]
  stp x2, x3, [sp, #32]
  stp x4, x5, [sp, #48]
  stp x6, x7, [sp, #64]
  stp d0, d1, [sp, #80]
  bl fake_method
  mov x16, x0
  ldp d0, d1, [sp, #80]
  ldp x0, x1, [sp, #16]
  ldp x2, x3, [sp, #32]
  ldp x4, x5, [sp, #48]
  ldp x6, x7, [sp, #64]
  ldp x29, x30, [sp], #96
  br x16
.size objc_msgSend, .-objc_msgSend
)");
#endif

EXPORT id objc_getClass(const char* name) {
  const Lock lock(mutex());
  const auto at = classes().find(name);
  return at == classes().end() ? nullptr : at->second;
}
EXPORT SEL sel_registerName(const char* name) {
  const Lock lock(mutex());
  static auto* const all = new std::map<std::string, SEL>;
  SEL& s = (*all)[name];
  if (!s) s = new Selector{name};
  return s;
}
EXPORT id objc_retain(id o) {
  const Lock lock(mutex());
  return retain(o);
}
EXPORT void objc_release(id o) {
  const Lock lock(mutex());
  release(o);
}
EXPORT void* objc_autoreleasePoolPush() {
  pools().emplace_back();
  return reinterpret_cast<void*>(pools().size());
}
EXPORT void objc_autoreleasePoolPop(void* pool) {
  const Lock lock(mutex());
  if (reinterpret_cast<size_t>(pool) != pools().size()) fail("pools end in another order than they began");
  const std::vector<id> left = std::move(pools().back());
  pools().pop_back();
  for (id o : left) release(o);
}
EXPORT bool MPSSupportsMTLDevice(id device) {
  const Lock lock(mutex());
  check(device, "MPSSupportsMTLDevice");
  const char* const none = getenv("NARU_FAKE_MPS_NONE");
  return !(none && *none == '1');
}
EXPORT id MTLCopyAllDevices() {
  const Lock lock(mutex());
  auto* const list = new Array;
  for (id d : devices()) list->elements.push_back(retain(d));
  return list;
}

// For tests: how many objects of a class there are; the types of a message, "" if no class knows it.
EXPORT int fake_metal_alive(const char* name) {
  const Lock lock(mutex());
  return alive()[name];
}
EXPORT const char* fake_metal_types(const char* selector) {
  const Lock lock(mutex());
  for (const auto& [name, c] : classes())
    for (const auto* methods : {&c->methods, &c->of_class})
      if (const auto at = methods->find(selector); at != methods->end()) return at->second.encoding.c_str();
  return "";
}
