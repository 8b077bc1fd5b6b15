/* A CUDA driver for tests, on a machine without a GPU: gpu.c says which devices there are; this adds contexts, memory, streams, events and kernels
   (those that the fake NVRTC beside it made), with results as true as the machine's C++ compiler makes them. It is as unkind as a driver may be:
     - a device's memory lies at addresses at which the host faults;
     - work is done as late as allowed: when somebody waits for it, or (one step) asks whether it is done. Page-locked memory is read and written then;
       streams that wait for other processes (nccl.cpp) go on by themselves, a little later;
     - each call wants a current context, of the device that its stream and events belong to;
     - in a capture nothing may be waited for or be asked of the stream, and pageable memory is refused: 900, and the capture is void (901);
     - while another library captures in the strictest mode (fake_capture_by_others), calls that wait or take memory are refused (900), and the capture is
       void, unless the thread says that it has nothing to do with it (cuThreadExchangeStreamCaptureMode);
     - an address of another device, of the host, or beyond an allocation ends the context: all later calls fail with 700.
   Besides what gpu.c reads from the environment:
     NARU_FAKE_ERROR    "cuMemAlloc_v2=2@3": only the third call fails
     NARU_FAKE_FAULT    D: a kernel that runs on device D ends with 719, and the context with it
     NARU_FAKE_NO_PEER  devices can't reach one another's memory
     NARU_FAKE_ENDLESS  from when it is set, what is under way is never done: queries say so, waits do not return
   And any call fails that fake_fail_call() names by its number. */
#include "cuda_state.h"

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
#ifndef FAKE_HIP
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
EXPORT int cuCtxGetCurrent(Context** c) {
  *c = current();
  return 0;
}
EXPORT int cuCtxSetCurrent(Context* c) {
  if (!c) return kInvalidContext;
  if (stack.empty())
    stack.push_back(c);
  else
    stack.back() = c;
  return 0;
}
#endif
EXPORT int cuCtxSynchronize() {
  BEGIN(cuCtxSynchronize);
  finish(current());
  return current()->broken;
}
EXPORT int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  BEGIN(cuDeviceCanAccessPeer, false);
  *can = device != peer && !getenv("NARU_FAKE_NO_PEER");
  return 0;
}
#ifndef FAKE_HIP
EXPORT int cuCtxEnablePeerAccess(Context* peer, unsigned flags) {
  BEGIN(cuCtxEnablePeerAccess);
  if (flags != 0 || peer == current()) return kInvalidValue;
  return current()->peers.insert(peer).second ? 0 : kPeerEnabled;
}
#endif

EXPORT int cuThreadExchangeStreamCaptureMode(unsigned* mode) {
  if (*mode > 2) return kInvalidValue;
  std::swap(capture_mode, *mode);
  return 0;
}
// For tests: another library begins (1) or ends (0) a capture. Returns true unless the capture was invalidated.
EXPORT int fake_capture_by_others(int on) {
  const std::lock_guard<std::recursive_mutex> lock(mutex);
  const bool whole = others != kSpoiled;
  others = on ? kGlobal : kNone;
  return whole;
}

