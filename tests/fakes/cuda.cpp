/* A CUDA driver for tests, on a machine without a GPU: gpu.c says which devices there are; this adds contexts, memory, streams, events and kernels
   (those that the fake NVRTC beside it made), with results as true as the machine's C++ compiler makes them. It is as unkind as a driver may be:
     - a device's memory lies at addresses at which the host faults;
     - work is done as late as allowed: when somebody waits for it, or (one step) asks whether it is done. Page-locked memory is read and written then;
     - each call wants a current context, of the device that its stream and events belong to;
     - in a capture nothing may be waited for or be asked of the stream, and pageable memory is refused: 900, and the capture is void (901);
     - an address of another device, of the host, or beyond an allocation ends the context: all later calls fail with 700.
   Besides what gpu.c reads from the environment:
     NARU_FAKE_ERROR    "cuMemAlloc_v2=2@3": only the third call fails
     NARU_FAKE_FAULT    D: a kernel that runs on device D ends with 719, and the context with it
     NARU_FAKE_NO_PEER  devices can't reach one another's memory */
#include <dlfcn.h>
#include <setjmp.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

extern "C" int fake_called(const char* function);
extern "C" size_t fake_gpu_bytes(int device);
extern "C" int fake_gpu_capability(int device);
extern "C" int fake_gpu_of_pci(const char* pci);

struct Three {
  unsigned x, y, z;
};
// What a kernel's text sees besides its parameters; see nvrtc.cpp.
struct Names {
  Three thread, block, threads, blocks;
  void (*barrier)();
  void* (*translate)(void*);
};

