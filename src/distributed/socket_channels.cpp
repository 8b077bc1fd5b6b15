// Channels over sockets: between the ranks of one host, for messages.
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

class SocketChannels final : public Channels {
 public:
  SocketChannels(std::vector<Descriptor> sockets, size_t buffer) : buffer_(buffer), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    for (Descriptor& socket : sockets) peers_.push_back({std::move(socket), {}, 0, 0, false, 0});
  }
  ~SocketChannels() override {
    for (const Peer& p : peers_)
      if (p.socket) ::shutdown(p.socket.get(), SHUT_RDWR);
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
      if (errno != EAGAIN && errno != EWOULDBLOCK) p.broken = errno;
      break;
    }
    return done;
  }
  void flush(int) override {}

  std::span<const char> look(int peer) override {
    Peer& p = at(peer);
    if (p.end - p.begin < 16 && !p.closed && !p.broken) fill(p);
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
  std::string trouble(int peer) const override {
    const int error = peers_[static_cast<size_t>(peer)].broken;
    if (!error) return Channels::trouble(peer);
    return "rank " + std::to_string(peer) + " is gone: its connection broke (" + words_for(error) + "); its process ended or was killed";
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
    bool closed = false;
    int broken = 0;  // the error
  };
  Peer& at(int peer) { return peers_[static_cast<size_t>(peer)]; }
  void drain() {
    uint64_t n = 0;
    if (polled_[0].revents) static_cast<void>(!::read(wake_.get(), &n, sizeof n));
  }
  void fill(Peer& p) {
    if (!p.buffer) p.buffer = std::make_unique_for_overwrite<char[]>(buffer_);
    if (p.begin) std::memmove(p.buffer.get(), p.buffer.get() + p.begin, p.end - p.begin);
    p.end -= p.begin, p.begin = 0;
    for (;;) {
      const ssize_t n = ::recv(p.socket.get(), p.buffer.get() + p.end, buffer_ - p.end, MSG_DONTWAIT);
      if (n > 0) {
        p.end += static_cast<size_t>(n);
        return;
      }
      if (n < 0 && errno == EINTR) continue;
      if (n == 0) p.closed = true;
      if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) p.broken = errno;
      return;
    }
  }
  const size_t buffer_;
  std::vector<Peer> peers_;
  std::vector<pollfd> polled_;
  Descriptor wake_;
};

}  // namespace

std::string Channels::trouble(int peer) const {
  return "rank " + std::to_string(peer) + " is gone: its connection was closed; its process ended or was killed";
}

std::unique_ptr<Channels> socket_channels(std::vector<Descriptor> sockets, size_t buffer) {
  return std::make_unique<SocketChannels>(std::move(sockets), buffer);
}

}  // namespace naru::distributed
