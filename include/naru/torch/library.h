// libtorch's registration of operators and classes by name: TORCH_LIBRARY, TORCH_LIBRARY_IMPL, torch::class_, and calls through the
// dispatcher.
//
//   TORCH_LIBRARY(mine, m) { m.def("twice(Tensor x) -> Tensor"); }
//   TORCH_LIBRARY_IMPL(mine, CPU, m) { m.impl("twice", &twice); }
//
// Python then has torch.ops.mine.twice.
#pragma once

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "naru/autograd.h"
#include "naru/torch/registry.h"
#include "naru/torch/tensor.h"

namespace naru::library {

namespace detail {

template <class T>
using Plain = Conversion<std::remove_cvref_t<T>>;

inline void require_count(const char* op, size_t wanted, const Stack& got) {
  if (got.size() != wanted) throw TypeError("{}: wanted {} arguments, got {}", op, wanted, got.size());
}

// What is known of a function with the result R and the parameters A.
template <class R, class... A>
struct Signature {
  using Result = R;
  static std::string text() {
    std::string parameters;
    int i = 0;
    ((parameters += (i ? ", " : "") + Plain<A>::text() + " _" + std::to_string(i), ++i), ...);
    return "(" + parameters + ") -> " + result_text();
  }
  static std::string result_text() {
    if constexpr (std::is_void_v<R>)
      return "()";
    else
      return Plain<R>::text();
  }
  // The function with arguments of any type.
  template <class F>
  static Function boxed(F f) {
    return [f](const char* op, Stack& arguments) {
      require_count(op, sizeof...(A), arguments);
      return call(f, op, arguments, std::index_sequence_for<A...>());
    };
  }

 private:
  template <class F, size_t... I>
  static IValue call(F& f, const char* op, Stack& arguments, std::index_sequence<I...>) {
    [[maybe_unused]] std::tuple<typename Plain<A>::Held...> held{Plain<A>::unbox(arguments[I], ArgumentPlace{op, static_cast<int>(I)})...};
    if constexpr (std::is_void_v<R>) {
      f(std::forward<A>(std::get<I>(held))...);
      return {};
    } else {
      return Plain<R>::box(f(std::forward<A>(std::get<I>(held))...));
    }
  }
};

template <class F>
struct SignatureOf : SignatureOf<decltype(&std::remove_cvref_t<F>::operator())> {};
template <class R, class... A>
struct SignatureOf<R (*)(A...)> : Signature<R, A...> {};
template <class R, class... A>
struct SignatureOf<R(A...)> : Signature<R, A...> {};
template <class R, class C, class... A>
struct SignatureOf<R (C::*)(A...) const> : Signature<R, A...> {};
template <class R, class C, class... A>
struct SignatureOf<R (C::*)(A...)> : Signature<R, A...> {};

template <class F>
Function boxed(F f) {
  return SignatureOf<F>::boxed(std::move(f));
}

}  // namespace detail

// A function with the dispatch key that it is for: torch::dispatch(c10::DispatchKey::CPU, &f).
template <class F>
struct KeyedFunction {
  std::string key;
  F function;
};

}  // namespace naru::library

namespace torch {

enum class DispatchKey {
  CPU,
  CUDA,
  MPS,
  XPU,
  Meta,
  Autograd,
  AutogradCPU,
  AutogradCUDA,
  CompositeImplicitAutograd,
  CompositeExplicitAutograd
};
inline const char* toString(DispatchKey key) {
  constexpr const char* kTexts[] = {"CPU",
                                    "CUDA",
                                    "MPS",
                                    "XPU",
                                    "Meta",
                                    "Autograd",
                                    "AutogradCPU",
                                    "AutogradCUDA",
                                    "CompositeImplicitAutograd",
                                    "CompositeExplicitAutograd"};
  return kTexts[static_cast<int>(key)];
}
template <class F>
naru::library::KeyedFunction<F> dispatch(DispatchKey key, F f) {
  return {toString(key), std::move(f)};
}
template <class F>
naru::library::KeyedFunction<F> dispatch(DeviceType kind, F f) {
  return {kind == kCPU ? "CPU" : kind == kCUDA ? "CUDA" : kind == kMPS ? "MPS" : kind == kXPU ? "XPU" : "Meta", std::move(f)};
}

template <class... A>
struct init_t {};
// A class's constructor, for class_::def.
template <class... A>
constexpr init_t<A...> init() {
  return {};
}

// Parameters' names and defaults, accepted and not used: class_'s methods take their arguments in order.
struct arg {
  explicit arg(const char*) {}
  template <class T>
  arg& operator=(const T&) {
    return *this;
  }
};

// A class whose objects Python and operators pass around: torch.classes.space.name.
template <class T>
class class_ {
  static_assert(std::is_base_of_v<CustomClassHolder, T>, "torch::class_<T>: T must be derived from torch::CustomClassHolder");

