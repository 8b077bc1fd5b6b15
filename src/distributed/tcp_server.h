// TCPServer: the thread behind a TCPStore, and the messages that it and its clients exchange.
#pragma once

#include <atomic>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "distributed/keys.h"
#include "distributed/socket.h"

namespace naru::distributed {

enum class Request : char { Set = 's', Get = 'g', Add = 'a', Check = 'c', Wait = 'w', CompareSet = 'x', Erase = 'e', Count = 'n' };

inline constexpr std::string_view kGreeting = "naru store 1\n";
// How many clients have come; no user's key begins so.
inline constexpr const char* kWorkers = "\1workers";
inline constexpr uint32_t kGreatestMessage = 1u << 30;

using Fields = std::vector<std::string>;

// A length of 4 bytes, then what is added to it.
class Message {
 public:
  Message() : text_(4, '\0') {}
  explicit Message(char first) : Message() { text_ += first; }
  void add(std::string_view field) {
    append(static_cast<uint32_t>(field.size()));
    text_ += field;
  }
  std::span<const char> bytes();

 private:
  void append(uint32_t n) { text_.append(reinterpret_cast<const char*>(&n), sizeof n); }
  std::string text_;
};

// The fields of a message from `from` on. DistNetworkError where it is damaged.
Fields fields_of(std::string_view text, size_t from);

class TCPServer {
 public:
  explicit TCPServer(uint16_t port);
  TCPServer(const TCPServer&) = delete;
  ~TCPServer();
  uint16_t port() const noexcept { return listener_.port; }

 private:
  struct Connection {
    Descriptor socket;
    std::string in, out;
    bool greeted = false, closed = false;
    std::vector<std::string> waits;  // for these keys
    bool wants_value = false;        // of the key that it waits for
  };
  void serve();
  void accept_all();
  void read(Connection& c);
  void write(Connection& c);
  void take(Connection& c);
  void answer(Connection& c, std::string_view message);
  void answer_waiting();

  Listener listener_;
  Descriptor wake_;
  int generation_;
  Keys keys_;
  std::list<Connection> connections_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace naru::distributed