namespace {

enum {
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinary = 209,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kPeerEnabled = 704,
  kPeerNotEnabled = 705,
  kLaunchFailed = 719,
  kCaptureUnsupported = 900,
  kCaptureInvalidated = 901,
  kCaptureUnmatched = 903,
  kCaptureIsolation = 905,
  kCapturedEvent = 907
};

using Address = unsigned long long;
constexpr int kShift = 56;

struct Context;

struct Event {
  Context* context;
  bool timing = false, recorded = false, done = true, captured = false;
  struct Stream* stream = nullptr;
  double time = 0;
  int awaited = 0;  // pieces of work still to be done that look at it
  bool destroyed = false;
};
using Work = std::vector<std::function<void()>>;
struct Stream {
  Context* context;
  std::deque<std::function<void()>> work;
  std::shared_ptr<Work> captured;  // in a capture
  bool spoiled = false;            // by what may not be done in one
};
struct Graph {
  Context* context;
  std::shared_ptr<Work> work;
};
struct Module {
  Context* context;
  void* library;
};
struct Function {
  Context* context;
  void (*entry)(void**);      // runs one thread
  void (*translate)(void**);  // makes the addresses among the arguments those of the host
  void (*sizes)(size_t*);     // of the arguments; 0 ends them
  Names* names;
  bool barriers;
};
struct Context {
  explicit Context(int d) : device(d) {}
  int device;
  int broken = 0;
  size_t used = 0;
  std::map<Address, size_t> memory;  // by the host's address
  std::set<Stream*> streams;
  std::set<Context*> peers;
  std::set<void*> kept;  // events, modules, functions, graphs: what is not given back lives as long as the context
};
template <class T>
T* keep(T* made) {
  made->context->kept.insert(made);
  return made;
}
template <class T>
void drop(T* kept) {
  kept->context->kept.erase(kept);
  delete kept;
}

std::recursive_mutex mutex;
// As long as the process.
auto& contexts = *new std::map<int, std::unique_ptr<Context>>;
auto& pinned = *new std::map<char*, size_t>;
bool initialised = false;
pid_t process = 0;
double now = 0;  // steps of work done: a clock that only work moves
thread_local std::vector<Context*> stack;

Context* current() { return stack.empty() ? nullptr : stack.back(); }

Address tag(int device) { return (Address{0x40} | static_cast<Address>(device)) << kShift; }

// The host's address of `bytes` bytes of the device; null for any other address.
char* host(Context* c, Address a, size_t bytes) {
  const Address h = a - tag(c->device);
  auto at = c->memory.upper_bound(h);
  if (at == c->memory.begin()) return nullptr;
  --at;
  return h >= at->first && h + bytes <= at->first + at->second ? reinterpret_cast<char*>(h) : nullptr;
}

bool is_pinned(const void* p, size_t bytes) {
  auto* const c = static_cast<char*>(const_cast<void*>(p));
  auto at = pinned.upper_bound(c);
  if (at == pinned.begin()) return false;
  --at;
  return c + bytes <= at->first + at->second;
}

bool step(Stream* s) {
  if (s->work.empty()) return false;
  const auto work = std::move(s->work.front());
  s->work.pop_front();
  ++now;
  if (!s->context->broken) work();
  return true;
}
void finish(Stream* s) {
  while (step(s)) {
  }
}
void finish(Context* c) {
  for (Stream* s : c->streams) finish(s);
}

// Every call: what it is to fail with, if anything.
int begin(const char* name, bool needs_context = true) {
  if (const int code = fake_called(name)) return code;
  if (!initialised || getpid() != process) return kNotInitialized;
  if (!needs_context) return 0;
  if (!current()) return kInvalidContext;
  return current()->broken;
}
#define BEGIN(name, ...)                                   \
  const std::lock_guard<std::recursive_mutex> lock(mutex); \
  if (const int code = begin(#name, ##__VA_ARGS__)) return code

int give(Stream* s, std::function<void()> work) {
  if (s->context != current()) return kInvalidHandle;
  if (s->captured && s->spoiled) return kCaptureInvalidated;
  if (s->captured)
    s->captured->push_back(std::move(work));
  else
    s->work.push_back(std::move(work));
  return 0;
}
// The same, of work that looks at an event, which lives until that is done.
int give(Stream* s, Event* e, std::function<void()> work) {
  const int code = give(s, [e, work = std::move(work)] {
    work();
    if (--e->awaited == 0 && e->destroyed) drop(e);
  });
  if (code == 0) ++e->awaited;
  return code;
}
// Whether a capture is spoiled by a call that may not be made in one.
bool spoils(Stream* s) {
  if (!s->captured) return false;
  s->spoiled = true;
  return true;
}

// --- kernels ---------------------------------------------------------------------------------------------------------

// The threads of a block, one stack each; they take turns at barriers.
class Block {
 public:
  static constexpr size_t kStack = size_t{64} << 10;

  void run(const Function& f, void** parameters, unsigned threads) {
    if (!f.barriers) {
      for (f.names->thread.x = 0; f.names->thread.x < threads; ++f.names->thread.x) f.entry(parameters);
      return;
    }
    active = this;
    function_ = &f;
    parameters_ = parameters;
    fibers_.resize(threads);
    for (Fiber& fiber : fibers_) {
      if (!fiber.stack) fiber.stack.reset(new char[kStack]);
      fiber.started = fiber.over = false;
    }
    for (unsigned left = threads; left > 0;)
      for (unsigned i = 0; i < threads; ++i) {
        if (fibers_[i].over) continue;
        resume(i);
        if (fibers_[i].over) --left;
      }
  }
  static void barrier() {
    Fiber& f = active->fibers_[active->turn_];
    if (_setjmp(f.place) == 0) _longjmp(active->back_, 1);
  }

 private:
  struct Fiber {
    std::unique_ptr<char[]> stack;
    jmp_buf place;
    bool started = false, over = false;
  };
  void resume(unsigned i) {
    turn_ = i;
    function_->names->thread.x = i;
    if (_setjmp(back_) != 0) return;
    Fiber& f = fibers_[i];
    if (f.started) _longjmp(f.place, 1);
    f.started = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = f.stack.get();
    context.uc_stack.ss_size = kStack;
    context.uc_link = nullptr;
    makecontext(&context, reinterpret_cast<void (*)()>(enter), 0);
    setcontext(&context);
  }
  static void enter() {
    Block* const b = active;
    b->function_->entry(b->parameters_);
    b->fibers_[b->turn_].over = true;
    _longjmp(b->back_, 1);
  }
  static Block* active;
  std::vector<Fiber> fibers_;
  const Function* function_ = nullptr;
  void** parameters_ = nullptr;
  unsigned turn_ = 0;
  jmp_buf back_;
};
Block* Block::active = nullptr;

Context* running = nullptr;
bool strayed = false;
void* translate(void* p) {
  if (!p) return p;
  char* const h = host(running, reinterpret_cast<Address>(p), 1);
  if (!h) strayed = true;
  return h;
}

void run_kernel(Context* c, const Function& f, Three grid, Three block, std::vector<std::vector<char>> arguments) {
  const char* fault = getenv("NARU_FAKE_FAULT");
  if (fault && *fault && atoi(fault) == c->device) {
    c->broken = kLaunchFailed;
    return;
  }
  running = c;
  strayed = false;
  static auto* const threads = new Block;
  std::vector<void*> parameters;
  for (std::vector<char>& a : arguments) parameters.push_back(a.data());
  f.names->threads = block, f.names->blocks = grid;
  f.names->thread = f.names->block = {0, 0, 0};
  f.names->barrier = Block::barrier, f.names->translate = translate;
  f.translate(parameters.data());
  if (!strayed)
    for (; f.names->block.x < grid.x; ++f.names->block.x) threads->run(f, parameters.data(), block.x);
  if (strayed) c->broken = kIllegalAddress;
}

}  // namespace

// --- the driver's functions ------------------------------------------------------------------------------------------

extern "C" void fake_initialised() {
  initialised = true;
  process = getpid();
}
extern "C" int fake_unusable(int at_init) { return (initialised ? getpid() != process : !at_init) ? kNotInitialized : 0; }

EXPORT int cuDeviceGetByPCIBusId(int* device, const char* pci) {
  BEGIN(cuDeviceGetByPCIBusId, false);
  *device = fake_gpu_of_pci(pci);
  return *device < 0 ? 101 : 0;
}
EXPORT int cuDevicePrimaryCtxRetain(Context** context, int device) {
  BEGIN(cuDevicePrimaryCtxRetain, false);
  auto& c = contexts[device];
  if (!c) c.reset(new Context(device));
  *context = c.get();
  return 0;
}
EXPORT int cuCtxPushCurrent_v2(Context* c) {
  if (!c) return kInvalidContext;
  stack.push_back(c);
  return 0;
}
EXPORT int cuCtxPopCurrent_v2(Context** c) {
  if (stack.empty()) return kInvalidContext;
  *c = stack.back();
  stack.pop_back();
  return 0;
}
EXPORT int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  BEGIN(cuDeviceCanAccessPeer, false);
  *can = device != peer && !getenv("NARU_FAKE_NO_PEER");
  return 0;
}
EXPORT int cuCtxEnablePeerAccess(Context* peer, unsigned flags) {
  BEGIN(cuCtxEnablePeerAccess);
  if (flags != 0 || peer == current()) return kInvalidValue;
  return current()->peers.insert(peer).second ? 0 : kPeerEnabled;
}

EXPORT int cuMemGetInfo_v2(size_t* available, size_t* total) {
  BEGIN(cuMemGetInfo_v2);
  *total = fake_gpu_bytes(current()->device);
  *available = *total - current()->used;
  return 0;
}
EXPORT int cuMemAlloc_v2(Address* address, size_t bytes) {
  BEGIN(cuMemAlloc_v2);
  Context* const c = current();
  if (bytes == 0) return kInvalidValue;
  if (bytes > fake_gpu_bytes(c->device) - c->used) return kOutOfMemory;
  void* const memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!memory) return kOutOfMemory;
  memset(memory, 0xcd, bytes);  // so that nobody counts on zeros
  c->used += bytes;
  c->memory[reinterpret_cast<Address>(memory)] = bytes;
  *address = reinterpret_cast<Address>(memory) + tag(c->device);
  return 0;
}
EXPORT int cuMemFree_v2(Address address) {
  BEGIN(cuMemFree_v2);
  Context* const c = current();
  const auto at = c->memory.find(address - tag(c->device));
  if (at == c->memory.end()) return kInvalidValue;
  finish(c);
  c->used -= at->second;
  free(reinterpret_cast<void*>(at->first));
  c->memory.erase(at);
  return 0;
}
EXPORT int cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  BEGIN(cuMemHostAlloc);
  if (flags != 1) return kInvalidValue;  // naru's is page-locked for all devices
  *memory = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!*memory) return kOutOfMemory;
  pinned[static_cast<char*>(*memory)] = bytes;
  return 0;
}
EXPORT int cuMemFreeHost(void* memory) {
  BEGIN(cuMemFreeHost);
  if (!pinned.erase(static_cast<char*>(memory))) return kInvalidValue;
  for (auto& c : contexts) finish(c.second.get());
  free(memory);
  return 0;
}

