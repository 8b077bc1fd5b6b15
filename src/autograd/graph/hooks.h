// Lists of hooks: functions that a node or a tensor calls during backward. Any thread, and a running hook, may add or remove hooks at any
// time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "naru/tensor.h"

namespace naru::autograd {

// Receives the gradient of a tensor; may return a replacement.
using Hook = std::function<Tensor(const Tensor&)>;
// Receives the gradients of a node's outputs, and may replace them.
using NodePreHook = std::function<void(std::vector<Tensor>&)>;
// Receives the gradients of a node's inputs, which it may replace, and those of its outputs.
using NodePostHook = std::function<void(std::vector<Tensor>&, const std::vector<Tensor>&)>;
// Receives a leaf after a gradient was added to its grad.
using LeafHook = std::function<void(const Tensor&)>;

// The part of a list that hook handles use; a handle refers to its list weakly.
class HookRegistry {
 public:
  virtual ~HookRegistry() = default;
  virtual void remove(int64_t number) = 0;
  virtual void clear() = 0;
  // Calls f(object) for the Python object that each hook owns a reference to.
  virtual void each_object(const std::function<void(void*)>& f) const = 0;
};

int64_t next_hook_number() noexcept;

template <class F>
class HookList final : public HookRegistry {
 public:
  struct Entry {
    int64_t number;
    uint32_t slot;  // index of the node's output whose gradient it is for
    std::string name;
    F call;
    std::shared_ptr<void> object;  // the Python object that `call` calls, if any
  };
  using Entries = std::vector<Entry>;

  int64_t add(F call, uint32_t slot = 0, std::string name = "hook", std::shared_ptr<void> object = {}) {
    const int64_t number = next_hook_number();
    auto entry = Entry{number, slot, std::move(name), std::move(call), std::move(object)};
    change([&](Entries& list) { list.push_back(std::move(entry)); });
    return number;
  }
  void remove(int64_t number) override {
    change([&](Entries& list) { std::erase_if(list, [&](const Entry& e) { return e.number == number; }); });
  }
  void clear() override {
    change([](Entries& list) { list.clear(); });
  }
  void each_object(const std::function<void(void*)>& f) const override {
    if (const auto list = entries())
      for (const Entry& e : *list)
        if (e.object) f(e.object.get());
  }
  // The current hooks, in registration order; null if there are none. Hooks removed while the list runs are still called, as in PyTorch.
  std::shared_ptr<const Entries> entries() const {
    const std::lock_guard lock(mutex_);
    return entries_;
  }

 private:
  template <class Change>
  void change(Change f) {
    std::shared_ptr<const Entries> before;  // destroyed after unlocking: a hook may own anything
    const std::lock_guard lock(mutex_);
    auto list = entries_ ? std::make_shared<Entries>(*entries_) : std::make_shared<Entries>();
    f(*list);
    before = std::move(entries_);
    entries_ = list->empty() ? nullptr : std::move(list);
  }

  mutable std::mutex mutex_;
  std::shared_ptr<const Entries> entries_;
};

}  // namespace naru::autograd
