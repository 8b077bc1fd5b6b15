// The part of NVIDIA's NCCL that naru uses, which AMD's RCCL has by the same names and numbers. They are opened at run time, so building needs
// neither. Names and numbers are NCCL's own (a test compares them with its header, if one is found).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "backends/gpu/device.h"
#include "backends/gpu/driver.h"
#include "backends/gpu/vendor_library.h"
#include "runtime/device/communicators.h"

namespace naru::backends::gpu {

using ncclResult_t = int;
using ncclComm_t = struct NcclCommTag*;
struct ncclUniqueId {
  char internal[128];
};
// The library takes the configuration of any earlier version of its own; this is the first that has `blocking`.
struct ncclConfig_t {
  size_t size = sizeof(ncclConfig_t);
  unsigned magic = 0xcafebeef, version = 21400;
  int blocking = 1;
};

#define NARU_NCCL_STATUSES(F)  \
  F(ncclSuccess, 0)            \
  F(ncclUnhandledCudaError, 1) \
  F(ncclSystemError, 2)        \
  F(ncclInternalError, 3)      \
  F(ncclInvalidArgument, 4)    \
  F(ncclInvalidUsage, 5)       \
  F(ncclRemoteError, 6)        \
  F(ncclInProgress, 7)

enum : int { NARU_NCCL_STATUSES(NARU_ENUMERATOR) };
enum : int {
  ncclInt8 = 0,
  ncclUint8 = 1,
  ncclInt32 = 2,
  ncclUint32 = 3,
  ncclInt64 = 4,
  ncclUint64 = 5,
  ncclFloat16 = 6,
  ncclFloat32 = 7,
  ncclFloat64 = 8,
  ncclBfloat16 = 9,

  ncclSum = 0,
  ncclProd = 1,
  ncclMax = 2,
  ncclMin = 3,
  ncclAvg = 4,
};

#define NARU_NCCL(F)                                                                                                   \
  F(int, ncclGetVersion, (int*))                                                                                       \
  F(int, ncclGetUniqueId, (ncclUniqueId*))                                                                             \
  F(int, ncclCommInitRankConfig, (ncclComm_t*, int size, ncclUniqueId, int rank, ncclConfig_t*))                       \
  F(int, ncclCommFinalize, (ncclComm_t))                                                                               \
  F(int, ncclCommDestroy, (ncclComm_t))                                                                                \
  F(int, ncclCommAbort, (ncclComm_t))                                                                                  \
  F(int, ncclCommGetAsyncError, (ncclComm_t, ncclResult_t*))                                                           \
  F(const char*, ncclGetLastError, (ncclComm_t))                                                                       \
  F(int, ncclAllReduce, (const void* from, void* to, size_t count, int type, int op, ncclComm_t, StreamHandle))        \
  F(int, ncclReduce, (const void* from, void* to, size_t count, int type, int op, int root, ncclComm_t, StreamHandle)) \
  F(int, ncclBroadcast, (const void* from, void* to, size_t count, int type, int root, ncclComm_t, StreamHandle))      \
  F(int, ncclAllGather, (const void* from, void* to, size_t count, int type, ncclComm_t, StreamHandle))                \
  F(int, ncclReduceScatter, (const void* from, void* to, size_t count, int type, int op, ncclComm_t, StreamHandle))    \
  F(int, ncclSend, (const void* from, size_t count, int type, int peer, ncclComm_t, StreamHandle))                     \
  F(int, ncclRecv, (void* to, size_t count, int type, int peer, ncclComm_t, StreamHandle))                             \
  F(int, ncclGroupStart, ())                                                                                           \
  F(int, ncclGroupEnd, ())

struct NcclFunctions {
  static constexpr Status kStatuses[] = NARU_STATUSES(NARU_NCCL_STATUSES);
  static constexpr int kMajor = 10000;
  runtime::Library library;
  NARU_FUNCTIONS(NARU_NCCL)

  int version() const {
    int v = 0;
    return ncclGetVersion && ncclGetVersion(&v) == ncclSuccess ? v : 0;
  }
  int cuda() const { return 0; }  // it does not say
};

// Thread-safe.
class NcclCommunicators final : public runtime::Communicators {
 public:
  // library: of the functions NCCL or RCCL, for these devices.
  template <VendorFunctions F>
  NcclCommunicators(GpuDevices& devices, const VendorLibrary<F>& library)
      : devices_(devices),
        label_(label_of(F::kProduct)),
        functions_([&library] { return static_cast<const NcclFunctions*>(library.get()); }),
        text_([&library] { return library.text(); }) {}
  std::string name() const override;
  std::string trouble() const override { return functions_() ? "" : text_(); }
  std::string make_id() override;
  std::shared_ptr<Communicator> join(Device device, const std::string& id, int rank, int size, std::function<void()> look) override;

 private:
  const NcclFunctions& functions() const;
  GpuDevices& devices_;
  const char* const label_;
  const std::function<const NcclFunctions*()> functions_;
  const std::function<std::string()> text_;
};

}  // namespace naru::backends::gpu