// For tests: the n-th call from now on returns the code and does nothing; n = 0: none.
EXPORT void fake_fail_call(int64_t n, int code) {
  failed_call = nullptr;
  failure_code = code;
  calls_left = n;
}
// The name of the function that has failed since then, or null.
EXPORT const char* fake_failed_call() { return failed_call; }

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
  note_if_captured(c);
  if (const int code = refused_by_others()) return code;
  if (bytes > fake_gpu_bytes(c->device) - c->used) return kOutOfMemory;
  void* const memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!memory) return kOutOfMemory;
  memset(memory, 0xcd, bytes);  // so that no code relies on zeros
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
  if (const int code = refused_by_others()) return code;
  finish(c);
  c->used -= at->second;
  free(reinterpret_cast<void*>(at->first));
  c->memory.erase(at);
  return 0;
}
EXPORT int cuMemHostAlloc(void** memory, size_t bytes, unsigned flags) {
  BEGIN(cuMemHostAlloc);
  if (flags != 1) return kInvalidValue;  // naru's pinned memory is portable (all devices)
  if (const int code = refused_by_others()) return code;
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

// Pinned memory is accessed when the stream reaches the copy; other memory before the call returns.
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
  if (code == 0 && !is_pinned(target, bytes)) waited_in_copies += s->work.size() - 1, finish(s);
  return code ? code : c->broken;
}
// For tests: the number of earlier work items that copies to pageable memory have waited for.
EXPORT size_t fake_waited_in_copies() { return waited_in_copies; }
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
int fake_copy_between(Address target, Context* to, Address source, Context* from, size_t bytes, Stream* s) {
  if (!to || !from) return kInvalidContext;
  return give(s, [=] {
    char *const t = host(to, target, bytes), *const f = host(from, source, bytes);
    if (!t || !f)
      s->context->broken = kIllegalAddress;
    else
      memcpy(t, f, bytes);
  });
}
#ifndef FAKE_HIP
EXPORT int cuMemcpyPeerAsync(Address target, Context* to, Address source, Context* from, size_t bytes, Stream* s) {
  BEGIN(cuMemcpyPeerAsync);
  return fake_copy_between(target, to, source, from, bytes, s);
}
#endif

EXPORT int cuStreamCreateWithPriority(Stream** s, unsigned flags, int) {
  BEGIN(cuStreamCreateWithPriority);
  if (flags != 1) return kInvalidValue;  // naru's streams do not wait for the default stream
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
  *e = keep(new Event{current(), false, false, nullptr});
  (*e)->timing = (flags & 2) == 0;
  return 0;
}
EXPORT int cuEventDestroy_v2(Event* e) {
  BEGIN(cuEventDestroy_v2);
  drop(e);
  return 0;
}
EXPORT int cuEventRecord(Event* e, Stream* s) {
  BEGIN(cuEventRecord);
  s = real(s);
  if (e->context != s->context) return kInvalidHandle;
  e->captured = s->captured != nullptr;
  if (e->captured) return 0;
  const auto mark = std::make_shared<Mark>(Mark{s});
  const int code = give(s, [mark] {
    mark->done = true;
    mark->time = now;
  });
  if (code == 0) e->mark = mark;
  return code;
}
EXPORT int cuStreamWaitEvent(Stream* s, Event* e, unsigned) {
  BEGIN(cuStreamWaitEvent);
  if (s->captured && !e->captured && spoils(s)) return kCaptureIsolation;
  return give_item(s, [mark = e->mark, c = e->context] {
    while (mark && !mark->done && !c->broken)
      if (!step(mark->stream)) return false;
    return true;
  });
}
// Call without the lock.
static void wait_without_end(bool for_work) {
  while (for_work && getenv("NARU_FAKE_ENDLESS")) pause();
}
EXPORT int cuEventQuery(Event* e) {
  BEGIN(cuEventQuery);
  if (e->context != current()) return kInvalidContext;
  if (e->captured) return kCapturedEvent;
  if (const int code = refused_by_others()) return code;
  if (e->done()) return 0;
  if (!getenv("NARU_FAKE_ENDLESS")) step(e->mark->stream);
  return e->context->broken ? e->context->broken : kNotReady;
}
EXPORT int cuEventSynchronize(Event* e) {
  wait_without_end(!e->done());
  BEGIN(cuEventSynchronize);
  if (e->captured) return kCapturedEvent;
  const std::shared_ptr<Mark> mark = e->mark;
  while (mark && !mark->done && !e->context->broken)
    if (!step(mark->stream)) {
      if (mark->stream->work.empty()) break;
      nap();
    }
  return e->context->broken;
}
EXPORT int cuEventElapsedTime(float* milliseconds, Event* start, Event* end) {
  BEGIN(cuEventElapsedTime);
  if (!start->timing || !end->timing || !start->mark || !end->mark) return kInvalidHandle;
  if (!start->done() || !end->done()) return kNotReady;
  *milliseconds = static_cast<float>(end->mark->time - start->mark->time);
  return 0;
}

#ifndef FAKE_HIP
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
#endif
