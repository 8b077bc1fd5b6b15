// The parts of Objective-C's run time, Foundation and Metal that naru uses, opened at run time, so building needs no SDK of Apple's. Names of classes and
// messages are Apple's; their types are those of Apple's headers for 64-bit systems.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "runtime/os/library.h"

namespace naru::backends::metal {

using id = struct ObjectTag*;  // classes are objects, too
using SEL = struct SelectorTag*;
using UInteger = size_t;  // NSUInteger; clang-format takes headers with that word for Objective-C
using Integer = ptrdiff_t;
struct MTLSize {
  UInteger width, height, depth;
};

enum : UInteger { MTLResourceStorageModeShared = 0 };
enum : UInteger { MTLCommandBufferStatusCompleted = 4, MTLCommandBufferStatusError = 5 };
enum : Integer { MTLCommandBufferErrorOutOfMemory = 8 };
enum : Integer { MTLGPUFamilyApple7 = 1007 };  // M1
enum : uint32_t { MPSDataTypeFloat16 = 0x10000010, MPSDataTypeFloat32 = 0x10000020 };
enum : Integer { MTLMathModeSafe = 0 };
enum : Integer { MTLMathFloatingPointFunctionsPrecise = 1 };

// F(result, name, parameters): functions of C.
#define NARU_OBJC(F)                      \
  F(id, objc_getClass, (const char*))     \
  F(SEL, sel_registerName, (const char*)) \
  F(void, objc_msgSend, ())               \
  F(id, objc_retain, (id))                \
  F(void, objc_release, (id))             \
  F(void*, objc_autoreleasePoolPush, ())  \
  F(void, objc_autoreleasePoolPop, (void*))

// F(result, name, selector, parameters). What `new...` and `init...` give belongs to the caller; other objects live as long as the current pool.
#define NARU_METAL_MESSAGES(F)                                                                                                   \
  F(id, make, "new", ())                                                                                                         \
  F(id, alloc, "alloc", ())                                                                                                      \
  F(bool, responds, "respondsToSelector:", (SEL))                                                                                \
  /* NSString, NSArray, NSError, NSProcessInfo */                                                                                \
  F(id, string, "stringWithUTF8String:", (const char*))                                                                          \
  F(const char*, utf8, "UTF8String", ())                                                                                         \
  F(UInteger, count, "count", ())                                                                                                \
  F(id, element, "objectAtIndex:", (UInteger))                                                                                   \
  F(id, description, "localizedDescription", ())                                                                                 \
  F(Integer, code, "code", ())                                                                                                   \
  F(id, process, "processInfo", ())                                                                                              \
  F(id, system_version, "operatingSystemVersionString", ())                                                                      \
  /* MTLDevice */                                                                                                                \
  F(id, name, "name", ())                                                                                                        \
  F(id, architecture, "architecture", ())                                                                                        \
  F(uint64_t, registry_id, "registryID", ())                                                                                     \
  F(bool, supports_family, "supportsFamily:", (Integer))                                                                         \
  F(bool, unified, "hasUnifiedMemory", ())                                                                                       \
  F(uint64_t, working_set, "recommendedMaxWorkingSetSize", ())                                                                   \
  F(UInteger, allocated, "currentAllocatedSize", ())                                                                             \
  F(UInteger, largest_buffer, "maxBufferLength", ())                                                                             \
  F(UInteger, group_memory, "maxThreadgroupMemoryLength", ())                                                                    \
  F(id, new_queue, "newCommandQueue", ())                                                                                        \
  F(id, new_buffer, "newBufferWithLength:options:", (UInteger, UInteger))                                                        \
  F(id, new_buffer_of, "newBufferWithBytes:length:options:", (const void*, UInteger, UInteger))                                  \
  F(id, new_event, "newSharedEvent", ())                                                                                         \
  F(id, new_library, "newLibraryWithSource:options:error:", (id, id, id*))                                                       \
  F(id, new_pipeline, "newComputePipelineStateWithFunction:error:", (id, id*))                                                   \
  /* MTLBuffer, MTLCompileOptions, MTLLibrary, MTLComputePipelineState, MTLSharedEvent */                                        \
  F(void*, contents, "contents", ())                                                                                             \
  F(void, set_fast_math, "setFastMathEnabled:", (bool))                                                                          \
  F(void, set_math_mode, "setMathMode:", (Integer))                                                                              \
  F(void, set_math_functions, "setMathFloatingPointFunctions:", (Integer))                                                       \
  F(id, new_function, "newFunctionWithName:", (id))                                                                              \
  F(UInteger, most_threads, "maxTotalThreadsPerThreadgroup", ())                                                                 \
  F(void, set_signaled, "setSignaledValue:", (uint64_t))                                                                         \
  /* MTLCommandQueue, MTLCommandBuffer */                                                                                        \
  F(id, command_buffer, "commandBuffer", ())                                                                                     \
  F(id, encoder, "computeCommandEncoder", ())                                                                                    \
  F(void, signal, "encodeSignalEvent:value:", (id, uint64_t))                                                                    \
  F(void, wait_for, "encodeWaitForEvent:value:", (id, uint64_t))                                                                 \
  F(void, commit, "commit", ())                                                                                                  \
  F(void, wait, "waitUntilCompleted", ())                                                                                        \
  F(UInteger, status, "status", ())                                                                                              \
  F(id, error, "error", ())                                                                                                      \
  F(double, end_time, "GPUEndTime", ())                                                                                          \
  /* MTLComputeCommandEncoder */                                                                                                 \
  F(void, set_pipeline, "setComputePipelineState:", (id))                                                                        \
  F(void, set_buffer, "setBuffer:offset:atIndex:", (id, UInteger, UInteger))                                                     \
  F(void, set_bytes, "setBytes:length:atIndex:", (const void*, UInteger, UInteger))                                              \
  F(void, dispatch, "dispatchThreadgroups:threadsPerThreadgroup:", (MTLSize, MTLSize))                                           \
  F(void, end_encoding, "endEncoding", ())                                                                                       \
  /* MPSMatrixDescriptor, MPSMatrix, MPSMatrixMultiplication */                                                                  \
  F(id, matrix_descriptor, "matrixDescriptorWithRows:columns:matrices:rowBytes:matrixBytes:dataType:",                           \
    (UInteger, UInteger, UInteger, UInteger, UInteger, uint32_t))                                                                \
  F(id, init_matrix, "initWithBuffer:offset:descriptor:", (id, UInteger, id))                                                    \
  F(id, init_multiplication, "initWithDevice:transposeLeft:transposeRight:resultRows:resultColumns:interiorColumns:alpha:beta:", \
    (id, bool, bool, UInteger, UInteger, UInteger, double, double))                                                              \
  F(void, set_batch_size, "setBatchSize:", (UInteger))                                                                           \
  F(void, encode_product, "encodeToCommandBuffer:leftMatrix:rightMatrix:resultMatrix:", (id, id, id, id))

// A message, sent by calling it with the receiver and its arguments.
template <class F>
class Message;
template <class R, class... P>
class Message<R(P...)> {
 public:
  R operator()(id receiver, P... arguments) const;
  SEL selector = nullptr;
};

struct Api {
#define NARU_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  NARU_OBJC(NARU_MEMBER)
#undef NARU_MEMBER
  id (*MTLCopyAllDevices)() = nullptr;
#define NARU_MESSAGE(result, name, selector, parameters) Message<result parameters> name;
  NARU_METAL_MESSAGES(NARU_MESSAGE)
#undef NARU_MESSAGE
  // Of MetalPerformanceShaders; null if that can't be used.
  bool (*MPSSupportsMTLDevice)(id device) = nullptr;
  runtime::Library objc, metal;
  // Why they can't be used; "": they can.
  std::string trouble() const { return objc.trouble().empty() ? metal.trouble() : objc.trouble(); }
  // Opens the system's libraries (or the file that NARU_METAL_LIBRARY names, which then stands for all; NARU_MPS_LIBRARY names one in place of
  // MetalPerformanceShaders).
  static Api open();
};
// The process-wide Api, opened at the first call.
const Api& api();

template <class R, class... P>
R Message<R(P...)>::operator()(id receiver, P... arguments) const {
  return reinterpret_cast<R (*)(id, SEL, P...)>(api().objc_msgSend)(receiver, selector, arguments...);
}

// A reference to an object, given back in the destructor.
class Owned {
 public:
  Owned() = default;
  // Takes over a reference, as `new...` messages give one.
  explicit Owned(id object) noexcept : object_(object) {}
  // A reference of its own to an object that belongs to others.
  static Owned shared(id object) noexcept { return Owned(object ? api().objc_retain(object) : nullptr); }
  Owned(Owned&& o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
  Owned& operator=(Owned o) noexcept {
    std::swap(object_, o.object_);
    return *this;
  }
  ~Owned() {
    if (object_) api().objc_release(object_);
  }
  id get() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  // Never gives the reference back: for processes that were forked.
  void abandon() noexcept { object_ = nullptr; }

 private:
  id object_ = nullptr;
};

// Objects that no one owns live until the innermost Pool of the thread ends.
class Pool {
 public:
  Pool() : pool_(api().objc_autoreleasePoolPush()) {}
  ~Pool() { api().objc_autoreleasePoolPop(pool_); }
  Pool(const Pool&) = delete;

 private:
  void* pool_;
};

std::string text_of(id string);  // "" for null
id string_of(const std::string& text);
// What an NSError says.
std::string words_of(id error);

}  // namespace naru::backends::metal