// Page-locked memory is read and written when the stream gets there; other memory before the call returns.
EXPORT int cuMemcpyHtoDAsync_v2(Address target, const void* source, size_t bytes, Stream* s) {
  BEGIN(cuMemcpyHtoDAsync_v2);
  Context* const c = current();
  if (!is_pinned(source, bytes) && spoils(s)) return kCaptureUnsupported;
  const int code = give(s, [=] {
    char* const to = host(c, target, bytes);
    if (!to)
      c->broken = kIllegalAddress;
    else
      memcpy(to, source, bytes);
  });
  if (code == 0 && !is_pinned(source, bytes)) finish(s);
  return code ? code : c->broken;
}
EXPORT int cuMemcpyDtoHAsync_v2(void* target, Address source, size_t bytes, Stream* s) {
  BEGIN(cuMemcpyDtoHAsync_v2);
  Context* const c = current();
  if (!is_pinned(target, bytes) && spoils(s)) return kCaptureUnsupported;
  const int code = give(s, [=] {
    const char* const from = host(c, source, bytes);
    if (!from)
      c->broken = kIllegalAddress;
    else
      memcpy(target, from, bytes);
  });
  if (code == 0 && !is_pinned(target, bytes)) finish(s);
  return code ? code : c->broken;
}
EXPORT int cuMemcpyDtoDAsync_v2(Address target, Address source, size_t bytes, Stream* s) {
  BEGIN(cuMemcpyDtoDAsync_v2);
  Context* const c = current();
  return give(s, [=] {
    char *const to = host(c, target, bytes), *const from = host(c, source, bytes);
    if (!to || !from)
      c->broken = kIllegalAddress;
    else if (to < from + bytes && from < to + bytes)
      memset(to, 0xee, bytes);  // overlapping: undefined
    else
      memcpy(to, from, bytes);
  });
}
EXPORT int cuMemcpyPeerAsync(Address target, Context* to, Address source, Context* from, size_t bytes, Stream* s) {
  BEGIN(cuMemcpyPeerAsync);
  if (!to || !from) return kInvalidContext;
  return give(s, [=] {
    char *const t = host(to, target, bytes), *const f = host(from, source, bytes);
    if (!t || !f)
      s->context->broken = kIllegalAddress;
    else
      memcpy(t, f, bytes);
  });
}

