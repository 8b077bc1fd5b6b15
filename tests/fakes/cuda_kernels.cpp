// Kernels, modules and graphs of the fake CUDA driver (cuda.cpp).
#include <dlfcn.h>
#include <pthread.h>

#include <thread>

#include "block.h"
#include "cuda_state.h"

namespace {

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
    for (; f.names->block.x < grid.x; ++f.names->block.x) threads->run(f.entry, parameters.data(), f.names->thread.x, block.x, f.barriers);
  if (strayed) c->broken = kIllegalAddress;
}

}  // namespace

// An image is the text "FAKE sm_90 /path/of/the/library.so".
EXPORT int cuModuleLoadData(Module** m, const void* image) {
  BEGIN(cuModuleLoadData);
  char path[1024] = "";
#ifdef FAKE_HIP
  // Or "FAKE gfx90a:sramecc+:xnack- /path/of/the/library.so": code for one architecture, which runs on that one alone.
  char wanted[64] = "";
  if (sscanf(static_cast<const char*>(image), "FAKE %63s %1023s", wanted, path) != 2) return kInvalidImage;
  if (strcmp(wanted, fake_gpu_architecture(current()->device))) return kNoBinary;
#else
  char kind[16] = "";
  int version = 0;
  if (sscanf(static_cast<const char*>(image), "FAKE %15[a-z]_%d %1023s", kind, &version, path) != 3) return kInvalidImage;
  const int own = fake_gpu_capability(current()->device);
  // Machine code runs on its own major version, from its minor version on; PTX also on later ones.
  if (!strcmp(kind, "sm") ? version / 10 != own / 10 || version > own : version > own) return kNoBinary;
#endif
  note_if_captured(current());
  void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return kInvalidImage;
  *m = keep(new Module{current(), library});
  return 0;
}
EXPORT int cuModuleUnload(Module* m) {
  BEGIN(cuModuleUnload);
  dlclose(m->library);
  drop(m);
  return 0;
}
#ifdef FAKE_HIP
constexpr int kShared = 64 << 10;
#else
constexpr int kShared = 48 << 10;
#endif
EXPORT int cuModuleGetFunction(Function** f, Module* m, const char* name) {
  BEGIN(cuModuleGetFunction);
  const auto find = [&](const char* what, auto& found) {
    found = reinterpret_cast<std::decay_t<decltype(found)>>(dlsym(m->library, (std::string("fake_") + what + "_" + name).c_str()));
    return found != nullptr;
  };
  auto made = std::make_unique<Function>(
      Function{m->context, nullptr, nullptr, nullptr, static_cast<Names*>(dlsym(m->library, "fake_names")), false, kShared});
  if (!made->names || !find("run", made->entry) || !find("translate", made->translate) || !find("sizes", made->sizes)) return kNotFound;
  made->barriers = *static_cast<const int*>(dlsym(m->library, "fake_barriers")) != 0;
  *f = keep(made.release());
  return 0;
}
EXPORT int cuFuncGetAttribute(int* value, int attribute, Function*) {
  BEGIN(cuFuncGetAttribute);
  if (attribute != 1) return kInvalidValue;
  *value = 0;  // does not include static shared memory
  return 0;
}
#ifndef FAKE_HIP
EXPORT int cuFuncSetAttribute(Function* f, int attribute, int value) {
  BEGIN(cuFuncSetAttribute);
  if (attribute != 8 || value > fake_gpu_shared(f->context->device)) return kInvalidValue;
  f->shared = value;
  return 0;
}
#endif
EXPORT int cuLaunchKernel(Function* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                          Stream* s, void** parameters, void** extra) {
  BEGIN(cuLaunchKernel);
  if (gx == 0 || gy != 1 || gz != 1 || bx == 0 || bx > 1024 || by != 1 || bz != 1 || extra) return kInvalidValue;
  if (f->context != current()) return kInvalidHandle;
  if (shared > static_cast<unsigned>(f->shared)) return kInvalidValue;
  // Copies the values of the parameters now.
  size_t sizes[64] = {}, all = 0;
  f->sizes(sizes);
  for (const size_t size : sizes) all += (size + 7) / 8 * 8;
  if (all > 4096) return kInvalidValue;
  std::vector<std::vector<char>> arguments;
  for (size_t i = 0; sizes[i] != 0; ++i)
    arguments.emplace_back(static_cast<char*>(parameters[i]), static_cast<char*>(parameters[i]) + sizes[i]);
  return give(s, [f, gx, bx, arguments] { run_kernel(f->context, *f, {gx, 1, 1}, {bx, 1, 1}, arguments); });
}

// For tests: how often memory was allocated or a module loaded while a stream of the device captured.
EXPORT size_t fake_loaded_in_captures() { return loaded_in_captures; }

// Accepts only the relaxed mode (2), which allows allocations meanwhile. Captured work runs at each launch, in the stream's order.
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
  // A copy: pieces of work that wait have a state of their own in each launch.
  return give_item(s, [work = *made->work, at = size_t{0}, c = made->context]() mutable {
    for (; at < work.size() && !c->broken; ++at)
      if (!work[at]()) return false;
    return true;
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

// For the fake libraries (cublaslt.cpp and others): the error code that a call is to return; the current context, and another one for a while
// (null: the one before); whether a stream of it is capturing; its device's capability; enqueueing work on a stream; the host address of device memory while that work runs (any other address
// breaks the context).
EXPORT int fake_cuda_called(const char* function) { return called(function); }
EXPORT void* fake_cuda_context() { return current(); }
EXPORT void fake_cuda_enter(Context* c) { c ? stack.push_back(c) : stack.pop_back(); }
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
// The same of work that waits for other processes: it returns false until it is done.
EXPORT int fake_cuda_give_waiting(Stream* s, const std::function<bool()>& work) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  if (s->context->broken) return s->context->broken;
  static bool& going = *new bool(false);
  if (!going) {
    going = true;
    pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); });
    std::thread([] {
      for (;;) {
        usleep(1000);
        const std::lock_guard<std::recursive_mutex> turn(mutex);
        for (const auto& c : contexts)
          for (Stream* each : std::set<Stream*>(c.second->streams))
            while (each->waits && step(each)) {
            }
      }
    }).detach();
  }
  // Graphs are launched on any stream.
  if (s->captured)
    for (Stream* each : s->context->streams) each->waits = true;
  s->waits = true;
  return give_item(s, work);
}
EXPORT void* fake_cuda_host(Context* c, Address address, size_t bytes) {
  char* const h = host(c, address, bytes);
  if (!h) c->broken = kIllegalAddress;
  return h;
}