 public:
  class_(const std::string& space, const std::string& name, const std::string& = {}) : space_(space), name_(name) {
    naru::library::define_class(space, name, typeid(T).name());
  }
  template <class... A>
  class_& def(init_t<A...>, const std::string& = {}, std::initializer_list<arg> = {}) {
    return method(
        "__init__", [](A... args) { return make_intrusive<T>(std::move(args)...); }, true);
  }
  template <class F>
  class_& def(const std::string& name, F f, const std::string& = {}, std::initializer_list<arg> = {}) {
    if constexpr (std::is_member_function_pointer_v<F>)
      return member(name, f);
    else
      return method(name, std::move(f), false);
  }
  template <class F>
  class_& def_static(const std::string& name, F f, const std::string& = {}) {
    return method(name, std::move(f), true);
  }
  template <class F>
  class_& def_property(const std::string& name, F get) {
    return def("get " + name, get);
  }
  template <class F, class G>
  class_& def_property(const std::string& name, F get, G set) {
    def("get " + name, get);
    return def("set " + name, set);
  }
  template <class V>
  class_& def_readonly(const std::string& name, V T::*field) {
    return method(
        "get " + name, [field](const intrusive_ptr<T>& self) { return V(self.get()->*field); }, false);
  }
  template <class V>
  class_& def_readwrite(const std::string& name, V T::*field) {
    def_readonly(name, field);
    return method(
        "set " + name, [field](const intrusive_ptr<T>& self, V value) { self.get()->*field = std::move(value); }, false);
  }
  template <class G, class S>
  class_& def_pickle(G get, S set) {
    method("__getstate__", std::move(get), false);
    return method("__setstate__", std::move(set), true);
  }

 private:
  template <class F>
  class_& method(const std::string& name, F f, bool is_static) {
    naru::library::add_method(space_, name_, name, naru::library::detail::boxed(std::move(f)), is_static);
    return *this;
  }
  template <class R, class C, class... A>
  class_& member(const std::string& name, R (C::*f)(A...)) {
    return method(
        name, [f](const intrusive_ptr<T>& self, A... args) -> R { return (self.get()->*f)(std::forward<A>(args)...); }, false);
  }
  template <class R, class C, class... A>
  class_& member(const std::string& name, R (C::*f)(A...) const) {
    return method(
        name, [f](const intrusive_ptr<T>& self, A... args) -> R { return (self.get()->*f)(std::forward<A>(args)...); }, false);
  }
  std::string space_, name_;
};

// The `m` of TORCH_LIBRARY and TORCH_LIBRARY_IMPL.
class Library {
 public:
  explicit Library(const char* space, const char* key = "") : space_(space), key_(key) {}
  // Declares an operator: by its schema alone, by its schema with a function for all devices, or by its name and the function, whose
  // C++ types then are the schema.
  Library& def(const std::string& schema) {
    naru::library::define_operator(space_, schema);
    return *this;
  }
  template <class F>
  requires(!std::is_convertible_v<F, std::vector<int>>) Library& def(const std::string& name_or_schema, F&& f) {
    using Plain = std::decay_t<F>;
    const bool schema = name_or_schema.find('(') != std::string::npos;
    naru::library::define_operator(space_, schema ? name_or_schema : name_or_schema + signature<Plain>());
    const std::string name = name_or_schema.substr(0, name_or_schema.find('('));
    return add(name, "CompositeImplicitAutograd", Plain(std::forward<F>(f)));
  }
  // Gives an operator its function for this block's dispatch key.
  template <class F>
  Library& impl(const std::string& name, F&& f) {
    return add(name, key_.empty() ? "CompositeImplicitAutograd" : key_, std::decay_t<F>(std::forward<F>(f)));
  }
  template <class T>
  torch::class_<T> class_(const std::string& name) {
    return torch::class_<T>(space_, name);
  }
  // Where Python registers the rest; nothing to do, as Python finds it without.
  Library& set_python_module(const char*, const char* = "") { return *this; }
  Library& impl_abstract_pystub(const char*, const char* = "") { return *this; }
  // For all operators of a namespace; naru's dispatcher falls through by itself.
  template <class F>
  Library& fallback(F&&) {
    return *this;
  }

