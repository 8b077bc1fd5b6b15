#include "backends/gpu/nccl.h"

#include <cstring>
#include <thread>

#include "naru/error.h"

namespace naru::backends::gpu {
namespace {

int number_of(DType type) {
  if (type == kUInt32) return ncclUint32;
  if (type == kUInt64) return ncclUint64;
  switch (type) {
    case DType::I8:
      return ncclInt8;
    case DType::U8:
      return ncclUint8;
    case DType::I32:
      return ncclInt32;
    case DType::I64:
      return ncclInt64;
    case DType::F16:
      return ncclFloat16;
    case DType::F32:
      return ncclFloat32;
    case DType::F64:
      return ncclFloat64;
    case DType::BF16:
      return ncclBfloat16;
    default:
      throw TypeError("NCCL has no {}", naru::name_of(type));
  }
}
int number_of(Communicator::Op op) { return static_cast<int>(op); }
static_assert(static_cast<int>(Communicator::Op::Sum) == ncclSum && static_cast<int>(Communicator::Op::Product) == ncclProd &&
              static_cast<int>(Communicator::Op::Max) == ncclMax && static_cast<int>(Communicator::Op::Min) == ncclMin &&
              static_cast<int>(Communicator::Op::Average) == ncclAvg);

// Its calls do not block: one that needs other ranks says ncclInProgress, and until that has ended no other call is allowed but abort. So a
// rank that ends while others set up connections to it is noticed even if the library does not notice it.
class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(GpuDevice& device, const NcclFunctions& nccl, const char* label, const ncclUniqueId& id, int rank, int size,
                   std::function<void()> look)
      : device_(device), nccl_(nccl), label_(label), size_(size), look_(std::move(look)) {
    device_.check_usable();
    const GpuDevice::Current scope(device_);
    ncclConfig_t config;
    config.blocking = 0;
    Lock lock(mutex_);
    const ncclResult_t begun = nccl_.ncclCommInitRankConfig(&comm_, size, id, rank, &config);
    if (begun != ncclInProgress && begun != ncclSuccess) {
      const std::string why = last_error();  // the library may also describe a failed initialization
      end(lock);
      throw RuntimeError("{}: ncclCommInitRankConfig failed: {}{}", label_, status_name<NcclFunctions>(begun), why);
    }
    try {
      settle(begun, "ncclCommInitRankConfig", lock);
    } catch (...) {
      end(lock);
      throw;
    }
  }
  ~NcclCommunicator() override {
    if (!comm_ || device_.forked()) return;
    const GpuDevice::Current scope(device_, std::nothrow);
    if (!scope || device_.lost()) return;
    Lock lock(mutex_);
    if (unsettled_) {  // a call that failed may still be under way, and then nothing but abort is allowed
      end(lock);
      return;
    }
    // Other ranks may have died, so finalizing is bounded in time.
    look_ = [label = label_, until = std::chrono::steady_clock::now() + std::chrono::seconds(5)] {
      if (std::chrono::steady_clock::now() > until) throw RuntimeError("{}: the other ranks do not end their communicators", label);
    };
    try {
      settle(nccl_.ncclCommFinalize(comm_), "ncclCommFinalize", lock);
      nccl_.ncclCommDestroy(std::exchange(comm_, nullptr));
    } catch (const std::exception&) {
      end(lock);
    }
  }

  int size() const noexcept override { return size_; }

  void enqueue(std::span<const Call> calls, uint64_t stream) override {
    Lock lock(mutex_);
    require();
    begin("ncclGroupStart", nccl_.ncclGroupStart());
    ncclResult_t refused = ncclSuccess;
    for (const Call& call : calls) {
      const ncclResult_t said = start(call, reinterpret_cast<StreamHandle>(static_cast<uintptr_t>(stream)));
      if (said != ncclSuccess && said != ncclInProgress && refused == ncclSuccess) refused = said;
    }
    const ncclResult_t ended = nccl_.ncclGroupEnd();
    if (refused != ncclSuccess) fail("a call", refused);
    settle(ended, "ncclGroupEnd", lock);
  }

  std::string trouble() override {
    const Lock lock(mutex_, std::try_to_lock);
    if (!lock || !comm_ || device_.forked()) return "";
    ncclResult_t said = ncclSuccess;
    const ncclResult_t asked = nccl_.ncclCommGetAsyncError(comm_, &said);
    if (asked != ncclSuccess) said = asked;
    return said == ncclSuccess || said == ncclInProgress
               ? ""
               : std::string(label_) + " reports " + status_name<NcclFunctions>(said) + last_error();
  }

