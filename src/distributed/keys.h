// Keys: the contents of a store, and the rules common to all stores.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "naru/distributed/store.h"

namespace naru::distributed {

class Keys {
 public:
  void set(const std::string& key, const std::string& value) { values_[key] = value; }
  // Null if there is none.
  const std::string* find(const std::string& key) const {
    const auto at = values_.find(key);
    return at == values_.end() ? nullptr : &at->second;
  }
  bool has_all(const std::vector<std::string>& keys) const;
  int64_t add(const std::string& key, int64_t amount);
  std::string compare_set(const std::string& key, const std::string& expected, const std::string& desired);
  void append(const std::string& key, const std::string& value) { values_[key] += value; }
  // All keys but those that begin with kHidden, which stores use themselves.
  std::vector<std::string> list() const;
  static constexpr char kHidden = '\1';
  bool erase(const std::string& key) { return values_.erase(key) > 0; }
  int64_t size() const noexcept { return static_cast<int64_t>(values_.size()); }

 private:
  std::unordered_map<std::string, std::string> values_;
};

// Throws DistStoreError for keys that were not set in time.
[[noreturn]] void throw_timed_out(const std::vector<std::string>& keys, Milliseconds timeout);
// Parses a value as an integer; DistStoreError if it is not one.
int64_t number_in(const std::string& key, const std::string& value);

}  // namespace naru::distributed
