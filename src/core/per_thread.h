// per_thread<T>(): the thread's own T.
#pragma once

namespace naru {

namespace detail {
// Trivially destructible, so it can be read after the thread's destructors have run.
template <class T>
struct OfThread {
  static inline thread_local constinit T* here = nullptr;
  static inline thread_local constinit bool over = false;

  static T& make() {
    if (over) return make_after_the_end();
    here = new T;
    struct AtEndOfThread {
      ~AtEndOfThread() {
        over = true;
        delete here;
        here = nullptr;
      }
      void touch() noexcept {}
    };
    static thread_local AtEndOfThread end;
    end.touch();
    return *here;
  }
  // (tools/lsan.supp refers to this function by name.)
  [[gnu::noinline]] static T& make_after_the_end() {
    here = new T;
    return *here;
  }
};
}  // namespace detail

// Created at the first call, destroyed with the thread. Calls after that (from destructors of statics and thread-locals) get another
// instance, which is never destroyed.
template <class T>
T& per_thread() {
  T* const here = detail::OfThread<T>::here;
  return here ? *here : detail::OfThread<T>::make();
}
// Null if the thread has none yet.
template <class T>
T* per_thread_if_any() noexcept {
  return detail::OfThread<T>::here;
}

}  // namespace naru
