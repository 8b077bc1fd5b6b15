// TCPStore's clients. A request is a message, its answer another: 4 bytes of length, then fields of 4 bytes of length and so many bytes. What waits is parked
// by the server, so a client that gives up closes its connection. Several threads of a client have a connection each.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "distributed/tcp_server.h"
#include "runtime/os/fork.h"

namespace naru::distributed {

class TCPStore::Client {
 public:
  Client(std::string host, uint16_t port, Milliseconds timeout)
      : host_(std::move(host)), token_(token_of_launch()), port_(port), generation_(runtime::fork_generation()) {
    const Deadline deadline = after(timeout);
    Descriptor first = connect(deadline);
    if (!first) throw DistNetworkError("the store at {}:{} did not answer within {} ms", host_, port_, timeout.count());
    address_ = address_of(first);
    idle_.push_back(std::move(first));
  }
  // The answer; nothing at the deadline.
  std::optional<Fields> ask(Request what, const std::vector<std::string_view>& fields, Deadline deadline) {
    Message message(static_cast<char>(what));
    size_t bytes = 1;
    for (const std::string_view field : fields) bytes += sizeof(uint32_t) + field.size();
    if (bytes > kGreatestMessage || fields.size() > kMostFields)
      throw DistStoreError("a store takes {} MiB and {} keys at once, got {} bytes and {} keys", kGreatestMessage >> 20, kMostFields, bytes,
                           fields.size());
    for (const std::string_view field : fields) message.add(field);
    Descriptor connection = take(deadline);
    if (!connection) return {};
    send_all(connection, message.bytes(), deadline);
    if (!wait_for(connection, false, deadline)) return {};
    uint32_t size = 0;
    // Once an answer has begun it comes.
    const Deadline soon = after(kDefaultStoreTimeout);
    receive_all(connection, {reinterpret_cast<char*>(&size), sizeof size}, soon);
    if (size > kGreatestMessage) throw DistNetworkError("the store at {}:{} answered with no message of a store", host_, port_);
    std::string text(size, '\0');
    receive_all(connection, text, soon);
    give(std::move(connection));
    Fields answer = fields_of(text, 0);
    if (answer.size() == 2 && answer[0] == "error") throw DistStoreError("{}", answer[1]);
    return answer;
  }
  const std::string& address() const noexcept { return address_; }

 private:
  // None where the store does not answer by the deadline. It proves itself first: a false one is told nothing that it could use.
  Descriptor connect(Deadline deadline) {
    Descriptor made = connect_to(host_, port_, deadline);
    const std::string mine = new_nonce(), hello = std::string(kGreeting) + mine;
    send_all(made, hello, deadline);
    if (!wait_for(made, false, deadline)) return {};
    std::string answer(kHelloBytes + kProofBytes, '\0');
    receive_all(made, answer, deadline);
    if (!answer.starts_with(kGreeting)) throw DistNetworkError("{}:{} is no store of this version of naru", host_, port_);
    const std::string theirs = answer.substr(kGreeting.size(), kNonceBytes);
    if (!token_.empty() &&
        !equal_in_constant_time(std::string_view(answer).substr(kHelloBytes), proof_of(Side::Server, token_, mine, theirs)))
      throw DistNetworkError("the store at {}:{} has not the token of this process's launch ({})", host_, port_, kTokenVariable);
    send_all(made, proof_of(Side::Client, token_, mine, theirs), deadline);
    return made;
  }
  Descriptor take(Deadline deadline) {
    {
      const std::lock_guard lock(mutex_);
      // A forked child has connections of its own.
      if (generation_ != runtime::fork_generation()) idle_.clear(), generation_ = runtime::fork_generation();
      if (!idle_.empty()) {
        Descriptor last = std::move(idle_.back());
        idle_.pop_back();
        return last;
      }
    }
    return connect(deadline);
  }
  void give(Descriptor connection) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(connection));
  }
  std::string host_, address_, token_;
  uint16_t port_;
  int generation_;
  std::mutex mutex_;
  std::vector<Descriptor> idle_;
};