  void abort() noexcept override {
    aborted_ = true;
    if (device_.forked()) return;
    const GpuDevice::Current scope(device_, std::nothrow);
    if (!scope) return;
    Lock lock(mutex_);
    end(lock);
  }

 private:
  using Lock = std::unique_lock<std::mutex>;

  ncclResult_t start(const Call& c, StreamHandle stream) {
    const int type = number_of(c.type), op = number_of(c.op);
    switch (c.what) {
      case What::AllReduce:
        return nccl_.ncclAllReduce(c.from, c.to, c.count, type, op, comm_, stream);
      case What::Reduce:
        return nccl_.ncclReduce(c.from, c.to, c.count, type, op, c.peer, comm_, stream);
      case What::Broadcast:
        return nccl_.ncclBroadcast(c.from, c.to, c.count, type, c.peer, comm_, stream);
      case What::AllGather:
        return nccl_.ncclAllGather(c.from, c.to, c.count, type, comm_, stream);
      case What::ReduceScatter:
        return nccl_.ncclReduceScatter(c.from, c.to, c.count, type, op, comm_, stream);
      case What::Send:
        return nccl_.ncclSend(c.from, c.count, type, c.peer, comm_, stream);
      case What::Receive:
        return nccl_.ncclRecv(c.to, c.count, type, c.peer, comm_, stream);
    }
    return ncclInvalidArgument;
  }

  void require() const {
    device_.check_usable();
    if (aborted_ || !comm_) throw RuntimeError("{}: the communicator was aborted", label_);
  }
  // ": " and the library's last error message, or nothing.
  std::string last_error() const {
    const char* const words = nccl_.ncclGetLastError(comm_);
    return words && *words ? std::string(": ") + words : std::string();
  }
  [[noreturn]] void fail(const char* function, ncclResult_t said) const {
    throw RuntimeError("{}: {} failed: {}{}", label_, function, status_name<NcclFunctions>(said), last_error());
  }
  void begin(const char* function, ncclResult_t said) const {
    if (said != ncclSuccess) fail(function, said);
  }
  // Waits until a call that returned ncclInProgress has ended. Releases the lock while it sleeps, so that abort() can get it.
  void settle(ncclResult_t said, const char* function, Lock& lock) {
    unsettled_ = true;
    for (auto nap = std::chrono::microseconds(20); said == ncclInProgress; nap = std::min(nap * 2, std::chrono::microseconds(1000))) {
      lock.unlock();
      std::this_thread::sleep_for(nap);
      look_();
      lock.lock();
      require();
      begin("ncclCommGetAsyncError", nccl_.ncclCommGetAsyncError(comm_, &said));
    }
    begin(function, said);
    unsettled_ = false;
  }
  void end(Lock&) noexcept {
    if (comm_ && !device_.lost()) nccl_.ncclCommAbort(std::exchange(comm_, nullptr));
  }

  GpuDevice& device_;
  const NcclFunctions& nccl_;
  const char* const label_;
  const int size_;
  std::function<void()> look_;
  std::mutex mutex_;
  std::atomic<bool> aborted_{false};
  bool unsettled_ = false;  // a call has not ended well; guarded by the mutex
  ncclComm_t comm_ = nullptr;
};

}  // namespace

const NcclFunctions& NcclCommunicators::functions() const {
  const NcclFunctions* const f = functions_();
  if (!f) throw RuntimeError("{}", text_());
  return *f;
}

std::string NcclCommunicators::name() const { return functions(), text_(); }

std::string NcclCommunicators::make_id() {
  const NcclFunctions& f = functions();
  ncclUniqueId id{};
  if (const ncclResult_t said = f.ncclGetUniqueId(&id); said != ncclSuccess) {
    const char* const words = f.ncclGetLastError(nullptr);
    throw RuntimeError("{}: ncclGetUniqueId failed: {}: {}", label_, status_name<NcclFunctions>(said), words ? words : "");
  }
  return {id.internal, sizeof id.internal};
}

std::shared_ptr<Communicator> NcclCommunicators::join(Device device, const std::string& id, int rank, int size,
                                                      std::function<void()> look) {
  ncclUniqueId given{};
  if (id.size() != sizeof given.internal) throw ValueError("{}: an id has {} bytes, got {}", label_, sizeof given.internal, id.size());
  std::memcpy(given.internal, id.data(), id.size());
  return std::make_shared<NcclCommunicator>(devices_.at(device), functions(), label_, given, rank, size, std::move(look));
}

}  // namespace naru::backends::gpu
