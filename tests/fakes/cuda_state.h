// State shared by the files of the fake CUDA driver (cuda.cpp), which is the fake HIP driver, too: contexts, streams and their work, memory.
#pragma once

#ifdef FAKE_HIP
#include "hip_names.h"
#endif

#include <unistd.h>

#include <atomic>
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
extern "C" int fake_gpu_shared(int device);
extern "C" int fake_gpu_of_pci(const char* pci);
extern "C" const char* fake_gpu_architecture(int device);

struct Three {
  unsigned x, y, z;
};
// What a kernel's text can use besides its parameters; see nvrtc.cpp.
struct Names {
  Three thread, block, threads, blocks;
  void (*barrier)();
  void* (*translate)(void*);
};

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

// One recording of an event. Waiters keep it, even if the event is recorded again later.
struct Mark {
  struct Stream* stream;
  bool done = false;
  double time = 0;
};
struct Event {
  Context* context;
  bool timing = false, captured = false;
  std::shared_ptr<Mark> mark;  // null: never recorded, which counts as complete
  bool done() const { return !mark || mark->done; }
};
// A piece of work: false if it must be tried again later, because it waits for what is not of this process.
using Item = std::function<bool()>;
using Work = std::vector<Item>;
struct Stream {
  Context* context;
  std::deque<Item> work;
  std::shared_ptr<Work> captured;  // while capturing
  bool spoiled = false;            // a call that is not allowed in captures was made
  bool busy = false;               // in a piece of work
  bool waits = false;              // for other processes, so its work proceeds without being polled
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
  void (*translate)(void**);  // translates device addresses among the arguments to host addresses
  void (*sizes)(size_t*);     // of the arguments, 0-terminated
  Names* names;
  bool barriers;
  int shared;  // limit of dynamic shared memory
};
struct Context {
  explicit Context(int d) : device(d) {}
  int device;
  int broken = 0;
  size_t used = 0;
  std::map<Address, size_t> memory;  // by host address
  std::set<Stream*> streams;
  Stream* legacy = nullptr;  // the default stream of other libraries; naru's streams do not synchronize with it
  std::set<Context*> peers;
  std::set<void*> kept;  // events, modules, functions, graphs: those not destroyed live as long as the context
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

inline std::recursive_mutex mutex;
// Never destroyed.
inline auto& contexts = *new std::map<int, std::unique_ptr<Context>>;
inline auto& pinned = *new std::map<char*, size_t>;
inline bool initialised = false;
inline pid_t process = 0;
inline double now = 0;  // steps of work done: a clock that advances only with work
inline thread_local std::vector<Context*> stack;
inline size_t waited_in_copies = 0, loaded_in_captures = 0;
enum Others { kNone, kGlobal, kSpoiled };
inline Others others = kNone;                   // capture by another library
inline thread_local unsigned capture_mode = 0;  // per thread: 0 global, 1 thread local, 2 relaxed

#ifdef FAKE_HIP
inline Context* context_of(int device) {
  auto& c = contexts[device];
  if (!c) c.reset(new Context(device));
  return c.get();
}
// Each thread has a current device, at first the first one.
inline Context* current() {
  if (stack.empty()) stack.push_back(context_of(0));
  return stack.back();
}
#else
inline Context* current() { return stack.empty() ? nullptr : stack.back(); }
#endif

inline Address tag(int device) { return (Address{0x40} | static_cast<Address>(device)) << kShift; }

// The host address of `bytes` bytes of device memory; null for any other address.
inline char* host(Context* c, Address a, size_t bytes) {
  const Address h = a - tag(c->device);
  auto at = c->memory.upper_bound(h);
  if (at == c->memory.begin()) return nullptr;
  --at;
  return h >= at->first && h + bytes <= at->first + at->second ? reinterpret_cast<char*>(h) : nullptr;
}

inline bool is_pinned(const void* p, size_t bytes) {
  auto* const c = static_cast<char*>(const_cast<void*>(p));
  auto at = pinned.upper_bound(c);
  if (at == pinned.begin()) return false;
  --at;
  return c + bytes <= at->first + at->second;
}

inline bool step(Stream* s) {
  if (s->work.empty() || s->busy) return false;
  s->busy = true;
  const bool done = s->context->broken || s->work.front()();
  s->busy = false;
  if (done) s->work.pop_front(), ++now;
  return done;
}
// Other threads have their turn while one waits for other processes.
inline void nap() {
  mutex.unlock();
  usleep(50);
  mutex.lock();
}
inline void finish(Stream* s) {
  while (!s->work.empty())
    if (!step(s)) nap();
}
inline void finish(Context* c) {
  for (Stream* s : std::set<Stream*>(c->streams)) finish(s);
}

// Number of calls until the one that fails (0: none), the code that it returns, and its name.
inline std::atomic<int64_t> calls_left{0};
inline std::atomic<int> failure_code{0};
inline std::atomic<const char*> failed_call{nullptr};
// Counts a call; returns the error code to fail with, or 0.
inline int called(const char* name) {
  if (const int code = fake_called(name)) return code;
  if (calls_left.load() <= 0 || calls_left.fetch_sub(1) != 1) return 0;
  failed_call = name;
  return failure_code;
}

inline int begin(const char* name, bool needs_context = true) {
  if (const int code = called(name)) return code;
  if (!initialised || getpid() != process) return kNotInitialized;
  if (!needs_context) return 0;
  if (!current()) return kInvalidContext;
  return current()->broken;
}
#define BEGIN(name, ...)                                   \
  const std::lock_guard<std::recursive_mutex> lock(mutex); \
  if (const int code = begin(FAKE_TEXT(name), ##__VA_ARGS__)) return code
#define FAKE_TEXT(name) FAKE_TEXT_OF(name)  // of the name as it is after hip_names.h
#define FAKE_TEXT_OF(name) #name

// The stream of a handle; handle 1 (of HIP: 0) is the current context's default stream.
#ifdef FAKE_HIP
constexpr uintptr_t kDefaultStream = 0;
#else
constexpr uintptr_t kDefaultStream = 1;
#endif
inline Stream* real(Stream* s) {
  if (s != reinterpret_cast<Stream*>(kDefaultStream) || !current()) return s;
  Stream*& legacy = current()->legacy;
  if (!legacy) current()->streams.insert(legacy = new Stream{current(), {}, nullptr});
  return legacy;
}

inline int give_item(Stream* s, Item work) {
  s = real(s);
  if (s->context != current()) return kInvalidHandle;
  if (s->captured && s->spoiled) return kCaptureInvalidated;
  if (s->captured)
    s->captured->push_back(std::move(work));
  else
    s->work.push_back(std::move(work));
  return 0;
}
template <class F>
int give(Stream* s, F work) {
  return give_item(s, [work]() mutable {
    work();
    return true;
  });
}
// Counts calls that may synchronize the whole device while a stream of the context captures.
inline void note_if_captured(Context* c) {
  for (const Stream* s : c->streams) loaded_in_captures += s->captured != nullptr;
}
// If the stream is capturing, invalidates the capture, because of a call that is not allowed in one.
inline bool spoils(Stream* s) {
  if (!s->captured) return false;
  s->spoiled = true;
  return true;
}

// The error code of a call that is not allowed while another library captures, or 0.
inline int refused_by_others() {
  if (others == kNone || capture_mode == 2) return 0;
  others = kSpoiled;
  return kCaptureUnsupported;
}