namespace {

// The servers of this process, by their ports.
struct Servers {
  std::mutex mutex;
  std::map<uint16_t, std::weak_ptr<TCPServer>> by_port;
  int generation = runtime::fork_generation();
};
Servers& servers() {
  static auto& s = *new Servers;
  return s;
}

std::shared_ptr<TCPServer> server_at(const std::string& host, uint16_t port, bool shared) {
  Servers& all = servers();
  const std::lock_guard lock(all.mutex);
  // A forked child has none of its parent's.
  if (all.generation != runtime::fork_generation()) all.by_port.clear(), all.generation = runtime::fork_generation();
  if (shared && port)
    if (auto known = all.by_port[port].lock()) return known;
  auto made = std::make_shared<TCPServer>(host, port);
  all.by_port[made->port()] = made;
  return made;
}

}  // namespace

class TCPStore::Server {
 public:
  explicit Server(std::shared_ptr<TCPServer> server) : server(std::move(server)) {}
  const std::shared_ptr<TCPServer> server;
};

TCPStore::TCPStore(std::string host, uint16_t port, bool is_server, int workers, Milliseconds timeout, bool wait_for_workers,
                   bool several_in_process)
    : Store(timeout), host_(std::move(host)), port_(port) {
  if (is_server) {
    server_ = std::make_shared<Server>(server_at(host_, port, several_in_process));
    port_ = server_->server->port();
  } else if (!port) {
    throw ValueError("TCPStore: the port must be that of the server where is_master is False, got 0");
  }
  client_ = std::make_unique<Client>(is_server ? server_->server->address() : host_, port_, timeout);
  if (!wait_for_workers || workers <= 0) return;
  add(kWorkers, 1);
  const Deadline deadline = after(timeout);
  int64_t now = 0;
  while (is_server && (now = add(kWorkers, 0)) < workers) {
    if (Clock::now() >= deadline)
      throw DistStoreError("Timed out after {} seconds waiting for clients. {}/{} clients joined.", timeout.count() / 1000, now, workers);
    std::this_thread::sleep_for(Milliseconds(10));
  }
}

TCPStore::~TCPStore() = default;

namespace {
Fields answer_of(std::optional<Fields> answer, const std::vector<std::string>& keys, Milliseconds timeout) {
  if (!answer) throw_timed_out(keys, timeout);
  return std::move(*answer);
}
std::vector<std::string_view> views(const std::vector<std::string>& keys) { return {keys.begin(), keys.end()}; }
}  // namespace

void TCPStore::set(const std::string& key, const std::string& value) {
  answer_of(client_->ask(Request::Set, {key, value}, after(timeout())), {key}, timeout());
}

std::string TCPStore::get(const std::string& key) {
  return answer_of(client_->ask(Request::Get, {key}, after(timeout())), {key}, timeout()).at(0);
}

std::vector<std::string> TCPStore::multi_get(const std::vector<std::string>& keys) {
  if (keys.empty()) return {};
  Fields answer = answer_of(client_->ask(Request::GetAll, views(keys), after(timeout())), keys, timeout());
  if (answer.at(0) == kTooMuch) return Store::multi_get(keys);
  answer.erase(answer.begin());
  return answer;
}

int64_t TCPStore::add(const std::string& key, int64_t amount) {
  return number_in(key, answer_of(client_->ask(Request::Add, {key, std::to_string(amount)}, after(timeout())), {key}, timeout()).at(0));
}

bool TCPStore::check(const std::vector<std::string>& keys) {
  return answer_of(client_->ask(Request::Check, views(keys), after(timeout())), keys, timeout()).at(0) == "1";
}

void TCPStore::wait(const std::vector<std::string>& keys, Milliseconds timeout) {
  answer_of(client_->ask(Request::Wait, views(keys), after(timeout)), keys, timeout);
}

std::string TCPStore::compare_set(const std::string& key, const std::string& expected, const std::string& desired) {
  return answer_of(client_->ask(Request::CompareSet, {key, expected, desired}, after(timeout())), {key}, timeout()).at(0);
}

void TCPStore::append(const std::string& key, const std::string& value) {
  answer_of(client_->ask(Request::Append, {key, value}, after(timeout())), {key}, timeout());
}

std::vector<std::string> TCPStore::list_keys() {
  Fields answer = answer_of(client_->ask(Request::List, {}, after(timeout())), {}, timeout());
  answer.erase(answer.begin());
  return answer;
}

bool TCPStore::delete_key(const std::string& key) {
  return answer_of(client_->ask(Request::Erase, {key}, after(timeout())), {key}, timeout()).at(0) == "1";
}

int64_t TCPStore::num_keys() { return number_in("", answer_of(client_->ask(Request::Count, {}, after(timeout())), {}, timeout()).at(0)); }

std::string TCPStore::own_address() { return client_->address(); }

}  // namespace naru::distributed
