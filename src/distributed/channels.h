// Channels: a stream of bytes to, and one from, each other rank. Nothing here waits but wait().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "distributed/socket.h"

namespace naru::distributed {

class Channels {
 public:
  // What is waited for, of a peer.
  enum Wanted : uint8_t { kNothing = 0, kInput = 1, kRoom = 2 };

  Channels() = default;
  Channels(const Channels&) = delete;
  virtual ~Channels() = default;
  // Writes as much as there is room for; how much. Nobody need see it before flush().
  virtual size_t write(int peer, const char* data, size_t n) = 0;
  virtual void flush(int peer) = 0;
  // What has come and is not consumed, or the beginning of it. It grows up to 16 bytes and more while it is not consumed.
  virtual std::span<const char> look(int peer) = 0;
  virtual void consume(int peer, size_t n) = 0;
  // Whether nothing more will come (what has come may still be looked at), as far as the channel itself sees it.
  virtual bool closed(int peer) const = 0;
  // Changes whenever there is something new to look at.
  virtual uint32_t epoch() = 0;
  // Until the epoch is another one than `before`, or for so many milliseconds. wanted: by peer.
  virtual void wait(uint32_t before, std::span<const uint8_t> wanted, int milliseconds) = 0;
  // Ends a wait, from any thread.
  virtual void wake() = 0;
};

// One connection a peer (none to itself).
std::unique_ptr<Channels> tcp_channels(std::vector<Descriptor> sockets);

// Rings in memory that all ranks map, two for each pair.
class SharedMemory {
 public:
  // Made by one rank; `file` is open in it.
  explicit SharedMemory(int ranks);
  // The same memory, by a path to the maker's open file. DistBackendError where it can't be mapped, or is another one.
  SharedMemory(int ranks, const std::string& path, uint64_t token);
  SharedMemory(SharedMemory&& o) noexcept;
  ~SharedMemory();
  uint64_t token() const noexcept;
  // "/proc/123/fd/4": by which others open it, as long as this one lives.
  std::string path() const;
  // The file is not needed any more when all have mapped it.
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
