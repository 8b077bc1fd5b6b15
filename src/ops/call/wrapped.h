// How an operator begins. One line asks whether the call is special: a block of autocast is open, or an operand is a tensor of a vmap, or sparse. If so,
// and if there is a rule for it, the operator is called again with other operands; else it goes on:
//   Tensor softmax(const Tensor& t, int64_t dim, std::optional<DType> dtype) {
//     if (auto y = ops::wrapped("softmax", softmax, t, ops::Dim{dim}, dtype)) return *std::move(y);
// First the name, whose record has the rule of autocast; then what calls the operator again; then its arguments, each marked by what it is (below).
// A plain call costs a load and a test. The questions of a special one are asked in special_call, in one order for all operators.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "ops/batch/batch.h"
#include "ops/tensor/autocast.h"

namespace naru::ops {

// In place of the name: autocast has no rule for the operator.
struct NoCasts {};
inline constexpr NoCasts kNoCasts;

// --- What arguments are. Tensors, lists of them, and tensors among operands are operands: their bits decide, and autocast casts them. A
// std::optional<DType> names the result's type, in place of autocast. All others are passed on.

// An operand whose leading dimensions are a batch, of entries with `rank` dimensions: in a vmap there is one more.
struct Entries {
  const Tensor& t;
  int64_t rank = 0;
};
inline Entries matrices(const Tensor& t) { return {t, 2}; }
// A tensor (or operand) that is passed on as it is: places, for example.
template <class T>
struct Kept {
  const T& kept;
};
template <class T>
Kept(const T&) -> Kept<T>;
// A dimension of the only operand: in a vmap it is one further.
struct Dim {
  int64_t dim;
};
// The dimensions that a reduction of the only operand is over; all of them if none are named. empty_is_none: as dim_set.
template <class D>
struct Over {
  const D& dims;
  bool empty_is_none = false;
};
template <class D>
Over(const D&, bool = false) -> Over<D>;
// The dimension of a reduction, or that of the flattened operand if none is named.
struct OneOrAll {
  std::optional<int64_t> dim;
  bool keepdim;
};
// Last, where the marks above do not tell what is done: what gives the result if an operand is batched, or sparse. It may be a std::optional, empty if
// the operator is to go on.
template <class F>
struct BatchRule {
  F rule;
};
template <class F>
BatchRule(F) -> BatchRule<F>;
template <class F>
struct SparseRule {
  F rule;
};
template <class F>
SparseRule(F) -> SparseRule<F>;

namespace calls {

using Results = std::vector<Tensor>;

// What an operator gets in place of its operands (those of `from`), and of its dimensions.
struct Changes {
  std::span<const Tensor* const> from;
  const Tensor* to;
  const Dims* dims = nullptr;
  const Tensor& of(const Tensor& t) const noexcept;
};

// A callable without its type.
template <class... A>
struct Callable {
  const void* object = nullptr;
  std::optional<Results> (*run)(const void*, A...) = nullptr;
  std::optional<Results> operator()(A... a) const { return run(object, a...); }
};

inline std::optional<Results> packed(std::vector<Tensor> r) { return r; }
inline std::optional<Results> packed(Tensor r) {
  Results one;
  one.push_back(std::move(r));
  return one;
}
template <class... T>
std::optional<Results> packed(std::tuple<T...> r) {
  return std::apply([](T&... t) { return Results{std::move(t)...}; }, r);
}
inline std::optional<Results> packed(std::pair<Tensor, Tensor> r) { return Results{std::move(r.first), std::move(r.second)}; }
template <class R>
std::optional<Results> packed(std::optional<R> r) {
  return r ? packed(*std::move(r)) : std::nullopt;
}
template <class R>
R unpacked(Results&& r) {
  if constexpr (std::is_same_v<R, Results>)
    return std::move(r);
  else if constexpr (std::is_same_v<R, Tensor>)
    return std::move(r[0]);
  else
    return [&]<size_t... I>(std::index_sequence<I...>) { return R(std::move(r[I])...); }
  (std::make_index_sequence<std::tuple_size_v<R>>());
}

enum class Family : uint8_t { None, Entries, Along, Over, OneOrAll };

// A call, as special_call sees it.
struct Call {
  explicit Call(const char* n) : name(n) {}
  explicit Call(NoCasts) {}
  void add(const Tensor& t) { operands.push_back(&t); }
  void add(const std::vector<Tensor>& list) {
    for (const Tensor& t : list) add(t);
  }
  void add(const Operand& o) {
    if (o.is_tensor()) add(o.tensor());
  }
  void add(const Entries& e) { add(e.t), family = Family::Entries, rank = e.rank; }
  void add(Dim d) { dims.push_back(d.dim), family = Family::Along; }
  template <class D>
  void add(const Over<D>& o) {
    const OptionalDims& named = o.dims;
    all = !named || (named->empty() && !o.empty_is_none), family = Family::Over;
    if (!all) dims = *named;
  }
  void add(const OneOrAll& o) {
    all = !o.dim, family = Family::OneOrAll, keepdim = o.keepdim;
    if (o.dim) dims.push_back(*o.dim);
  }
  void add(std::optional<DType> t) { keeps_dtype = t.has_value(); }
  template <class F>
  void add(const BatchRule<F>& r) {
    batched = {&r.rule, [](const void* f) { return packed((*static_cast<const F*>(f))()); }};
  }
  template <class F>
  void add(const SparseRule<F>& r) {
    sparse = {&r.rule, [](const void* f) { return packed((*static_cast<const F*>(f))()); }};
  }
  template <class T>
  void add(const T&) {}

