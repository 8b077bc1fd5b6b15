// Key-value stores through which the processes of a program exchange data before they are connected and after a failure.
//
//   auto store = std::make_shared<distributed::TCPStore>("127.0.0.1", 29500, rank == 0);
//   store->set("name", "value");                                  // in any process
//   store->get("name");                                           // waits until the key exists
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "naru/error.h"
#include "naru/standard.h"

namespace naru::distributed {

// Base of errors between processes.
class DistError : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};
// Errors of a process group: ranks called different operations, ended, or timed out.
class DistBackendError : public DistError {
 public:
  using DistError::DistError;
};
// Connection errors.
class DistNetworkError : public DistError {
 public:
  using DistError::DistError;
};
// Store errors: a key did not appear in time.
class DistStoreError : public DistError {
 public:
  using DistError::DistError;
};

using Milliseconds = std::chrono::milliseconds;
inline constexpr Milliseconds kDefaultStoreTimeout{300'000};

// Keys and values are arbitrary bytes. Thread-safe. A wait that times out throws DistStoreError.
class Store {
 public:
  explicit Store(Milliseconds timeout = kDefaultStoreTimeout) : timeout_(timeout) {}
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  virtual ~Store() = default;

  virtual void set(const std::string& key, const std::string& value) = 0;
  // Waits until the key exists.
  virtual std::string get(const std::string& key) = 0;
  // The values of all keys; waits until they exist.
  virtual std::vector<std::string> multi_get(const std::vector<std::string>& keys);
  // Adds to the integer stored at the key (0 if absent). Returns the sum.
  virtual int64_t add(const std::string& key, int64_t amount) = 0;
  // True if all keys exist.
  virtual bool check(const std::vector<std::string>& keys) = 0;
  // Waits until all keys exist.
  virtual void wait(const std::vector<std::string>& keys, Milliseconds timeout) = 0;
  void wait(const std::vector<std::string>& keys) { wait(keys, timeout()); }
  // Writes `desired` if the current value is `expected`, or if the key is absent and `expected` is empty. Returns the value afterwards;
  // `expected` if the key is absent.
  virtual std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) = 0;
  // Appends to the value; an absent key gets `value`.
  virtual void append(const std::string& key, const std::string& value) = 0;
  // All keys, sorted.
  virtual std::vector<std::string> list_keys() = 0;
  // Returns true if the key existed.
  virtual bool delete_key(const std::string& key) = 0;
  virtual int64_t num_keys() = 0;
  // The address by which other processes reach this one, if the store knows it; else "".
  virtual std::string own_address() { return ""; }

  virtual Milliseconds timeout() const noexcept { return timeout_; }
  virtual void set_timeout(Milliseconds timeout) { timeout_ = timeout; }

 private:
  Milliseconds timeout_;
};

// A store for the threads of this process.
class HashStore final : public Store {
 public:
  explicit HashStore(Milliseconds timeout = kDefaultStoreTimeout);
  ~HashStore() override;
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  bool check(const std::vector<std::string>& keys) override;
  using Store::wait;
  void wait(const std::vector<std::string>& keys, Milliseconds timeout) override;
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) override;
  void append(const std::string& key, const std::string& value) override;
  std::vector<std::string> list_keys() override;
  bool delete_key(const std::string& key) override;
  int64_t num_keys() override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Accesses the keys of another store that begin with "prefix/".
class PrefixStore final : public Store {
 public:
  PrefixStore(std::string prefix, std::shared_ptr<Store> store);
  void set(const std::string& key, const std::string& value) override { store_->set(joined(key), value); }
  std::string get(const std::string& key) override { return store_->get(joined(key)); }
  std::vector<std::string> multi_get(const std::vector<std::string>& keys) override { return store_->multi_get(joined(keys)); }
  int64_t add(const std::string& key, int64_t amount) override { return store_->add(joined(key), amount); }
  bool check(const std::vector<std::string>& keys) override { return store_->check(joined(keys)); }
  using Store::wait;
  void wait(const std::vector<std::string>& keys, Milliseconds timeout) override { store_->wait(joined(keys), timeout); }
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) override {
    return store_->compare_set(joined(key), expected, desired);
  }
  void append(const std::string& key, const std::string& value) override { store_->append(joined(key), value); }
  // Those with the prefix, without it.
  std::vector<std::string> list_keys() override;
  bool delete_key(const std::string& key) override { return store_->delete_key(joined(key)); }
  int64_t num_keys() override { return store_->num_keys(); }
  std::string own_address() override { return store_->own_address(); }
  Milliseconds timeout() const noexcept override { return store_->timeout(); }
  void set_timeout(Milliseconds timeout) override { store_->set_timeout(timeout); }
  const std::shared_ptr<Store>& underlying() const noexcept { return store_; }

 private:
  std::string joined(const std::string& key) const { return prefix_ + "/" + key; }
  std::vector<std::string> joined(const std::vector<std::string>& keys) const;
  std::string prefix_;
  std::shared_ptr<Store> store_;
};

// A store in a file that all processes can open and lock. With `users` > 0, the last of that number of stores deletes the file.
class FileStore final : public Store {
 public:
  explicit FileStore(std::string path, int users = -1, Milliseconds timeout = kDefaultStoreTimeout);
  ~FileStore() override;
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t amount) override;
  bool check(const std::vector<std::string>& keys) override;
  using Store::wait;
  void wait(const std::vector<std::string>& keys, Milliseconds timeout) override;
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) override;
  void append(const std::string& key, const std::string& value) override;
  std::vector<std::string> list_keys() override;
  bool delete_key(const std::string& key) override;
  int64_t num_keys() override;
  const std::string& path() const noexcept { return path_; }

 private:
  class Locked;
  struct State;
  std::string path_;
  int users_;
  std::unique_ptr<State> state_;
};

// A server in one process, which all others reach by TCP. It serves until its store is destroyed.
class TCPStore final : public Store {
 public:
  // host, port: the server's. If `is_server`, this process runs the server; port 0 then selects a free port. With `workers` > 0, waits
  // until that many stores (including the server's own) are connected. Throws DistNetworkError if the server can't be started or reached
  // within the timeout.
  TCPStore(std::string host, uint16_t port, bool is_server, int workers = -1, Milliseconds timeout = kDefaultStoreTimeout,
           bool wait_for_workers = true, bool several_in_process = false);
  ~TCPStore() override;
  void set(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key) override;
  std::vector<std::string> multi_get(const std::vector<std::string>& keys) override;
  int64_t add(const std::string& key, int64_t amount) override;
  bool check(const std::vector<std::string>& keys) override;
  using Store::wait;
  void wait(const std::vector<std::string>& keys, Milliseconds timeout) override;
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired) override;
  void append(const std::string& key, const std::string& value) override;
  std::vector<std::string> list_keys() override;
  bool delete_key(const std::string& key) override;
  int64_t num_keys() override;
  std::string own_address() override;
  const std::string& host() const noexcept { return host_; }
  uint16_t port() const noexcept { return port_; }

 private:
  class Server;
  class Client;
  std::string host_;
  uint16_t port_;
  std::shared_ptr<Server> server_;
  std::unique_ptr<Client> client_;
};

}  // namespace naru::distributed
