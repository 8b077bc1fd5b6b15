// Binding: one definition makes a function of the module, a method of Tensor, or both, with PyTorch's parameter names,
// defaults and overloads.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/autocast.h"
#include "ir/op_ids.h"
#include "object/convert.h"
#include "object/out.h"
#include "runtime/queue/operator_scope.h"

namespace naru::py {

constexpr int kMaxParams = 18;

struct Match {
  int bad = -1;  // the parameter that was of another type
};
using Thunk = PyObject* (*)(const void* f, PyObject* const* slots, Match& match);

struct Param {
  PyObject* name = nullptr;      // interned
  PyObject* fallback = nullptr;  // the default; null if the argument is required
  bool keyword_only = false;
  const char* type = "";  // for messages
  const char* hint = "";  // for stubs
  bool or_none = false;   // there, too: " | None"
  std::string text;       // of the default
};

struct Overload {
  std::vector<Param> params;
  int positional = 0;       // parameters that may be given by position
  int varargs = -1;         // the one that takes all further positions ("*size")
  int dtype = -1;           // "dtype"
  int device = -1;          // "device"
  bool deprecated = false;  // still taken, with a warning; no message speaks of it
  int out = -1;             // "out": the result is written there; not passed to the function
  // An operator of the elementwise table whose operands are the first parameters, if all others have their defaults: it can write to out directly.
  int elementwise = -1, operands = 0;
  Thunk thunk = nullptr;
  const void* state = nullptr;
  const char* result = "Any";
  const char* doc = "";
};

// All overloads under one name.
struct Definition {
  const char* name;
  bool method = false, is_static = false;
  bool in_place = false;  // the first argument takes the result's elements, and is the result
  OutRule out_rule = OutRule::Cast;
  Sharing sharing = Sharing::Any;
  bool writes_first = false;  // the function writes its first argument, as its name says: add_
  std::vector<std::unique_ptr<Overload>> overloads;
};

enum Where : unsigned { kFunction = 1, kMethod = 2, kBoth = 3, kStatic = 4, kDeprecated = 8 };

// The parameter types and result of a function, as far as messages and stubs name them.
struct TypeInfo {
  const char* name;
  const char* hint;
  int slots;
  bool optional;
};

void add_overload(unsigned where, const char* name, const char* params, const char* doc, Thunk thunk, const void* state,
                  const std::vector<TypeInfo>& types, const char* result);
// Marks `name` as the elementwise operator `id` of its first `operands` parameters, where the other parameters have their defaults.
void mark_elementwise(const char* name, ir::OpId id, int operands);
// A second name for what is defined under `name` so far (functions and methods).
void add_alias(const char* alias, const char* name);
// A method (and function, where there is one) `name`_ that writes what `name` gives to its first argument.
void add_in_place(const char* name);
// A docstring: the text, and the example that naru/_documentation has for the name.
PyObject* with_example(std::string text, const char* name);
// Puts everything defined into the module and into Tensor.
void install_functions(nb::module_& m);

namespace detail {

template <class A>
constexpr bool is_optional() {
  if constexpr (requires { A::kOptional; })
    return true;
  else
    return false;
}

// Elements that make work long enough to let other Python threads run.
constexpr int64_t kLongWork = 1 << 16;

template <class A>
int64_t work_of(const A& a) {
  if constexpr (requires { a.work(); })
    return a.work();
  else
    return 0;
}

template <class A>
void hold(A& a) {
  if constexpr (requires { a.hold(); }) a.hold();
}

// A call whose work is long: without the GIL, and its parts fused even if they read memory of other libraries.
struct LongCall {
  void end() { scope.end(); }
  GilRelease unlocked;
  runtime::OperatorScope scope;
};

template <class F, class R, class... A>
struct Invoker {
  template <size_t I>
  static constexpr int offset() {
    constexpr int slots[] = {slots_of<Arg<A>>()..., 0};
    int at = 0;
    for (size_t i = 0; i < I; ++i) at += slots[i];
    return at;
  }
  // Neither takes nor gives Python objects: may run without the GIL.
  static constexpr bool kPure = !(std::is_same_v<A, PyObject*> || ...) && !std::is_same_v<R, PyObject*> && !std::is_same_v<R, nb::object>;

  template <size_t... I>
  static PyObject* run(const F& f, PyObject* const* slots, Match& match, std::index_sequence<I...>) {
    std::tuple<Arg<A>...> args;
    const bool ok = ((std::get<I>(args).load(slots + offset<I>()) || (match.bad = offset<I>(), false)) && ...);
    if (!ok) return nullptr;
    const auto call = [&] { return f(std::get<I>(args).get()...); };
    // (Work is that of expanded operands, too: up to what 64 bits hold.)
    const bool unlock = kPure && (std::min<int64_t>(work_of(std::get<I>(args)), kLongWork) + ... + int64_t{0}) >= kLongWork;
    if (unlock) (hold(std::get<I>(args)), ...);
    if constexpr (std::is_void_v<R>) {
      if (unlock) {
        LongCall scope;
        call();
        scope.end();
      } else {
        call();
      }
      Py_RETURN_NONE;
    } else if constexpr (std::is_same_v<R, Self>) {
      if (unlock) {
        LongCall scope;
        call();
        scope.end();
      } else {
        call();
      }
      return Py_NewRef(slots[0]);
    } else {
      if (unlock) {
        std::optional<R> result;
        {
          LongCall scope;
          result.emplace(call());
          scope.end();
        }
        return check(to_python(*result));
      }
      return check(to_python(call()));
    }
  }
  static PyObject* thunk(const void* f, PyObject* const* slots, Match& match) {
    return run(*static_cast<const F*>(f), slots, match, std::index_sequence_for<A...>{});
  }
  static std::vector<TypeInfo> types() { return {TypeInfo{Arg<A>::kName, Arg<A>::kHint, slots_of<Arg<A>>(), is_optional<Arg<A>>()}...}; }
};

template <class F, class R, class C, class... A>
void add(unsigned where, const char* name, const char* params, const char* doc, F f, R (C::*)(A...) const) {
  using I = Invoker<F, R, std::decay_t<A>...>;
  add_overload(where, name, params, doc, &I::thunk, new F(std::move(f)), I::types(), Result<R>::kHint);
}

}  // namespace detail

// Binds a lambda. `params` lists its parameters as PyTorch names them: "input, dim=None, keepdim=False, *, dtype=None,
// out=None";
// "*size" takes a tuple or all further positions, "@options" stands for dtype, layout, device, pin_memory,
// requires_grad (taken as one Options), "out=None" is not passed on: the result is written there. Overloads of a name
// are tried in the order of their definition.
template <class F>
void def(unsigned where, const char* name, const char* params, const char* doc, F f) {
  detail::add(where, name, params, doc, std::move(f), &F::operator());
}

}  // namespace naru::py
