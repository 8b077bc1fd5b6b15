// Handles of registered hooks, callbacks after backward, and hooks on tensors saved for backward.
#pragma once

#include <cstdint>
#include <utility>

#include "naru/standard.h"
#include "naru/tensor.h"

namespace naru {

// Identifies a registered hook. Copies refer to the same hook. Destroying a handle does not remove the hook, and a handle does not keep
// alive the hook or the object it was registered on.
class HookHandle {
 public:
  HookHandle() = default;
  HookHandle(int64_t id, std::function<void()> remove) : id_(id), remove_(std::move(remove)) {}
  // Removes the hook. Does nothing if the hook or its object no longer exists.
  void remove() {
    if (remove_) remove_();
  }
  int64_t id() const noexcept { return id_; }

 private:
  int64_t id_ = -1;
  std::function<void()> remove_;
};

// Runs `call` when the current backward pass on this thread is complete (not if it fails), after callbacks queued earlier; it may queue
// more. Throws RuntimeError outside of backward.
void queue_callback(std::function<void()> call);

// Within a scope, each tensor that an operator on this thread saves for backward is passed to `pack`, and the result is saved instead (on
// disk, on another device, or nothing); backward restores the tensor with `unpack`. The innermost scope applies. Scopes must end in reverse
// order. Throws RuntimeError if pack writes to its tensor in place. In-place writes to a packed tensor are not detected.
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
