// Stores within one process, and the parts common to all stores.
#include "naru/distributed/store.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "distributed/keys.h"
#include "distributed/socket.h"
#include "naru/condition_variable.h"
#include "runtime/os/interrupt.h"

namespace naru::distributed {

void throw_timed_out(const std::vector<std::string>& keys, Milliseconds timeout) {
  std::string names;
  for (const std::string& key : keys) names += (names.empty() ? "/" : ", /") + key;
  throw DistStoreError("wait timeout after {}ms, keys: {}", timeout.count(), names);
}

int64_t number_in(const std::string& key, const std::string& value) {
  if (value.empty()) return 0;
  size_t end = 0;
  int64_t number = 0;
  try {
    number = std::stoll(value, &end);
  } catch (const std::exception&) {
    end = 0;
  }
  if (end != value.size()) throw DistStoreError("add: the value of key /{} is no number that could be added to", key);
  return number;
}

bool Keys::has_all(const std::vector<std::string>& keys) const {
  return std::ranges::all_of(keys, [&](const std::string& key) { return values_.contains(key); });
}

int64_t Keys::add(const std::string& key, int64_t amount) {
  std::string& value = values_[key];
  const int64_t sum = number_in(key, value) + amount;
  value = std::to_string(sum);
  return sum;
}

std::string Keys::compare_set(const std::string& key, const std::string& expected, const std::string& desired) {
  const auto at = values_.find(key);
  if (at == values_.end()) {
    if (!expected.empty()) return expected;
    values_[key] = desired;
    return desired;
  }
  if (at->second == expected) at->second = desired;
  return at->second;
}

std::vector<std::string> Store::multi_get(const std::vector<std::string>& keys) {
  std::vector<std::string> values;
  values.reserve(keys.size());
  for (const std::string& key : keys) values.push_back(get(key));
  return values;
}

std::vector<std::string> Keys::list() const {
  std::vector<std::string> names;
  for (const auto& [key, value] : values_)
    if (!key.starts_with(kHidden)) names.push_back(key);
  std::ranges::sort(names);
  return names;
}

// --- HashStore

struct HashStore::State {
  std::mutex mutex;
  ConditionVariable changed;
  Keys keys;
};

HashStore::HashStore(Milliseconds timeout) : Store(timeout), state_(std::make_unique<State>()) {}
HashStore::~HashStore() = default;

void HashStore::set(const std::string& key, const std::string& value) {
  const std::lock_guard lock(state_->mutex);
  state_->keys.set(key, value);
  state_->changed.notify_all();
}

std::string HashStore::get(const std::string& key) {
  wait({key}, timeout());
  const std::lock_guard lock(state_->mutex);
  const std::string* const value = state_->keys.find(key);
  return value ? *value : "";
}

int64_t HashStore::add(const std::string& key, int64_t amount) {
  const std::lock_guard lock(state_->mutex);
  const int64_t sum = state_->keys.add(key, amount);
  state_->changed.notify_all();
  return sum;
}

bool HashStore::check(const std::vector<std::string>& keys) {
  const std::lock_guard lock(state_->mutex);
  return state_->keys.has_all(keys);
}

void HashStore::wait(const std::vector<std::string>& keys, Milliseconds timeout) {
  const runtime::InterruptWatch watch;
  const Deadline deadline = after(timeout);
  std::unique_lock lock(state_->mutex);
  while (!state_->keys.has_all(keys)) {
    const int left = milliseconds_until(deadline, runtime::kInterruptMilliseconds);
    if (left == 0) throw_timed_out(keys, timeout);
    state_->changed.wait_for(lock, Milliseconds(left));
    if (watch.interrupted()) throw runtime::Interrupted("waiting for a key of a store was interrupted");
  }
}

std::string HashStore::compare_set(const std::string& key, const std::string& expected, const std::string& desired) {
  const std::lock_guard lock(state_->mutex);
  state_->changed.notify_all();
  return state_->keys.compare_set(key, expected, desired);
}

void HashStore::append(const std::string& key, const std::string& value) {
  const std::lock_guard lock(state_->mutex);
  state_->keys.append(key, value);
  state_->changed.notify_all();
}

std::vector<std::string> HashStore::list_keys() {
  const std::lock_guard lock(state_->mutex);
  return state_->keys.list();
}

bool HashStore::delete_key(const std::string& key) {
  const std::lock_guard lock(state_->mutex);
  return state_->keys.erase(key);
}

int64_t HashStore::num_keys() {
  const std::lock_guard lock(state_->mutex);
  return state_->keys.size();
}

// --- PrefixStore

PrefixStore::PrefixStore(std::string prefix, std::shared_ptr<Store> store) : prefix_(std::move(prefix)), store_(std::move(store)) {
  if (!store_) throw ValueError("PrefixStore: store must be a Store, got None");
}

std::vector<std::string> PrefixStore::list_keys() {
  std::vector<std::string> mine;
  for (const std::string& key : store_->list_keys())
    if (key.starts_with(joined(""))) mine.push_back(key.substr(prefix_.size() + 1));
  return mine;
}

std::vector<std::string> PrefixStore::joined(const std::vector<std::string>& keys) const {
  std::vector<std::string> all;
  for (const std::string& key : keys) all.push_back(joined(key));
  return all;
}

}  // namespace naru::distributed
