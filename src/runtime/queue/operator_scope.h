// OperatorScope: what an operator does with memory that other code can write at any time (NumPy's, DLPack's, whose address was asked for) has
// been done when the operator returns. Within it such work stays deferred, so that the operator's parts are fused as those of other tensors
// are; without a scope each part is done at once. No other code may run within one: nodes of a backward pass, which may be Python's, have none.
#pragma once

namespace naru::runtime {

class Queue;

class OperatorScope {
 public:
  OperatorScope() noexcept;
  // An error is under way unless end() was called; one of the deferred work itself is kept by the storages it should have written.
  ~OperatorScope();
  OperatorScope(const OperatorScope&) = delete;
  // Submits what was left deferred, if no other scope of this thread is around this one. Throws what that throws.
  void end();
  // Has `queue` flushed at the end of the calling thread's outermost scope; false without a scope, or if it has too many queues already.
  static bool postpone(Queue& queue) noexcept;

 private:
  bool ended_ = false;
};

}  // namespace naru::runtime
