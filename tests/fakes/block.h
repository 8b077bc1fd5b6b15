// The threads of a group of a kernel, one after another; where they meet at barriers, one stack each, between which they switch.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <memory>
#include <vector>

class Block {
 public:
  static constexpr size_t kStack = size_t{64} << 10;

  // Calls entry(parameters) for each thread, with its number in `turn`.
  void run(void (*entry)(void**), void** parameters, unsigned& turn, unsigned threads, bool barriers) {
    if (!barriers) {
      for (turn = 0; turn < threads; ++turn) entry(parameters);
      return;
    }
    active = this;
    entry_ = entry, parameters_ = parameters, turn_ = &turn;
    fibers_.resize(threads);
    for (Fiber& fiber : fibers_) {
      if (!fiber.stack) fiber.stack.reset(new char[kStack]);
      fiber.started = fiber.over = false;
    }
    for (unsigned left = threads; left > 0;)
      for (unsigned i = 0; i < threads; ++i) {
        if (fibers_[i].over) continue;
        resume(i);
        if (fibers_[i].over) --left;
      }
  }
  static void barrier() {
    Fiber& f = active->fibers_[*active->turn_];
    if (_setjmp(f.place) == 0) _longjmp(active->back_, 1);
  }

 private:
  struct Fiber {
    std::unique_ptr<char[]> stack;
    jmp_buf place;
    bool started = false, over = false;
  };
  void resume(unsigned i) {
    *turn_ = i;
    if (_setjmp(back_) != 0) return;
    Fiber& f = fibers_[i];
    if (f.started) _longjmp(f.place, 1);
    f.started = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = f.stack.get();
    context.uc_stack.ss_size = kStack;
    context.uc_link = nullptr;
    makecontext(&context, reinterpret_cast<void (*)()>(enter), 0);
    setcontext(&context);
  }
  static void enter() {
    Block* const b = active;
    b->entry_(b->parameters_);
    b->fibers_[*b->turn_].over = true;
    _longjmp(b->back_, 1);
  }
  static inline Block* active = nullptr;
  std::vector<Fiber> fibers_;
  void (*entry_)(void**) = nullptr;
  void** parameters_ = nullptr;
  unsigned* turn_ = nullptr;
  jmp_buf back_;
};
