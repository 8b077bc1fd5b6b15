// Channels over sockets.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "distributed/channels.h"

namespace naru::distributed {
namespace {

constexpr size_t kBuffer = size_t{256} << 10;

class TcpChannels final : public Channels {
 public:
  explicit TcpChannels(std::vector<Descriptor> sockets) : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    for (Descriptor& socket : sockets) peers_.push_back({std::move(socket), {}, 0, 0, false});
  }

  size_t write(int peer, const char* data, size_t n) override {
    Peer& p = at(peer);
    size_t done = 0;
    while (done < n) {
      const ssize_t m = ::send(p.socket.get(), data + done, n - done, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (m > 0) {
        done += static_cast<size_t>(m);
        continue;
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) p.broken = true;
      break;
    }
    return done;
  }
  void flush(int) override {}

  std::span<const char> look(int peer) override {
    Peer& p = at(peer);
    if (p.end - p.begin < 16 && !p.closed) fill(p);
    return {p.buffer.get() + p.begin, p.end - p.begin};
  }
  void consume(int peer, size_t n) override {
    Peer& p = at(peer);
    p.begin += n;
    if (p.begin == p.end) p.begin = p.end = 0;
  }
  bool closed(int peer) const override {
    const Peer& p = peers_[static_cast<size_t>(peer)];
    return p.closed || p.broken;
  }

  uint32_t epoch() override { return 0; }
  void wait(uint32_t, std::span<const uint8_t> wanted, int milliseconds) override {
    polled_.assign({{wake_.get(), POLLIN, 0}});
    for (size_t i = 0; i < peers_.size(); ++i) {
      const auto events = static_cast<short>((wanted[i] & kInput ? POLLIN : 0) | (wanted[i] & kRoom ? POLLOUT : 0));
      if (events && !closed(static_cast<int>(i))) polled_.push_back({peers_[i].socket.get(), events, 0});
    }
    // Poll first without blocking: data that the kernel hands over at once costs less than sleeping.
    for (int i = 0; i < kLooks; ++i)
      if (::poll(polled_.data(), polled_.size(), 0) != 0) return drain();
    ::poll(polled_.data(), polled_.size(), milliseconds);
    drain();
  }
  void wake() override {
    const uint64_t one = 1;
    static_cast<void>(!::write(wake_.get(), &one, sizeof one));
  }

 private:
  static constexpr int kLooks = 20;
  struct Peer {
    Descriptor socket;
    std::unique_ptr<char[]> buffer;
    size_t begin = 0, end = 0;
    bool closed = false, broken = false;
  };
  Peer& at(int peer) { return peers_[static_cast<size_t>(peer)]; }
  void drain() {
    uint64_t n = 0;
    if (polled_[0].revents) static_cast<void>(!::read(wake_.get(), &n, sizeof n));
  }
  void fill(Peer& p) {
    if (!p.buffer) p.buffer = std::make_unique_for_overwrite<char[]>(kBuffer);
    if (p.begin) std::memmove(p.buffer.get(), p.buffer.get() + p.begin, p.end - p.begin);
    p.end -= p.begin, p.begin = 0;
    for (;;) {
      const ssize_t n = ::recv(p.socket.get(), p.buffer.get() + p.end, kBuffer - p.end, MSG_DONTWAIT);
      if (n > 0) {
        p.end += static_cast<size_t>(n);
        return;
      }
      if (n < 0 && errno == EINTR) continue;
      if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK)) p.closed = true;
      return;
    }
  }
  std::vector<Peer> peers_;
  std::vector<pollfd> polled_;
  Descriptor wake_;
};

}  // namespace

std::unique_ptr<Channels> tcp_channels(std::vector<Descriptor> sockets) { return std::make_unique<TcpChannels>(std::move(sockets)); }

}  // namespace naru::distributed
