// Ref: an intrusive reference-counted pointer; and the free lists for small objects.
#pragma once

#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace naru {

// Memory for small, short-lived objects: per-thread free lists of 64-byte size classes up to 1024 bytes, else the heap. 64-byte aligned.
void* pool_allocate(size_t bytes);
void pool_release(void* memory, size_t bytes) noexcept;

// True if the process has only one thread: then a count needs no atomic instruction, which takes 5 ns.
inline bool single_threaded() noexcept {
#if __has_include(<sys/single_threaded.h>)
  return __libc_single_threaded != 0;
#else
  return false;
#endif
}

template <class T>
class RefCounted {
 public:
  void retain() const noexcept {
    if (single_threaded())
      count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    else
      count_.fetch_add(1, std::memory_order_relaxed);
  }
  void release() const noexcept {
    // The last owner needs no atomic subtraction: no other thread can reach the object.
    const uint32_t count = count_.load(std::memory_order_acquire);
    if (count == 1) return destroy();
    uint32_t left = count - 1;
    if (single_threaded())
      count_.store(left, std::memory_order_relaxed);
    else
      left = count_.fetch_sub(1, std::memory_order_acq_rel) - 1;
    if ((left & ~kObserved) == 0) destroy();
  }
  uint32_t use_count() const noexcept { return count_.load(std::memory_order_acquire) & ~kObserved; }

  // Declares that a non-owning pointer to the object exists, whose holder may call try_retain(). An owner must call this before handing out
  // the pointer.
  void observe() const noexcept { count_.fetch_or(kObserved, std::memory_order_relaxed); }
  // For holders of such a pointer, who must keep the memory from being freed during the call: returns false if the last owner has released
  // the object.
  bool try_retain() const noexcept {
    uint32_t count = count_.load(std::memory_order_relaxed);
    while (count & ~kObserved)
      if (count_.compare_exchange_weak(count, count + 1, std::memory_order_relaxed)) return true;
    return false;
  }

 protected:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  ~RefCounted() = default;

 private:
  // Without this bit, a count of 1 means that no other owner or observer can reach the object.
  static constexpr uint32_t kObserved = uint32_t{1} << 31;

  // T::dispose(object) where the type has one, else delete.
  void destroy() const noexcept {
    auto* const object = static_cast<const T*>(this);
    if constexpr (requires { T::dispose(object); })
      T::dispose(object);
    else
      delete object;
  }
  mutable std::atomic<uint32_t> count_{1};
};

template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  // Takes ownership of a new object's initial count.
  static Ref adopt(T* p) noexcept {
    Ref r;
    r.p_ = p;
    return r;
  }
  static Ref share(T* p) noexcept {
    if (p) p->retain();
    return adopt(p);
  }
  Ref(const Ref& o) noexcept : p_(o.p_) {
    if (p_) p_->retain();
  }
  Ref(Ref&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> Ref(Ref<U> o)
  noexcept : p_(o.leak()) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~Ref() {
    if (p_) p_->release();
  }
  T* get() const noexcept { return p_; }
  T* operator->() const noexcept { return p_; }
  T& operator*() const noexcept { return *p_; }
  explicit operator bool() const noexcept { return p_ != nullptr; }
  T* leak() noexcept { return std::exchange(p_, nullptr); }
  friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.p_ == b.p_; }

 private:
  T* p_ = nullptr;
};

template <class T, class... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>::adopt(new T(std::forward<Args>(args)...));
}

}  // namespace naru
