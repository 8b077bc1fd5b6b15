// Channels: a byte stream to and from each other rank. Only wait() blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "distributed/socket.h"

namespace naru::distributed {

class Channels {
 public:
  // What to wait for, per peer.
  enum Wanted : uint8_t { kNothing = 0, kInput = 1, kRoom = 2 };

  Channels() = default;
  Channels(const Channels&) = delete;
  virtual ~Channels() = default;
  // Writes as much as fits; returns the number of bytes. The peer may not see them before flush().
  virtual size_t write(int peer, const char* data, size_t n) = 0;
  virtual void flush(int peer) = 0;
  // True if all that was flushed has left this process: the peers get it even if this process is killed now. If not, the epoch changes when
  // it has.
  virtual bool sent() { return true; }
  // The received bytes that are not consumed yet, or the first of them. Until consumed, the span grows to at least 16 bytes as data
  // arrives.
  virtual std::span<const char> look(int peer) = 0;
  virtual void consume(int peer, size_t n) = 0;
  // True if no more data will come, as far as the channel can tell; received data can still be read.
  virtual bool closed(int peer) const = 0;
  // Why a channel is closed: "rank 1 is gone: its connection was closed; its process ended or was killed". It names the rank that is the cause,
  // if that is another.
  virtual std::string trouble(int peer) const;
  // Changes whenever there is new data or room. (Sockets always return 0, because their wait() polls.)
  virtual uint32_t epoch() = 0;
  // Blocks until the epoch differs from `before`, or for at most `milliseconds`. wanted: per peer.
  virtual void wait(uint32_t before, std::span<const uint8_t> wanted, int milliseconds) = 0;
  // Ends a wait, from any thread.
  virtual void wake() = 0;
};

// One connection per peer (none to itself). buffer: bytes that are received at once.
std::unique_ptr<Channels> socket_channels(std::vector<Descriptor> sockets, size_t buffer);

// Ring buffers in memory that all ranks map, two for each pair.
class SharedMemory {
 public:
  // Created by one rank, which keeps `file` open.
  explicit SharedMemory(int ranks);
  // Maps the same memory, by a path to the creator's open file. DistBackendError if it can't be mapped or belongs to another group.
  SharedMemory(int ranks, const std::string& path, uint64_t token);
  SharedMemory(SharedMemory&& o) noexcept;
  ~SharedMemory();
  uint64_t token() const noexcept;
  // "/proc/123/fd/4": the path by which others open it; valid while this object lives.
  std::string path() const;
  // Call when all ranks have mapped it; the file is not needed any more.
  void close_file() noexcept { file_.close(); }
  char* data() const noexcept { return data_; }

 private:
  void map();
  Descriptor file_;
  char* data_ = nullptr;
  size_t bytes_ = 0;
};
std::unique_ptr<Channels> shared_channels(SharedMemory memory, int rank, int ranks);

}  // namespace naru::distributed
