// What a registered hook gives out: the way to take it out again.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

namespace naru {

// A handle; copies stand for the same hook, which stays when they go. It keeps neither the hook nor what it was registered with alive.
class HookHandle {
 public:
  HookHandle() = default;
  HookHandle(int64_t id, std::function<void()> remove) : id_(id), remove_(std::move(remove)) {}
  // Nothing happens where the hook, or what had it, is gone.
  void remove() {
    if (remove_) remove_();
  }
  int64_t id() const noexcept { return id_; }

 private:
  int64_t id_ = -1;
  std::function<void()> remove_;
};

}  // namespace naru
