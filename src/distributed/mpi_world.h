// MpiWorld: this process as a rank of MPI, once for all of its groups. One thread makes all calls of MPI, none of which blocks after the
// start: it sends what is posted, hands over what arrives, and sleeps for moments between. Other threads only ever wait for bells. So an error
// is raised in time even if MPI itself hangs, as it may when a rank has died. MPI moves bytes, and tells nothing of deaths: a Watch does.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "distributed/bell.h"
#include "distributed/channels.h"
#include "distributed/mesh.h"
#include "distributed/mpi_library.h"
#include "distributed/watch.h"
#include "naru/condition_variable.h"

namespace naru::distributed {

// Every message of MPI begins with it.
struct MpiHead {
  enum Kind : uint32_t {
    Bytes = 1,  // of a stream
    Room = 2,   // the receiver has consumed the stream up to `at`
    Last = 3,   // the stream ends at `at`; answered by Taken
    Taken = 4   // all of the stream has arrived
  };
  uint64_t stream;  // number of the streams; between any two ranks there is one in each direction
  uint64_t at;      // place in the stream
  uint32_t kind;
  uint32_t bytes;  // that follow, after `at` % 16 bytes of padding
  uint64_t unused;
};
static_assert(sizeof(MpiHead) == 32);

// Memory of one message of MPI.
class MpiBuffer {
 public:
  // Bytes of a stream in one message at most: enough for MPI's own protocols to be fast, and few enough to stay in caches.
  static constexpr size_t kBytes = size_t{128} << 10, kAll = sizeof(MpiHead) + 16 + kBytes;
  MpiBuffer() = default;
  explicit MpiBuffer(size_t bytes) : data_(static_cast<char*>(::operator new (bytes, std::align_val_t{64}))), all_(bytes) {}
  explicit operator bool() const noexcept { return data_ != nullptr; }
  MpiHead& head() const noexcept { return *reinterpret_cast<MpiHead*>(data_.get()); }
  char* all() const noexcept { return data_.get(); }
  // Where the bytes of a stream begin, with the same alignment as their place in it.
  char* bytes() const noexcept { return data_.get() + sizeof(MpiHead) + head().at % 16; }
  size_t used() const noexcept { return sizeof(MpiHead) + head().at % 16 + head().bytes; }
  size_t size() const noexcept { return all_; }

 private:
  struct Free {
    void operator()(char* p) const noexcept { ::operator delete (p, std::align_val_t{64}); }
  };
  std::unique_ptr<char, Free> data_;
  size_t all_ = 0;
};

class MpiWorld {
 public:
  // What gets the messages of one number.
  class Port {
   public:
    virtual ~Port() = default;
    // On MPI's thread. from: rank of the world.
    virtual void arrived(int from, MpiBuffer buffer) = 0;
    // A rank was lost: look at closed() again.
    virtual void changed() noexcept = 0;
  };

  // Why a group can't use MPI: a rank has no library, or the ranks have started MPI with others; "" if it can. Each rank of the group calls
  // it, and gets the same.
  static std::string obstacle(RollCall& roll);
  // The world of this process; started if it is not yet, with the ranks of this group. Each rank of the group calls it, if there is no
  // obstacle. From then on `roll` does not wait for ranks that are gone. Throws DistBackendError if MPI does not start.
  static MpiWorld& join(RollCall& roll, Mesh& mesh);
  // Ranks of the world for those of a group whose members have called join().
  std::vector<int> ranks_of(RollCall& roll) const;

  void add(uint64_t number, Port& port);
  void remove(uint64_t number);
  // A buffer of MpiBuffer::kAll bytes; and back.
  MpiBuffer take();
  void give(MpiBuffer buffer);
  // Sends buffer.used() bytes.
  void post(int to, MpiBuffer buffer);
  void post(int to, const MpiHead& head);
  // True if all that was posted has been sent. If not, changed() is called on all ports when it has.
  bool all_sent() noexcept;
  // True if nothing will come from a rank any more: it has ended; or another has died, so MPI can't be used.
  bool lost(int rank) const noexcept { return losses_[static_cast<size_t>(rank)].settled.load(std::memory_order_acquire); }
  // True if a rank has died.
  bool broken() const noexcept { return broken_.load(std::memory_order_acquire); }
  // The rank that was lost first, shortly before `rank` or with it, and why; "" if `rank` is not lost.
  std::pair<int, std::string> cause_of_loss(int rank) const;
  // While a thread waits for data, MPI is asked more often.
  void begin_waiting() noexcept { waiting_.fetch_add(1); }
  void end_waiting() noexcept { waiting_.fetch_sub(1); }

 private:
  enum class State { Starting, Running, Failed, Stopped };
  struct Loss {
    std::atomic<bool> settled{false};
    std::atomic<uint64_t> last_pass{0};  // of MPI's thread in which something came from it
    std::atomic<bool> told{false};
    bool in_order = false;
    uint64_t pass = 0;  // when it was told
    Clock::time_point at;
    std::string why;
    void tell(const std::string& reason, uint64_t now) { why = reason, pass = now, at = Clock::now(), told = true; }
  };
  struct Posted {
    int to;
    MpiBuffer buffer;
  };

  MpiWorld(RollCall& roll, Mesh& mesh);
  void start(RollCall& roll, const std::vector<std::string>& hosts);
  // Throws DistBackendError if a rank is lost.
  void look() const;
  void run();
  bool start_library();
  bool send_posted();
  void count_sent();
  void tell_ports();
  bool finish_sends();
  bool receive_some();
  void hand_over(size_t index, int from, size_t bytes);
  void receive(size_t index);
  void rest(Clock::time_point last_moved, uint32_t before);
  void fail(const std::string& what, int error);
  void set_state(State state, const std::string& text = {});
  void lose(int rank, const std::string& why, bool in_order);
  void settle_losses();
  void stop_at_exit(int status) noexcept;

  static constexpr size_t kReceives = 16;
  const MpiLibrary& mpi_;
  const int rank_, size_, generation_;
  std::string name_;  // of this start of MPI: equal on all of its ranks
  int crowd_ = 1;     // ranks on this host for each processor

  mutable std::mutex mutex_;  // guards state_, trouble_ and what losses_ has
  ConditionVariable changed_;
  State state_ = State::Starting;
  std::string trouble_;
  std::vector<Loss> losses_;
  Clock::time_point failed_at_;
  std::atomic<bool> broken_{false}, failed_{false}, stopping_{false};

  std::mutex posted_mutex_, free_mutex_, ports_mutex_;
  std::vector<Posted> posted_;
  std::atomic<int64_t> unsent_{0};
  std::atomic<bool> tells_when_sent_{false};
  std::vector<MpiBuffer> free_;
  std::map<uint64_t, Port*> ports_;
  Bell bell_;
  std::atomic<int> waiting_{0};

  // MPI's thread only.
  std::atomic<uint64_t> pass_{0};
  std::vector<Posted> sending_;
  std::vector<MpiHandle> sends_, receives_;
  std::vector<MpiBuffer> sent_, received_;
  std::vector<int> indices_;
  std::vector<MpiStatus> statuses_;

  std::unique_ptr<Watch> watch_;
  std::thread thread_;
};

// Streams of bytes between the ranks of a group; number: agreed on by all, used once. ranks: of the world.
std::unique_ptr<Channels> mpi_channels(MpiWorld& world, uint64_t number, std::vector<int> ranks, int rank);

}  // namespace naru::distributed
