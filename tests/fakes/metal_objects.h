// Objects, classes and messages of the fake Objective-C run time (metal.cpp), and its errors.
#pragma once

#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <type_traits>
#include <vector>

namespace {

[[noreturn]] void fail(const std::string& why) {
  fprintf(stderr, "fake Metal: %s\n", why.c_str());
  fflush(stderr);
  abort();
}

// One lock for all that is called, but for waits, whose work is done under it.
std::recursive_mutex& mutex() {
  static auto* const m = [] {
    auto* const made = new std::recursive_mutex;
    pthread_atfork([] { mutex().lock(); }, [] { mutex().unlock(); }, [] { mutex().unlock(); });
    return made;
  }();
  return *m;
}
using Lock = std::lock_guard<std::recursive_mutex>;

struct Selector {
  std::string name;
};
using SEL = const Selector*;

struct Class;
// Objects are never freed, so that one that is gone is known when it is used.
struct Object {
  const Class* isa;
  int references = 1;
  explicit Object(const Class* c) : isa(c) {}
  virtual ~Object() = default;
  // What happens as the last reference is given back.
  virtual void end() {}
};
using id = Object*;

struct Method {
  void* function;
  std::string encoding;
};
struct Class : Object {
  std::string name;
  std::map<std::string, Method> methods, of_class;
  Class() : Object(nullptr) { isa = this; }
};

std::map<std::string, Class*>& classes() {
  static auto* const all = new std::map<std::string, Class*>;
  return *all;
}
Class* class_named(const std::string& name) {
  Class*& c = classes()[name];
  if (!c) c = new Class, c->name = name;
  return c;
}
std::map<std::string, int>& alive() {
  static auto* const all = new std::map<std::string, int>;
  return *all;
}

// A class's objects in C++: T::kName is the class's name.
template <class T>
struct Of : Object {
  Of() : Object(class_named(T::kName)) { ++alive()[T::kName]; }
};

void check(id o, const char* what) {
  if (!o) fail(std::string(what) + " of null");
  if (o->references <= 0) fail(std::string(what) + " of a " + o->isa->name + " that is gone");
}
bool is_class(id o) { return o->isa == o; }
void release(id o) {
  check(o, "release");
  if (is_class(o)) return;
  if (--o->references == 0) {
    --alive()[o->isa->name];
    o->end();
  }
}
id retain(id o) {
  check(o, "retain");
  ++o->references;
  return o;
}
std::vector<std::vector<id>>& pools() {
  thread_local std::vector<std::vector<id>> all;
  return all;
}
id autoreleased(id o) {
  if (pools().empty()) fail("a " + o->isa->name + " is left to a pool, and there is none");
  pools().back().push_back(o);
  return o;
}

// "v@:@QQ" of a function's type.
template <class T>
std::string code() {
  if constexpr (std::is_void_v<T>)
    return "v";
  else if constexpr (std::is_same_v<T, bool>)
    return "B";
  else if constexpr (std::is_same_v<T, double>)
    return "d";
  else if constexpr (std::is_same_v<T, SEL>)
    return ":";
  else if constexpr (std::is_same_v<T, const char*>)
    return "*";
  else if constexpr (std::is_same_v<T, id*>)
    return "^@";
  else if constexpr (std::is_pointer_v<T> && std::is_base_of_v<Object, std::remove_pointer_t<T>>)
    return "@";
  else if constexpr (std::is_pointer_v<T>)
    return "^v";
  else if constexpr (std::is_class_v<T>)
    return "{QQQ}";
  else if constexpr (sizeof(T) == 4)
    return std::is_signed_v<T> ? "i" : "I";
  else
    return std::is_signed_v<T> ? "q" : "Q";
}
// A method, called under the lock.
template <int kNumber, class R, class... P>
struct Locked {
  static inline R (*function)(P...) = nullptr;
  static R call(P... p) {
    const Lock lock(mutex());
    return function(p...);
  }
};
template <int kNumber, class R, class... P>
void method(const char* of, const char* selector, R (*function)(P...), bool of_class = false) {
  using Call = Locked<kNumber, R, P...>;
  Call::function = function;
  (of_class ? class_named(of)->of_class : class_named(of)->methods)[selector] = {reinterpret_cast<void*>(Call::call),
                                                                                 code<R>() + (code<P>() + ...)};
}
#define METHOD(...) method<__COUNTER__>(__VA_ARGS__)

// Whether a message named by NARU_FAKE_METAL_NIL is to give null.
bool gives_nil(SEL s) {
  static std::map<std::string, int>& counts = *new std::map<std::string, int>;
  const char* const text = getenv("NARU_FAKE_METAL_NIL");
  const char* const at = text ? strchr(text, '@') : nullptr;
  return at && s->name == std::string(text, at) && ++counts[s->name] >= atoi(at + 1);
}

}  // namespace