 private:
  template <class F>
  static std::string signature() {
    if constexpr (requires(F f) { f.key; })
      return naru::library::detail::SignatureOf<decltype(F::function)>::text();
    else
      return naru::library::detail::SignatureOf<F>::text();
  }
  template <class F>
  Library& add(const std::string& name, const std::string& key, F f) {
    if constexpr (requires { f.key; })
      naru::library::add_kernel(space_, name, f.key, naru::library::detail::boxed(f.function));
    else
      naru::library::add_kernel(space_, name, key, naru::library::detail::boxed(f));
    return *this;
  }
  std::string space_, key_;
};

namespace detail {
struct LibraryBlock {
  LibraryBlock(const char* space, const char* key, void (*fill)(Library&)) {
    Library library(space, key);
    fill(library);
  }
};
}  // namespace detail

// Runs at:: functions without recording history, and operators without their functions for Autograd.
class AutoDispatchBelowAutograd {
 public:
  AutoDispatchBelowAutograd() : before_(naru::library::set_below_autograd(true)) {}
  ~AutoDispatchBelowAutograd() { naru::library::set_below_autograd(before_); }
  AutoDispatchBelowAutograd(const AutoDispatchBelowAutograd&) = delete;

 private:
  bool before_;
  naru::NoGrad off_;
};
using AutoDispatchBelowADInplaceOrView = AutoDispatchBelowAutograd;
using AutoNonVariableTypeMode = AutoDispatchBelowAutograd;

// An operator found by its name, to be called with the C++ types that its function has.
template <class F>
class TypedOperatorHandle;
template <class R, class... A>
class TypedOperatorHandle<R(A...)> {
 public:
  explicit TypedOperatorHandle(std::string name) : name_(std::move(name)) {}
  R call(A... args) const {
    naru::library::IValue result = naru::library::call_operator(name_, {naru::library::Conversion<std::remove_cvref_t<A>>::box(args)...});
    if constexpr (std::is_reference_v<R>)
      // The operator returns one of its arguments, which the caller has under this name.
      return argument_like<R>(result, args...);
    else if constexpr (!std::is_void_v<R>)
      return naru::library::Conversion<R>::unbox(result, {name_.c_str()});
  }
  R operator()(A... args) const { return call(std::forward<A>(args)...); }

 private:
  template <class Wanted, class First, class... Rest>
  static Wanted argument_like(const naru::library::IValue& result, First& first, Rest&... rest) {
    if constexpr (std::is_same_v<std::remove_cv_t<First>, std::remove_cvref_t<Wanted>> &&
                  (std::is_const_v<std::remove_reference_t<Wanted>> || !std::is_const_v<First>))
      if (result.toTensor().is(first)) return first;
    if constexpr (sizeof...(Rest) > 0)
      return argument_like<Wanted>(result, rest...);
    else
      throw naru::RuntimeError("an operator whose result is a reference did not return one of its arguments");
  }
  std::string name_;
};
class OperatorHandle {
 public:
  explicit OperatorHandle(std::string name) : name_(std::move(name)) {}
  template <class F>
  TypedOperatorHandle<F> typed() const {
    return TypedOperatorHandle<F>(name_);
  }

 private:
  std::string name_;
};
class Dispatcher {
 public:
  static Dispatcher& singleton() {
    static Dispatcher one;
    return one;
  }
  // Throws RuntimeError if no library that was loaded defines the operator. The overload's name is not used.
  OperatorHandle findSchemaOrThrow(const char* name, const char* = "") const {
    if (!naru::library::has_operator(name)) throw naru::RuntimeError("Could not find schema for {}", name);
    return OperatorHandle(name);
  }
};

}  // namespace torch

#define NARU_JOIN_(a, b) a##b
#define NARU_JOIN(a, b) NARU_JOIN_(a, b)
#define NARU_LIBRARY_BLOCK(space, key, m, function, block)               \
  static void function(torch::Library&);                                 \
  static const torch::detail::LibraryBlock block(space, key, &function); \
  static void function([[maybe_unused]] torch::Library& m)
#define TORCH_LIBRARY(space, m) \
  NARU_LIBRARY_BLOCK(#space, "", m, NARU_JOIN(naru_library_, __LINE__), NARU_JOIN(naru_library_block_, __LINE__))
#define TORCH_LIBRARY_FRAGMENT(space, m) TORCH_LIBRARY(space, m)
#define TORCH_LIBRARY_IMPL(space, key, m) \
  NARU_LIBRARY_BLOCK(#space, #key, m, NARU_JOIN(naru_library_, __LINE__), NARU_JOIN(naru_library_block_, __LINE__))
// A function as TORCH_FN(f), which libtorch passes as a type.
#define TORCH_FN(f) (&f)
#define TORCH_SELECTIVE_NAME(name) name
#define TORCH_SELECTIVE_SCHEMA(schema) schema