EXPORT int cuStreamCreateWithPriority(Stream** s, unsigned flags, int) {
  BEGIN(cuStreamCreateWithPriority);
  if (flags != 1) return kInvalidValue;  // naru's do not wait for the default stream
  *s = new Stream{current(), {}, nullptr};
  current()->streams.insert(*s);
  return 0;
}
EXPORT int cuStreamDestroy_v2(Stream* s) {
  BEGIN(cuStreamDestroy_v2);
  if (s->context != current()) return kInvalidContext;
  finish(s);
  s->context->streams.erase(s);
  delete s;
  return 0;
}
EXPORT int cuStreamSynchronize(Stream* s) {
  BEGIN(cuStreamSynchronize);
  if (s->context != current()) return kInvalidContext;
  if (spoils(s)) return kCaptureUnsupported;
  finish(s);
  return s->context->broken;
}
EXPORT int cuEventCreate(Event** e, unsigned flags) {
  BEGIN(cuEventCreate);
  *e = keep(new Event{current()});
  (*e)->timing = (flags & 2) == 0;
  return 0;
}
EXPORT int cuEventDestroy_v2(Event* e) {
  BEGIN(cuEventDestroy_v2);
  e->destroyed = true;
  if (e->awaited == 0) drop(e);
  return 0;
}
EXPORT int cuEventRecord(Event* e, Stream* s) {
  BEGIN(cuEventRecord);
  if (e->context != s->context) return kInvalidHandle;
  e->captured = s->captured != nullptr;
  if (e->captured) return 0;
  e->recorded = true;
  e->done = false;
  e->stream = s;
  return give(s, e, [e] {
    e->done = true;
    e->time = now;
  });
}
EXPORT int cuStreamWaitEvent(Stream* s, Event* e, unsigned) {
  BEGIN(cuStreamWaitEvent);
  if (s->captured && !e->captured && spoils(s)) return kCaptureIsolation;
  return give(s, e, [e] {
    while (!e->done && !e->context->broken) step(e->stream);
  });
}
EXPORT int cuEventQuery(Event* e) {
  BEGIN(cuEventQuery);
  if (e->context != current()) return kInvalidContext;
  if (e->captured) return kCapturedEvent;
  if (e->done) return 0;
  step(e->stream);
  return e->context->broken ? e->context->broken : kNotReady;
}
EXPORT int cuEventSynchronize(Event* e) {
  BEGIN(cuEventSynchronize);
  if (e->captured) return kCapturedEvent;
  while (!e->done && !e->context->broken && step(e->stream)) {
  }
  return e->context->broken;
}
EXPORT int cuEventElapsedTime(float* milliseconds, Event* start, Event* end) {
  BEGIN(cuEventElapsedTime);
  if (!start->timing || !end->timing || !start->recorded || !end->recorded) return kInvalidHandle;
  if (!start->done || !end->done) return kNotReady;
  *milliseconds = static_cast<float>(end->time - start->time);
  return 0;
}

