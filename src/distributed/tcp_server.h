// TCPServer: the thread behind a TCPStore, and the messages that it and its clients exchange.
#pragma once

#include <atomic>
#include <list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "distributed/keys.h"
#include "distributed/sha256.h"
#include "distributed/socket.h"

namespace naru::distributed {

enum class Request : char {
  Set = 's',
  Get = 'g',
  GetAll = 'm',
  Add = 'a',
  Check = 'c',
  Wait = 'w',
  CompareSet = 'x',
  Append = 'p',
  List = 'l',
  Erase = 'e',
  Count = 'n'
};

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
// The first field of the answer to GetAll: the values follow; or they are too much for one answer, and the client must ask for each.
inline constexpr std::string_view kValues = "values", kTooMuch = "too much";
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
  // How often a key was looked for on behalf of a waiting client: at most once for each key of a wait, unless keys are deleted meanwhile.
  uint64_t lookups() const noexcept { return lookups_.load(std::memory_order_relaxed); }

 private:
  struct Connection {
    Descriptor socket;
    std::string in, out;
    std::string expected;  // the proof that it owes
    bool greeted = false, refused = false, closed = false;
    // By which it must have greeted, or have sent what it has begun.
    Deadline until = Deadline::max();
    uint32_t events = 0;              // that epoll looks for
    std::optional<std::string> wait;  // the request that waits for its keys
    size_t at = 0;                    // where in it the first key begins that was not there
    std::string missing;              // that key
    uint64_t erasures = 0;            // when the search began
    std::list<Connection>::iterator self;
  };
  using Connections = std::list<Connection>;
  void serve();
  void serve_once();
  int milliseconds_to_wait() const;
  void accept_all();
  bool drop_a_stranger();
  static size_t most_connections();
  void close(Connection& c) noexcept;
  void forget_closed() noexcept;
  void stop_waiting(Connection& c) noexcept;
  void set_until(Connection& c, Deadline until);
  void watch(Connection& c);
  void welcome(Connection& c);
  void watch_listener(bool accepts);
  void guarded(Connection& c, void (TCPServer::*what)(Connection&)) noexcept;
  void read(Connection& c);
  void greet(Connection& c);
  void take_all(Connection& c);
  void write(Connection& c);
  void write_more(Connection& c);
  void go_on();
  static bool blocked(const Connection& c);
  void take(Connection& c, std::string_view text);
  void answer(Connection& c, std::string_view message);
  void answer(Connection& c, Message& message);
  void list(Message& message) const;
  void begin_wait(Connection& c, std::string_view text);
  void look_for_keys(Connection& c);
  void tell_waiting(const std::string& key);

  Listener listener_;
  Descriptor wake_, epoll_;
  int generation_;
  std::string token_;
  Keys keys_;
  uint64_t erasures_ = 0;                    // of keys
  size_t unfinished_ = 0;                    // bytes of incomplete requests
  Deadline accepts_from_ = Deadline::min();  // not before, when there were no descriptors
  bool accepts_ = true;
  Connections strangers_, known_, closed_;  // strangers have not greeted; the oldest is the first
  std::set<std::pair<Deadline, Connection*>> due_;
  // A client that waits for several keys is listed under the first that is missing only, and then under the next.
  std::unordered_map<std::string, std::vector<Connection*>> waiting_;
  std::vector<Connection*> answered_;  // with further requests
  std::atomic<uint64_t> lookups_{0};
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

}  // namespace naru::distributed
