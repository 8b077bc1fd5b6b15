// Driver: a GPU driver shaped like CUDA's (libcuda; AMD's libamdhip64), as a table of its functions. Devices, streams, events and graphs are
// written once over this table; each backend fills it from a library that is opened at run time, so building needs no vendor's headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/os/library.h"

namespace naru::backends::gpu {

using Result = int;
using DeviceNumber = int;
using Address = unsigned long long;
inline Address address(const void* memory) { return reinterpret_cast<Address>(memory); }
using ContextHandle = struct ContextTag*;
using StreamHandle = struct StreamTag*;
using EventHandle = struct EventTag*;
using ModuleHandle = struct ModuleTag*;
using FunctionHandle = struct FunctionTag*;
using GraphHandle = struct GraphTag*;
using GraphExecHandle = struct GraphExecTag*;

// Numbers that both drivers share.
enum : Result {
  kSuccess = 0,
  kOutOfMemory = 2,
  kNotReady = 600,
  kPeerAccessAlreadyEnabled = 704,
};
enum : unsigned {
  kNonBlockingStream = 1,
  kTimingEvent = 0,
  kOrderEvent = 2,  // without timing
  kPortableMemory = 1,
  kRelaxedCapture = 2,
};
enum : int {
  kFunctionSharedBytes = 1,
  kFunctionMaxDynamicSharedBytes = 8,
};

// Every driver has these.
#define NARU_GPU_DRIVER(F)                                                                                                            \
  F(init, (unsigned flags))                                                                                                           \
  F(device_count, (int*))                                                                                                             \
  F(device_get, (DeviceNumber*, int number))                                                                                          \
  F(device_pci, (char*, int bytes, DeviceNumber))                                                                                     \
  F(device_by_pci, (DeviceNumber*, const char* pci))                                                                                  \
  F(device_attribute, (int*, int attribute, DeviceNumber))                                                                            \
  F(synchronize, ())                                                                                                                  \
  F(can_access_peer, (int* can, DeviceNumber device, DeviceNumber peer))                                                              \
  F(memory_info, (size_t * available, size_t * total))                                                                                \
  F(memory_take, (Address*, size_t bytes))                                                                                            \
  F(memory_free, (Address))                                                                                                           \
  F(host_take, (void**, size_t bytes, unsigned flags))                                                                                \
  F(host_free, (void*))                                                                                                               \
  F(copy_up, (Address target, const void* source, size_t bytes, StreamHandle))                                                        \
  F(copy_down, (void* target, Address source, size_t bytes, StreamHandle))                                                            \
  F(copy_within, (Address target, Address source, size_t bytes, StreamHandle))                                                        \
  F(stream_create, (StreamHandle*, unsigned flags, int priority))                                                                     \
  F(stream_destroy, (StreamHandle))                                                                                                   \
  F(stream_synchronize, (StreamHandle))                                                                                               \
  F(stream_wait, (StreamHandle, EventHandle, unsigned flags))                                                                         \
  F(event_create, (EventHandle*, unsigned flags))                                                                                     \
  F(event_destroy, (EventHandle))                                                                                                     \
  F(event_record, (EventHandle, StreamHandle))                                                                                        \
  F(event_query, (EventHandle))                                                                                                       \
  F(event_synchronize, (EventHandle))                                                                                                 \
  F(event_elapsed, (float* milliseconds, EventHandle start, EventHandle end))                                                         \
  F(module_load, (ModuleHandle*, const void* image))                                                                                  \
  F(module_function, (FunctionHandle*, ModuleHandle, const char* name))                                                               \
  F(module_unload, (ModuleHandle))                                                                                                    \
  F(function_attribute, (int*, int attribute, FunctionHandle))                                                                        \
  F(launch, (FunctionHandle, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, \
             unsigned shared_bytes, StreamHandle, void** parameters, void** extra))

// A driver has contexts, or a current device on each thread.
#define NARU_GPU_CONTEXTS(F)                                                                                                  \
  F(context_retain, (ContextHandle*, DeviceNumber))                                                                           \
  F(context_push, (ContextHandle))                                                                                            \
  F(context_pop, (ContextHandle*))                                                                                            \
  F(context_get, (ContextHandle*))                                                                                            \
  F(context_set, (ContextHandle))                                                                                             \
  F(context_enable_peer, (ContextHandle peer, unsigned flags))                                                                \
  F(copy_between_contexts,                                                                                                    \
    (Address target, ContextHandle target_context, Address source, ContextHandle source_context, size_t bytes, StreamHandle)) \
  F(error_name, (Result, const char**))                                                                                       \
  F(error_string, (Result, const char**))                                                                                     \
  F(function_set_attribute, (FunctionHandle, int attribute, int value))
#define NARU_GPU_CURRENT_DEVICE(F)                    \
  F(current_device, (DeviceNumber*))                  \
  F(set_device, (DeviceNumber))                       \
  F(enable_peer, (DeviceNumber peer, unsigned flags)) \
  F(copy_between_devices,                             \
    (Address target, DeviceNumber target_device, Address source, DeviceNumber source_device, size_t bytes, StreamHandle))

// Drivers of some age lack them.
#define NARU_GPU_GRAPHS(F)                                                        \
  F(capture_begin, (StreamHandle, unsigned mode))                                 \
  F(capture_mode_exchange, (unsigned* mode))                                      \
  F(capture_end, (StreamHandle, GraphHandle*))                                    \
  F(graph_instantiate, (GraphExecHandle*, GraphHandle, unsigned long long flags)) \
  F(graph_launch, (GraphExecHandle, StreamHandle))                                \
  F(graph_exec_destroy, (GraphExecHandle))                                        \
  F(graph_destroy, (GraphHandle))

// A driver's function and its name in the library. False if the driver has none.
template <class Signature>
struct Entry;
template <class... P>
struct Entry<Result(P...)> {
  Result (*function)(P...) = nullptr;
  const char* symbol = "";
  explicit operator bool() const noexcept { return function != nullptr; }
  template <class... A>
  Result operator()(A&&... arguments) const {
    return function(std::forward<A>(arguments)...);
  }
};

// What a launch may ask for.
struct LaunchLimits {
  int64_t groups;        // in the first dimension
  int64_t items;         // in the first dimension, all groups together; 0: as many as there are groups
  int64_t other_groups;  // in the second and in the third
  int deepest;           // items of a group in the third dimension
};

struct Driver {
  const char* words = "";     // "the NVIDIA driver"
  const char* language = "";  // "CUDA"
  LaunchLimits limits{};
  uint64_t default_stream = 1;  // the handle of the stream that other libraries use where they name none
  int optin_attribute = 0;      // the bytes that a group may share if it asks for them; 0: all may be used without asking
  runtime::Library library;     // library.trouble(): why it can't be used
#define NARU_DECLARE(field, parameters) Entry<Result parameters> field;
  NARU_GPU_DRIVER(NARU_DECLARE)
  NARU_GPU_CONTEXTS(NARU_DECLARE)
  NARU_GPU_CURRENT_DEVICE(NARU_DECLARE)
  NARU_GPU_GRAPHS(NARU_DECLARE)
#undef NARU_DECLARE
  // For drivers that return an error's texts instead of writing them.
  const char* (*error_word)(Result) = nullptr;
  const char* (*error_sentence)(Result) = nullptr;
  // True for sticky errors: after one, the device can't be used in this process any more.
  bool (*is_lasting)(Result) noexcept = nullptr;

  // Sets an entry to the library's function of this name.
  template <class Signature>
  void find(Entry<Signature>& entry, const char* symbol) {
    entry.symbol = symbol;
    library.find(entry.function, symbol);
  }
  // For a function that older drivers lack.
  template <class Signature>
  void find_optional(Entry<Signature>& entry, const char* symbol) {
    entry.symbol = symbol;
    library.find_optional(entry.function, symbol);
  }

  bool has_graphs() const noexcept {
    return capture_begin && capture_end && graph_instantiate && graph_launch && graph_exec_destroy && graph_destroy;
  }
  // "700 CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)".
  std::string error_text(Result code) const;
};

// A function's name without the number of its version: "cuMemAlloc" of "cuMemAlloc_v2".
std::string_view plain_name(const char* symbol) noexcept;

// True if a call was refused because a thread of this process is capturing a stream: another library's capture may forbid even queries.
constexpr bool is_of_capture(Result code) noexcept { return code >= 900 && code <= 908; }

}  // namespace naru::backends::gpu
