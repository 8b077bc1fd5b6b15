// Lists of hooks: functions that a node or a tensor calls in backward. Hooks may be added and taken out at any time, by any thread, also by a
// hook that is running.
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

// Given the gradient of a tensor; may return another one to be used instead.
using Hook = std::function<Tensor(const Tensor&)>;
// Given the gradients of a node's outputs, which it may replace.
using NodePreHook = std::function<void(std::vector<Tensor>&)>;
// Given the gradients of a node's inputs, which it may replace, and those of its outputs.
using NodePostHook = std::function<void(std::vector<Tensor>&, const std::vector<Tensor>&)>;
// Given a leaf whose grad has just been added to.
using LeafHook = std::function<void(const Tensor&)>;

// What a handle needs to know of a list: it holds it weakly.
class HookRegistry {
 public:
  virtual ~HookRegistry() = default;
  virtual void remove(int64_t number) = 0;
  virtual void clear() = 0;
  // f(object) for the Python object that each hook owns a reference to.
  virtual void each_object(const std::function<void(void*)>& f) const = 0;
};

int64_t next_hook_number() noexcept;

template <class F>
class HookList final : public HookRegistry {
 public:
  struct Entry {
    int64_t number;
    uint32_t slot;  // of the node's output whose gradient it is for
    std::string name;
    F call;
    std::shared_ptr<void> object;  // the Python object that `call` calls, if it is one
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
  // The hooks there are now, in the order of their registration; null if there are none. Those that a hook takes out meanwhile still run, as
  // in PyTorch.
  std::shared_ptr<const Entries> entries() const {
    const std::lock_guard lock(mutex_);
    return entries_;
  }

 private:
  template <class Change>
  void change(Change f) {
    std::shared_ptr<const Entries> before;  // let go outside of the lock: a hook may own anything
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
