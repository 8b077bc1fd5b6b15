// What a registered hook gives out: the way to take it out again; and hooks on the tensors that are kept for backward.
#pragma once

#include <cstdint>
#include <utility>

#include "naru/standard.h"
#include "naru/tensor.h"

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

// `call` is called when the backward pass that runs on this thread is over (not if it fails), after those queued before it; it may queue more.
// RuntimeError outside of backward.
void queue_callback(std::function<void()> call);

// Within its life, each tensor that an operator on this thread keeps for backward is given to `pack`, and what that returns is kept in its place
// (on disk, on another device, or not at all); backward gets the tensor back from `unpack`. The innermost scope counts. Scopes end in the reverse
// order of their beginnings. RuntimeError where pack writes to its tensor in place. Writes to a packed tensor are not noticed.
class SavedTensorHooks {
 public:
  using Pack = std::function<std::shared_ptr<void>(const Tensor&)>;
  using Unpack = std::function<Tensor(const std::shared_ptr<void>&)>;
  SavedTensorHooks(Pack pack, Unpack unpack);
  ~SavedTensorHooks();
  SavedTensorHooks(const SavedTensorHooks&) = delete;

  const Pack pack;
  const Unpack unpack;

 private:
  const SavedTensorHooks* before_;
};

}  // namespace naru
