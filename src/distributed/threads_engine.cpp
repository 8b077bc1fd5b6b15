// Ranks that are threads of one process: streams of bytes in its memory, guarded by one mutex for each receiver. For tests, and for programs
// that try a distributed algorithm without processes.
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "naru/condition_variable.h"

#include "distributed/engine.h"

namespace naru::distributed {
namespace {

// A stream in a ring of fixed size. A multiple of 16 bytes, so no element is divided at the end.
class Stream {
 public:
  size_t write(const char* data, size_t n) {
    n = std::min(n, kBytes - size_);
    for (size_t done = 0; done < n;) {
      const size_t at = (begin_ + size_) % kBytes, piece = std::min(n - done, kBytes - at);
      std::memcpy(bytes_.get() + at, data + done, piece);
      done += piece, size_ += piece;
    }
    return n;
  }
  std::span<const char> look() const { return {bytes_.get() + begin_, std::min(size_, kBytes - begin_)}; }
  void consume(size_t n) { begin_ = (begin_ + n) % kBytes, size_ -= n; }

 private:
  static constexpr size_t kBytes = size_t{64} << 10;
  std::unique_ptr<char[]> bytes_ = std::make_unique<char[]>(kBytes);
  size_t begin_ = 0, size_ = 0;
};

// What the ranks of one group share.
struct Meeting {
  explicit Meeting(int ranks) : size(ranks), places(static_cast<size_t>(ranks)), sockets(static_cast<size_t>(ranks)) {
    for (Place& p : places) p.from = std::vector<Stream>(static_cast<size_t>(ranks));
    for (auto& row : sockets) row.resize(static_cast<size_t>(ranks));
    for (size_t a = 0; a < places.size(); ++a)
      for (size_t b = a + 1; b < places.size(); ++b) {
        int pair[2];
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
          throw DistBackendError("the ranks of a group of threads can't be joined: {}", words_for(errno));
        sockets[a][b] = Descriptor(pair[0]), sockets[b][a] = Descriptor(pair[1]);
      }
  }
  struct Place {
    std::mutex mutex;
    ConditionVariable changed;
    uint32_t epoch = 0;
    std::vector<Stream> from;
  };
  void ring(int rank) {
    Place& p = places[static_cast<size_t>(rank)];
    const std::lock_guard lock(p.mutex);
    ++p.epoch;
    p.changed.notify_all();
  }
  const int size;
  std::vector<Place> places;
  std::vector<std::vector<Descriptor>> sockets;  // for messages; each rank takes its row
};

class ThreadChannels final : public Channels {
 public:
  ThreadChannels(std::shared_ptr<Meeting> meeting, int rank) : meeting_(std::move(meeting)), rank_(rank) {}
  size_t write(int peer, const char* data, size_t n) override {
    Meeting::Place& p = place(peer);
    const std::lock_guard lock(p.mutex);
    return p.from[static_cast<size_t>(rank_)].write(data, n);
  }
  void flush(int peer) override { meeting_->ring(peer); }
  std::span<const char> look(int peer) override {
    Meeting::Place& mine = place(rank_);
    const std::lock_guard lock(mine.mutex);
    return mine.from[static_cast<size_t>(peer)].look();
  }
  void consume(int peer, size_t n) override {
    {
      Meeting::Place& mine = place(rank_);
      const std::lock_guard lock(mine.mutex);
      mine.from[static_cast<size_t>(peer)].consume(n);
    }
    meeting_->ring(peer);  // which may wait for room
  }
  bool closed(int) const override { return false; }  // the messages' connections tell
  uint32_t epoch() override {
    Meeting::Place& mine = place(rank_);
    const std::lock_guard lock(mine.mutex);
    return mine.epoch;
  }
  void wait(uint32_t before, std::span<const uint8_t>, int milliseconds) override {
    Meeting::Place& mine = place(rank_);
    std::unique_lock lock(mine.mutex);
    mine.changed.wait_for(lock, Milliseconds(milliseconds), [&] { return mine.epoch != before; });
  }
  void wake() override { meeting_->ring(rank_); }

 private:
  Meeting::Place& place(int rank) { return meeting_->places[static_cast<size_t>(rank)]; }
  const std::shared_ptr<Meeting> meeting_;
  const int rank_;
};

class Threads final : public Engine {
 public:
  Threads(const std::shared_ptr<Meeting>& meeting, int rank)
      : channels_(meeting, rank),
        messages_(socket_channels(std::move(meeting->sockets[static_cast<size_t>(rank)]), kMessageBuffer), rank, meeting->size,
                  [this] { channels_.wake(); }) {}
  std::string name() const override { return "threads"; }
  Channels* channels() noexcept override { return &channels_; }
  Messages* messages() noexcept override { return &messages_; }

 private:
  ThreadChannels channels_;
  Messages messages_;
};

// The meetings of this process, by their numbers. A rank of another process finds none.
struct Meetings {
  std::mutex mutex;
  std::map<uint64_t, std::weak_ptr<Meeting>> by_number;
};
Meetings& meetings() {
  static auto& all = *new Meetings;
  return all;
}

}  // namespace

std::unique_ptr<Engine> threads_engine(Store& store, int rank, int size, Milliseconds) {
  Meetings& all = meetings();
  std::shared_ptr<Meeting> mine;
  if (rank == 0) {
    mine = std::make_shared<Meeting>(size);
    const uint64_t number = random_token();
    {
      const std::lock_guard lock(all.mutex);
      std::erase_if(all.by_number, [](const auto& each) { return each.second.expired(); });
      all.by_number[number] = mine;
    }
    store.set("meeting", std::to_string(number));
  } else {
    const uint64_t number = std::stoull(store.get("meeting"));
    const std::lock_guard lock(all.mutex);
    if (const auto found = all.by_number.find(number); found != all.by_number.end()) mine = found->second.lock();
    if (!mine || mine->size != size)
      throw DistBackendError("rank {} is in another process than rank 0: the engine \"threads\" joins threads of one process", rank);
  }
  return std::make_unique<Threads>(mine, rank);
}

}  // namespace naru::distributed
