// Channels through shared memory: a ring buffer for each ordered pair of ranks, and a bell (an event counter) per rank, which others ring
// when there is new data or room for it. A waiting rank spins first, then sleeps on its bell (futex). Large messages pass through the
// rings in pieces.
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <new>

#include "distributed/channels.h"
#include "runtime/os/system.h"

namespace naru::distributed {
namespace {

constexpr size_t kLine = 64;

struct alignas(kLine) Bell {
  std::atomic<uint32_t> rung{0};
  std::atomic<uint32_t> asleep{0};
};
// Total bytes written and read. The writer's and the reader's counters are on separate cache lines.
struct alignas(kLine) Ring {
  std::atomic<uint64_t> written{0};
  alignas(kLine) std::atomic<uint64_t> read{0};
  alignas(kLine) std::atomic<uint32_t> wants_room{0};
};
struct alignas(kLine) Head {
  std::atomic<uint64_t> token{0};
};
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

// A power of two. A large ring lets a rank go on while another does not run; but all that a rank writes should stay in the caches, and the
// number of rings grows as the square of the ranks.
size_t ring_bytes(int ranks) {
  const size_t kib = ranks == 2 ? 1024 : ranks == 3 ? 512 : ranks <= 8 ? 256 : 32;
  return kib << 10;
}
size_t rings_at(int ranks) { return sizeof(Head) + static_cast<size_t>(ranks) * sizeof(Bell); }
size_t ring_stride(int ranks) { return sizeof(Ring) + ring_bytes(ranks); }
size_t all_bytes(int ranks) { return rings_at(ranks) + static_cast<size_t>(ranks) * static_cast<size_t>(ranks) * ring_stride(ranks); }

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class SharedChannels final : public Channels {
 public:
  SharedChannels(SharedMemory memory, int rank, int ranks)
      : memory_(std::move(memory)),
        rank_(rank),
        ranks_(ranks),
        bytes_(ring_bytes(ranks)),
        most_spins_(ranks > runtime::system::processors() ? kLeastSpins : kSpins),
        spins_(most_spins_) {}

  size_t write(int peer, const char* data, size_t n) override {
    Ring& r = ring(rank_, peer);
    const uint64_t at = r.written.load(std::memory_order_relaxed);
    size_t room = bytes_ - static_cast<size_t>(at - r.read.load(std::memory_order_acquire));
    if (room < n) {
      // From now on the reader rings when it makes room; room that it made before is seen by the second read.
      r.wants_room.store(1, std::memory_order_seq_cst);
      room = bytes_ - static_cast<size_t>(at - r.read.load(std::memory_order_seq_cst));
    }
    n = std::min(n, room);
    if (!n) return 0;
    const size_t begin = static_cast<size_t>(at) & (bytes_ - 1), first = std::min(n, bytes_ - begin);
    std::memcpy(bytes(r) + begin, data, first);
    std::memcpy(bytes(r), data + first, n - first);
    r.written.store(at + n, std::memory_order_release);
    return n;
  }
  void flush(int peer) override { ring_bell(peer); }

  std::span<const char> look(int peer) override {
    Ring& r = ring(peer, rank_);
    const uint64_t at = r.read.load(std::memory_order_relaxed), end = r.written.load(std::memory_order_acquire);
    const size_t begin = static_cast<size_t>(at) & (bytes_ - 1);
    return {bytes(r) + begin, std::min(static_cast<size_t>(end - at), bytes_ - begin)};
  }
  void consume(int peer, size_t n) override {
    Ring& r = ring(peer, rank_);
    r.read.store(r.read.load(std::memory_order_relaxed) + n, std::memory_order_seq_cst);
    if (r.wants_room.load(std::memory_order_seq_cst) && r.wants_room.exchange(0, std::memory_order_seq_cst)) ring_bell(peer);
  }
  bool closed(int) const override { return false; }  // the group's connections detect that

  uint32_t epoch() override { return bell(rank_).rung.load(std::memory_order_seq_cst); }
  void wait(uint32_t before, std::span<const uint8_t>, int milliseconds) override {
    Bell& mine = bell(rank_);
    // Longer after spinning has helped, and shorter after it has not: the awaited rank may need this one's processor.
    for (int i = 0; i < spins_; ++i) {
      if (mine.rung.load(std::memory_order_acquire) != before) {
        spins_ = std::min(most_spins_, spins_ * 2);
        return;
      }
      pause();
    }
    spins_ = std::max(kLeastSpins, spins_ / 2);
    for (int i = 0; i < kYields; ++i) {
      sched_yield();
      if (mine.rung.load(std::memory_order_acquire) != before) return;
    }
    mine.asleep.store(1, std::memory_order_seq_cst);
    const timespec time{milliseconds / 1000, (milliseconds % 1000) * 1'000'000L};
    if (mine.rung.load(std::memory_order_seq_cst) == before) syscall(SYS_futex, &mine.rung, FUTEX_WAIT, before, &time, nullptr, 0);
    mine.asleep.store(0, std::memory_order_seq_cst);
  }
  void wake() override { ring_bell(rank_); }

 private:
  static constexpr int kSpins = 2000, kLeastSpins = 50, kYields = 20;
  Bell& bell(int of) { return reinterpret_cast<Bell*>(memory_.data() + sizeof(Head))[of]; }
  Ring& ring(int from, int to) {
    return *reinterpret_cast<Ring*>(memory_.data() + rings_at(ranks_) + static_cast<size_t>(from * ranks_ + to) * ring_stride(ranks_));
  }
  static char* bytes(Ring& r) { return reinterpret_cast<char*>(&r + 1); }
  void ring_bell(int of) {
    Bell& b = bell(of);
    b.rung.fetch_add(1, std::memory_order_seq_cst);
    if (b.asleep.load(std::memory_order_seq_cst)) syscall(SYS_futex, &b.rung, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  SharedMemory memory_;
  int rank_, ranks_;
  size_t bytes_;
  const int most_spins_;
  int spins_;
};

}  // namespace

SharedMemory::SharedMemory(int ranks) : file_(runtime::system::new_shared_file(all_bytes(ranks))), bytes_(all_bytes(ranks)) {
  if (!file_) throw DistBackendError("shared memory can't be made: {}", words_for(errno));
  map();
  // The pages are zero-filled, which is a valid initial state of bells and rings.
  new (data_) Head;
  reinterpret_cast<Head*>(data_)->token = random_token() | 1;
}

SharedMemory::SharedMemory(int ranks, const std::string& path, uint64_t token)
    : file_(::open(path.c_str(), O_RDWR | O_CLOEXEC)), bytes_(all_bytes(ranks)) {
  if (!file_) throw DistBackendError("shared memory can't be opened: {}", words_for(errno));
  if (::lseek(file_.get(), 0, SEEK_END) != static_cast<off_t>(bytes_)) throw DistBackendError("shared memory is not that of this group");
  map();
  if (this->token() == token) return;
  runtime::system::unmap_shared(data_, bytes_);
  data_ = nullptr;
  throw DistBackendError("shared memory is not that of this group");
}

SharedMemory::SharedMemory(SharedMemory&& o) noexcept
    : file_(std::move(o.file_)), data_(std::exchange(o.data_, nullptr)), bytes_(o.bytes_) {}

SharedMemory::~SharedMemory() {
  if (data_) runtime::system::unmap_shared(data_, bytes_);
}

void SharedMemory::map() {
  data_ = static_cast<char*>(runtime::system::map_shared(file_.get(), bytes_));
  if (!data_) throw DistBackendError("shared memory can't be mapped: {}", words_for(errno));
}

uint64_t SharedMemory::token() const noexcept { return reinterpret_cast<const Head*>(data_)->token.load(); }
std::string SharedMemory::path() const { return "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(file_.get()); }

std::unique_ptr<Channels> shared_channels(SharedMemory memory, int rank, int ranks) {
  memory.close_file();
  return std::make_unique<SharedChannels>(std::move(memory), rank, ranks);
}

}  // namespace naru::distributed
