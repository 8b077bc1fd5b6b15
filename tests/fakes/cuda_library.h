// The functions of the fake CUDA driver (cuda.cpp) that the fake libraries on top of it use.
#pragma once

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>

#define EXPORT extern "C" __attribute__((visibility("default")))

#ifdef FAKE_HIP
constexpr const char* kDriverLibrary = "NARU_ROCM_LIBRARY";
#else
constexpr const char* kDriverLibrary = "NARU_CUDA_LIBRARY";
#endif

template <class F>
F* driver(const char* name) {
  static void* const library = dlopen(getenv(kDriverLibrary), RTLD_NOW | RTLD_NOLOAD);
  void* const f = library ? dlsym(library, name) : nullptr;
  if (!f) abort();
  return reinterpret_cast<F*>(f);
}
// Counts the call; returns the error code to fail with, or 0.
inline int called(const char* name) { return driver<int(const char*)>("fake_cuda_called")(name); }
// Makes a context the thread's current one; null: that before it again.
inline void enter(void* c) { driver<void(void*)>("fake_cuda_enter")(c); }
// The thread's current context, the device's capability, and whether one of its streams is capturing.
inline void* context() { return driver<void*()>("fake_cuda_context")(); }
inline int capability(void* c) { return driver<int(void*)>("fake_cuda_capability")(c); }
inline bool capturing(void* c) { return driver<int(void*)>("fake_cuda_capturing")(c) != 0; }
// The host address of device memory. If it has fewer than `bytes` bytes there, returns null and breaks the context.
inline char* host(void* c, const void* p, size_t bytes) {
  return static_cast<char*>(
      driver<void*(void*, unsigned long long, size_t)>("fake_cuda_host")(c, reinterpret_cast<unsigned long long>(p), bytes));
}
// Enqueues work on the stream. Returns an error code if the stream rejects it.
inline int give(void* stream, const std::function<void()>& work) {
  return driver<int(void*, const std::function<void()>&)>("fake_cuda_give")(stream, work);
}
// The same of work that waits for other processes: it is called again until it returns true.
inline int give_waiting(void* stream, const std::function<bool()>& work) {
  return driver<int(void*, const std::function<bool()>&)>("fake_cuda_give_waiting")(stream, work);
}
inline bool aligned(const void* p, uint64_t bytes) { return reinterpret_cast<uintptr_t>(p) % bytes == 0; }

// Enqueues work with a workspace: one step marks the workspace, and the next calls `work` with whether the mark is still there.
inline int give_with_workspace(void* stream, void* where, void* workspace, size_t bytes, const std::function<void(bool mine)>& work) {
  static std::atomic<unsigned char> calls{0};
  const unsigned char mark = ++calls;
  if (bytes > 0)
    if (const int code = give(stream, [=] {
          if (char* const own = host(where, workspace, bytes)) memset(own, mark, bytes);
        }))
      return code;
  return give(stream, [=] {
    bool mine = true;
    const char* const own = bytes > 0 ? host(where, workspace, bytes) : nullptr;
    for (size_t i = 0; own && i < bytes; ++i) mine = mine && static_cast<unsigned char>(own[i]) == mark;
    work(mine);
  });
}