  const char* name = nullptr;
  std::vector<const Tensor*> operands;
  Family family = Family::None;
  int64_t rank = 0;
  Dims dims;
  bool all = false, keepdim = false, keeps_dtype = false;
  Callable<> batched, sparse;
  Callable<const Changes&> again;
};
std::optional<Results> special_call(const Call& call);

inline uint8_t bits_of(const Tensor& t) noexcept { return t.defined() ? t.impl()->special : 0; }
inline uint8_t bits_of(const std::vector<Tensor>& list) noexcept { return parts_of_any(list); }
inline uint8_t bits_of(const Operand& o) noexcept { return o.is_tensor() ? bits_of(o.tensor()) : 0; }
inline uint8_t bits_of(const Entries& e) noexcept { return bits_of(e.t); }
template <class T>
uint8_t bits_of(const T&) noexcept {
  return 0;
}

// What stands for an argument when the operator is called again. N: how many Dims are before it.
template <size_t N, class T>
decltype(auto) given(const Changes& c, const T& a) {
  if constexpr (std::is_same_v<T, Tensor>) {
    return c.of(a);
  } else if constexpr (std::is_same_v<T, Entries>) {
    return c.of(a.t);
  } else if constexpr (requires { a.kept; }) {
    return (a.kept);
  } else if constexpr (std::is_same_v<T, Operand>) {
    return a.is_tensor() ? Operand(c.of(a.tensor())) : a;
  } else if constexpr (std::is_same_v<T, std::vector<Tensor>>) {
    std::vector<Tensor> list;
    for (const Tensor& t : a) list.push_back(c.of(t));
    return list;
  } else if constexpr (std::is_same_v<T, Dim>) {
    return c.dims ? (*c.dims)[N] : a.dim;
  } else if constexpr (std::is_same_v<T, OneOrAll>) {
    return c.dims ? std::optional((*c.dims)[0]) : a.dim;
  } else if constexpr (requires { a.empty_is_none; }) {
    using D = std::remove_cvref_t<decltype(a.dims)>;
    return c.dims ? D(*c.dims) : a.dims;
  } else {
    return (a);
  }
}

template <class T>
constexpr bool kIsRule = requires(const T& t) {
  t.rule;
};
template <class... A>
using Passed = std::make_index_sequence<(size_t{!kIsRule<A>} + ... + 0)>;
template <size_t I, class... A>
constexpr size_t dims_before() {
  constexpr bool dims[] = {std::is_same_v<A, Dim>...};
  size_t n = 0;
  for (size_t i = 0; i < I; ++i) n += dims[i];
  return n;
}
template <class F, class... A, size_t... I>
decltype(auto) call_again(const F& f, const Changes& c, const std::tuple<const A&...>& all, std::index_sequence<I...>) {
  return std::invoke(f, given<dims_before<I, A...>()>(c, std::get<I>(all))...);
}
template <class F, class... A>
using Result = std::remove_cvref_t<decltype(call_again(std::declval<const F&>(), std::declval<const Changes&>(),
                                                       std::declval<const std::tuple<const A&...>&>(), Passed<A...>()))>;

// Small arguments are handed over by value: an address would keep them in memory.
template <class T>
using Handed = std::conditional_t<std::is_trivially_copyable_v<T> && sizeof(T) <= 16, const T, const T&>;

template <class R, class... A>
std::optional<R> finished(Call& call, const A&... arguments) {
  (call.add(arguments), ...);
  auto made = special_call(call);
  if (!made) return {};
  return unpacked<R>(*std::move(made));
}
template <class F, class Name, class... A>
[[gnu::noinline, gnu::cold]] std::optional<Result<F, A...>> special(Name name, F f, Handed<A>... arguments) {
  Call call(name);
  const std::tuple<const A&...> all(arguments...);
  const auto again = [&](const Changes& c) { return packed(call_again(f, c, all, Passed<A...>())); };
  call.again = {&again, [](const void* g, const Changes& c) { return (*static_cast<decltype(again)*>(g))(c); }};
  return finished<Result<F, A...>>(call, arguments...);
}

template <class R>
R without_option(const R&);
template <class R>
R without_option(const std::optional<R>&);
template <class First, class... A>
struct LastRule : LastRule<A...> {};
template <class Last>
struct LastRule<Last> {
  using Result = decltype(without_option(std::declval<const Last&>().rule()));
};
template <class R, class... A>
[[gnu::noinline, gnu::cold]] std::optional<R> special_by_rules(Handed<A>... arguments) {
  Call call{NoCasts()};
  return finished<R, A...>(call, arguments...);
}

}  // namespace calls

// What the operator gives for a special call, if there is a rule for it.
template <class Name, class F, class... A>
[[gnu::always_inline]] inline std::optional<calls::Result<F, A...>> wrapped(Name name, F again, const A&... arguments) {
  unsigned special = (unsigned{calls::bits_of(arguments)} | ...) & kHasParts;
  if constexpr (!std::is_same_v<Name, NoCasts>) special |= autocast::anywhere();
  if (special == 0) [[likely]]
    return {};
  return calls::special<F, Name, A...>(name, again, arguments...);
}
// The same for an operator that autocast does not know, and of which the rules tell all: it is given its operands and the rules.
template <class... A>
[[gnu::always_inline]] inline auto by_rules(const A&... arguments) -> std::optional<typename calls::LastRule<A...>::Result> {
  if (((unsigned{calls::bits_of(arguments)} | ...) & kHasParts) == 0) [[likely]]
    return {};
  return calls::special_by_rules<typename calls::LastRule<A...>::Result, A...>(arguments...);
}

}  // namespace naru::ops
