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
#include "distributed/sha256.h"
#include "distributed/socket.h"

namespace naru::distributed {

enum class Request : char { Set = 's', Get = 'g', Add = 'a', Check = 'c', Wait = 'w', CompareSet = 'x', Erase = 'e', Count = 'n' };

// How both sides show that they have the launch's token, which `torchrun` gives to its processes in their environment, without saying it. The client begins
// with kGreeting and a nonce; the server answers with kGreeting, a nonce of its own and its proof; the client's proof follows, then its requests. A proof is
// the HMAC-SHA256, by the token, of whose proof it is and both nonces: none serves a second time, or in the other direction.
inline constexpr std::string_view kGreeting = "naru store 3\n";
inline constexpr size_t kNonceBytes = 32, kProofBytes = kSha256Bytes, kHelloBytes = kGreeting.size() + kNonceBytes;
inline constexpr const char* kTokenVariable = "NARU_STORE_TOKEN";
inline constexpr size_t kTokenBytes = 64;
// The launch's token; empty where there is none.
std::string token_of_launch();
std::string new_nonce();
enum class Side : char { Client = 'c', Server = 's' };
std::string proof_of(Side side, std::string_view token, std::string_view client_nonce, std::string_view server_nonce);
// How many clients have come; no user's key begins so.
inline constexpr const char* kWorkers = "\1workers";
// What a key and its value may have in bytes, and so a message.
inline constexpr uint32_t kGreatestMessage = 16u << 20;
inline constexpr size_t kMostFields = 1u << 18;

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
  TCPServer(const std::string& host, uint16_t port);
  TCPServer(const TCPServer&) = delete;
  ~TCPServer();
  uint16_t port() const noexcept { return listener_.port; }
  // By which this process reaches it.
  const std::string& address() const noexcept { return listener_.address; }

 private:
  struct Connection {
    Descriptor socket;
    std::string in, out;
    std::string expected;  // the proof that it owes
    bool greeted = false, refused = false, closed = false;
    // By which it must have greeted, or have sent what it has begun.
    Deadline until = Deadline::max();
    std::vector<std::string> waits;  // for these keys
    bool wants_value = false;        // of the key that it waits for
  };
  void serve();
  void serve_once();
  int milliseconds_to_wait() const;
  void accept_all();
  bool drop_a_stranger();
  static size_t most_connections();
  void guarded(Connection& c, void (TCPServer::*what)(Connection&)) noexcept;
  void read(Connection& c);
  void greet(Connection& c);
  void take_all(Connection& c);
  void write(Connection& c);
  void take(Connection& c, std::string_view text);
  void answer(Connection& c, std::string_view message);
  void answer_waiting(Connection& c);

  Listener listener_;
  Descriptor wake_;
  int generation_;
  std::string token_;
  Keys keys_;
  Deadline accepts_from_ = Deadline::min();  // not before, when there were no descriptors
  std::list<Connection> connections_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace naru::distributed