// An image: "FAKE sm_90 /path/of/the/library.so".
EXPORT int cuModuleLoadData(Module** m, const void* image) {
  BEGIN(cuModuleLoadData);
  char kind[16] = "", path[1024] = "";
  int version = 0;
  if (sscanf(static_cast<const char*>(image), "FAKE %15[a-z]_%d %1023s", kind, &version, path) != 3) return kInvalidImage;
  const int own = fake_gpu_capability(current()->device);
  // Machine code runs on its own generation, from its minor version on; text also on later ones.
  if (!strcmp(kind, "sm") ? version / 10 != own / 10 || version > own : version > own) return kNoBinary;
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return kInvalidImage;
  *m = keep(new Module{current(), library});
  return 0;
}
EXPORT int cuModuleGetFunction(Function** f, Module* m, const char* name) {
  BEGIN(cuModuleGetFunction);
  const auto find = [&](const char* what, auto& found) {
    found = reinterpret_cast<std::decay_t<decltype(found)>>(dlsym(m->library, (std::string("fake_") + what + "_" + name).c_str()));
    return found != nullptr;
  };
  auto made = std::make_unique<Function>(
      Function{m->context, nullptr, nullptr, nullptr, static_cast<Names*>(dlsym(m->library, "fake_names")), false});
  if (!made->names || !find("run", made->entry) || !find("translate", made->translate) || !find("sizes", made->sizes)) return kNotFound;
  made->barriers = *static_cast<const int*>(dlsym(m->library, "fake_barriers")) != 0;
  *f = keep(made.release());
  return 0;
}
EXPORT int cuLaunchKernel(Function* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                          Stream* s, void** parameters, void** extra) {
  BEGIN(cuLaunchKernel);
  if (gx == 0 || gy != 1 || gz != 1 || bx == 0 || bx > 1024 || by != 1 || bz != 1 || shared != 0 || extra) return kInvalidValue;
  if (f->context != current()) return kInvalidHandle;
  // The values of the parameters, as they are now.
  size_t sizes[64] = {}, all = 0;
  f->sizes(sizes);
  for (const size_t size : sizes) all += (size + 7) / 8 * 8;
  if (all > 4096) return kInvalidValue;
  std::vector<std::vector<char>> arguments;
  for (size_t i = 0; sizes[i] != 0; ++i)
    arguments.emplace_back(static_cast<char*>(parameters[i]), static_cast<char*>(parameters[i]) + sizes[i]);
  return give(s, [f, gx, bx, arguments] { run_kernel(f->context, *f, {gx, 1, 1}, {bx, 1, 1}, arguments); });
}

