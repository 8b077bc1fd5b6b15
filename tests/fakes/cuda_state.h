// What the files of the CUDA driver for tests (cuda.cpp) share: contexts, streams and their work, memory.
#pragma once

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

struct Three {
  unsigned x, y, z;
};
// What a kernel's text sees besides its parameters; see nvrtc.cpp.
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

// A record of an event: who waits for it keeps to it, whatever the event is recorded behind later.
struct Mark {
  struct Stream* stream;
  bool done = false;
  double time = 0;
};
struct Event {
  Context* context;
  bool timing = false, captured = false;
  std::shared_ptr<Mark> mark;  // none: never recorded, which counts as done
  bool done() const { return !mark || mark->done; }
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
  int shared = 48 << 10;  // bytes that a launch may ask for
};
struct Context {
  explicit Context(int d) : device(d) {}
  int device;
  int broken = 0;
  size_t used = 0;
  std::map<Address, size_t> memory;  // by the host's address
  std::set<Stream*> streams;
  Stream* legacy = nullptr;  // the default stream of others, which naru's own do not wait for
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

inline std::recursive_mutex mutex;
// As long as the process.
inline auto& contexts = *new std::map<int, std::unique_ptr<Context>>;
inline auto& pinned = *new std::map<char*, size_t>;
inline bool initialised = false;
inline pid_t process = 0;
inline double now = 0;  // steps of work done: a clock that only work moves
inline thread_local std::vector<Context*> stack;
inline size_t waited_in_copies = 0, loaded_in_captures = 0;
enum Others { kNone, kGlobal, kSpoiled };
inline Others others = kNone;                   // capture of another library
inline thread_local unsigned capture_mode = 0;  // of the thread: 0 global, 1 thread local, 2 relaxed

inline Context* current() { return stack.empty() ? nullptr : stack.back(); }

inline Address tag(int device) { return (Address{0x40} | static_cast<Address>(device)) << kShift; }

// The host's address of `bytes` bytes of the device; null for any other address.
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
  if (s->work.empty()) return false;
  const auto work = std::move(s->work.front());
  s->work.pop_front();
  ++now;
  if (!s->context->broken) work();
  return true;
}
inline void finish(Stream* s) {
  while (step(s)) {
  }
}
inline void finish(Context* c) {
  for (Stream* s : c->streams) finish(s);
}

// Calls until the one that fails; 0: none will. With what it fails, and which it was.
inline std::atomic<int64_t> calls_left{0};
inline std::atomic<int> failure_code{0};
inline std::atomic<const char*> failed_call{nullptr};
// Counts a call; what it is to fail with, if anything.
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
  if (const int code = begin(#name, ##__VA_ARGS__)) return code

// The stream behind a handle: 1 is the default one of the current context.
inline Stream* real(Stream* s) {
  if (s != reinterpret_cast<Stream*>(1) || !current()) return s;
  Stream*& legacy = current()->legacy;
  if (!legacy) current()->streams.insert(legacy = new Stream{current(), {}, nullptr});
  return legacy;
}

inline int give(Stream* s, std::function<void()> work) {
  s = real(s);
  if (s->context != current()) return kInvalidHandle;
  if (s->captured && s->spoiled) return kCaptureInvalidated;
  if (s->captured)
    s->captured->push_back(std::move(work));
  else
    s->work.push_back(std::move(work));
  return 0;
}
// Counts what may wait for the whole device while a stream of the context captures.
inline void note_if_captured(Context* c) {
  for (const Stream* s : c->streams) loaded_in_captures += s->captured != nullptr;
}
// Whether a capture is spoiled by a call that may not be made in one.
inline bool spoils(Stream* s) {
  if (!s->captured) return false;
  s->spoiled = true;
  return true;
}

// What a call that may not be made during captures of others is to fail with.
inline int refused_by_others() {
  if (others == kNone || capture_mode == 2) return 0;
  others = kSpoiled;
  return kCaptureUnsupported;
}