// Only the relaxed mode (2), in which memory may be taken meanwhile. What is captured is done at each launch, in the stream's order.
EXPORT int cuStreamBeginCapture_v2(Stream* s, unsigned mode) {
  BEGIN(cuStreamBeginCapture_v2);
  if (s->context != current()) return kInvalidContext;
  if (mode != 2 || s->captured) return kInvalidValue;
  s->captured = std::make_shared<Work>();
  s->spoiled = false;
  return 0;
}
EXPORT int cuStreamEndCapture(Stream* s, Graph** graph) {
  BEGIN(cuStreamEndCapture);
  *graph = nullptr;
  if (!s->captured) return kCaptureUnmatched;
  const auto work = std::move(s->captured);
  s->captured = nullptr;
  if (s->spoiled) return kCaptureInvalidated;
  *graph = keep(new Graph{s->context, work});
  return 0;
}
EXPORT int cuGraphInstantiateWithFlags(Graph** made, Graph* graph, unsigned long long flags) {
  BEGIN(cuGraphInstantiateWithFlags);
  if (!graph || flags != 0) return kInvalidValue;
  *made = keep(new Graph(*graph));
  return 0;
}
EXPORT int cuGraphLaunch(Graph* made, Stream* s) {
  BEGIN(cuGraphLaunch);
  if (made->context != current()) return kInvalidContext;
  return give(s, [work = made->work, c = made->context] {
    for (const auto& f : *work)
      if (!c->broken) f();
  });
}
EXPORT int cuGraphExecDestroy(Graph* made) {
  BEGIN(cuGraphExecDestroy);
  drop(made);
  return 0;
}
EXPORT int cuGraphDestroy(Graph* graph) {
  BEGIN(cuGraphDestroy);
  drop(graph);
  return 0;
}

// For the cuBLASLt beside this (cublaslt.cpp): what a call is to fail with; the current context; whether a stream of it captures; its device's capability; work for a stream, in its
// order; the host's address of a device's bytes while that runs, where any other address ends the context.
EXPORT int fake_cuda_called(const char* function) { return fake_called(function); }
EXPORT void* fake_cuda_context() { return current(); }
EXPORT int fake_cuda_capturing(Context* c) {
  for (const Stream* s : c->streams)
    if (s->captured) return 1;
  return 0;
}
EXPORT int fake_cuda_capability(Context* c) { return fake_gpu_capability(c->device); }
EXPORT int fake_cuda_give(Stream* s, const std::function<void()>& work) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  return s->context->broken ? s->context->broken : give(s, work);
}
EXPORT void* fake_cuda_host(Context* c, Address address, size_t bytes) {
  char* const h = host(c, address, bytes);
  if (!h) c->broken = kIllegalAddress;
  return h;
}

EXPORT int cuGetErrorName(int code, const char** name) {
  static const std::map<int, const char*> names = {{1, "CUDA_ERROR_INVALID_VALUE"},     {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                   {201, "CUDA_ERROR_INVALID_CONTEXT"}, {209, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
                                                   {400, "CUDA_ERROR_INVALID_HANDLE"},  {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                                                   {719, "CUDA_ERROR_LAUNCH_FAILED"}};
  const auto at = names.find(code);
  if (at == names.end()) return kInvalidValue;
  *name = at->second;
  return 0;
}
EXPORT int cuGetErrorString(int code, const char** text) {
  *text = code == kLaunchFailed ? "unspecified launch failure" : "an error";
  return 0;
}
