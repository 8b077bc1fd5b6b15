// How an operator begins. One line asks whether the call is special: a block of autocast is open, or an operand is a tensor of a vmap, or sparse. If so,
// and if there is a rule for it, the operator is called again with other operands; else it goes on:
//   Tensor softmax(const Tensor& t, int64_t dim, std::optional<DType> dtype) {
//     if (auto y = ops::wrapped("softmax", softmax, t, ops::Dim{dim}, dtype)) return *std::move(y);
// First the name, whose record has the rule of autocast; then what calls the operator again; then its arguments, each marked by what it is (below).
// A plain call costs a load and a test. The questions of a special one are asked by special_call, in one order for all operators.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "ops/batch/batch.h"
#include "ops/tensor/autocast.h"

namespace naru::ops {

// In place of the name: autocast has no rule for the operator.
struct NoCasts {};
inline constexpr NoCasts kNoCasts;

// What arguments are. Tensors, lists of them and tensors among operands are operands: their bits decide, and autocast casts them. A
// std::optional<DType> names the result's type, which autocast keeps. What is not marked is passed on. An operator with a mark has one operand.

// The operand, if its leading dimensions are a batch of entries with `rank` dimensions: in a vmap there is one more.
struct Entries {
  const Tensor& t;
  int64_t rank = 0;
};
inline Entries matrices(const Tensor& t) { return {t, 2}; }
// A dimension of the operand: in a vmap it is one further.
struct Dim {
  int64_t dim;
};
// The dimensions that are reduced (or turned); all of them if none are named. empty_is_none: as dim_set.
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
// Last, where marks do not tell what is done: what gives the result if an operand is batched, or sparse. It may be a std::optional, empty if the operator
// is to go on.
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

// What an operator is called with in place of its operands, and the rank of entries if these are values of a batch.
struct Changes {
  std::span<const Tensor* const> from;
  const Tensor* to;
  std::optional<int64_t> rank;

  const Tensor& of(const Tensor& t) const noexcept;
  Dims behind(const OptionalDims& dims, bool empty_is_none) const;
};

// Without its type: the operator, or a rule.
struct Callable {
  const void* object = nullptr;
  std::optional<Results> (*run)(const void*, const Changes&) = nullptr;
};

// Out of line, so that what each operator adds to the code is small.
Results listed(std::initializer_list<const Tensor*> tensors);
template <class R>
std::optional<Results> packed(const R& r) {
  if constexpr (requires { r.has_value(); })
    return r ? packed(*r) : std::nullopt;
  else if constexpr (std::is_same_v<R, Tensor>)
    return listed({&r});
  else if constexpr (std::is_same_v<R, Results>)
    return r;
  else
    return std::apply([](const auto&... t) { return listed({&t...}); }, r);
}
template <class R>
R unpacked(const Results& r) {
  if constexpr (std::is_same_v<R, Tensor>)
    return r[0];
  else if constexpr (std::is_same_v<R, Results>)
    return r;
  else
    return [&]<size_t... I>(std::index_sequence<I...>) { return R(r[I]...); }
  (std::make_index_sequence<std::tuple_size_v<R>>());
}

// A call, as special_call sees it.
struct Call {
  void add(const Tensor& t);
  void add(const std::vector<Tensor>& list);
  void add(const Operand& o);
  void add(const Entries& e) { add(e.t), marked = true, rank = e.rank; }
  void add(const Dim&) { marked = along = true; }
  template <class D>
  void add(const Over<D>& o) {
    const OptionalDims& dims = o.dims;
    marked = true, along = !(dims && dims->empty() && o.empty_is_none);
  }
  void add(const OneOrAll& o) { marked = along = true, flat = !o.dim, keepdim = o.keepdim; }
  void add(std::optional<DType> t) { keeps_dtype = t.has_value(); }
  template <class F>
  void add(const BatchRule<F>& r) {
    batched = {&r.rule, [](const void* f, const Changes&) { return packed((*static_cast<const F*>(f))()); }};
  }
  template <class F>
  void add(const SparseRule<F>& r) {
    sparse = {&r.rule, [](const void* f, const Changes&) { return packed((*static_cast<const F*>(f))()); }};
  }
  template <class T>
  void add(const T&) {}

  const char* name = nullptr;  // none: autocast has no rule
  std::vector<const Tensor*> operands;
  int64_t rank = 0;
  // Whether a mark tells what is done in a vmap; whether an entry without dimensions is a vector of one there; whether entries are flattened.
  bool marked = false, along = false, flat = false, keepdim = false, keeps_dtype = false;
  Callable again, batched, sparse;
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

// What stands for an argument when the operator is called again.
inline const Tensor& given(const Changes& c, const Tensor& t) { return c.of(t); }
inline const Tensor& given(const Changes& c, const Entries& e) { return c.of(e.t); }
inline Operand given(const Changes& c, const Operand& o) { return o.is_tensor() ? Operand(c.of(o.tensor())) : o; }
std::vector<Tensor> given(const Changes& c, const std::vector<Tensor>& list);
inline int64_t given(const Changes& c, Dim d) { return c.rank ? batching::behind_batch(d.dim, *c.rank) : d.dim; }
inline std::optional<int64_t> given(const Changes& c, const OneOrAll& o) {
  return c.rank ? batching::behind_batch(o.dim.value_or(0), *c.rank) : o.dim;
}
template <class D>
D given(const Changes& c, const Over<D>& o) {
  return c.rank ? D(c.behind(o.dims, o.empty_is_none)) : o.dims;
}
template <class T>
const T& given(const Changes&, const T& other) {
  return other;
}

template <class T>
constexpr bool kIsRule = requires(const T& t) {
  t.rule;
};
template <class... A>
using Passed = std::make_index_sequence<(size_t{!kIsRule<A>} + ...)>;
template <class F, class... A, size_t... I>
decltype(auto) call_again(const F& f, const Changes& c, const std::tuple<const A&...>& all, std::index_sequence<I...>) {
  return std::invoke(f, given(c, std::get<I>(all))...);
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
  const auto made = special_call(call);
  return made ? std::optional(unpacked<R>(*made)) : std::nullopt;
}
template <class F, class... A>
[[gnu::noinline, gnu::cold]] std::optional<Result<F, A...>> special(const char* name, F f, Handed<A>... arguments) {
  Call call;
  call.name = name;
  const std::tuple<const A&...> all(arguments...);
  const auto again = [&](const Changes& c) { return packed(call_again(f, c, all, Passed<A...>())); };
  call.again = {&again, [](const void* g, const Changes& c) { return (*static_cast<decltype(again)*>(g))(c); }};
  return finished<Result<F, A...>, A...>(call, arguments...);
}

template <class First, class... A>
struct LastRule : LastRule<A...> {};
template <class Last>
struct LastRule<Last> {
  static auto result(const Last& last) {
    if constexpr (requires { last.rule().has_value(); })
      return *last.rule();
    else
      return last.rule();
  }
};
template <class... A>
using RuleResult = decltype(LastRule<A...>::result(std::get<sizeof...(A) - 1>(std::declval<const std::tuple<A...>&>())));
template <class R, class... A>
[[gnu::noinline, gnu::cold]] std::optional<R> special_by_rules(Handed<A>... arguments) {
  Call call;
  return finished<R, A...>(call, arguments...);
}

}  // namespace calls

// What the operator gives for a special call, if there is a rule for it.
template <class Name, class F, class... A>
[[gnu::always_inline]] inline std::optional<calls::Result<F, A...>> wrapped(Name name, F again, const A&... arguments) {
  constexpr bool casts = !std::is_same_v<Name, NoCasts>;
  unsigned special = (unsigned{calls::bits_of(arguments)} | ...) & kHasParts;
  if constexpr (casts) special |= autocast::anywhere();
  if (special == 0) [[likely]]
    return {};
  if constexpr (casts)
    return calls::special<F, A...>(name, again, arguments...);
  else
    return calls::special<F, A...>(nullptr, again, arguments...);
}
// The same for an operator that autocast does not know, and of which the rules tell all: it is given its operands and the rules.
template <class... A>
[[gnu::always_inline]] inline std::optional<calls::RuleResult<A...>> by_rules(const A&... arguments) {
  if (((unsigned{calls::bits_of(arguments)} | ...) & kHasParts) == 0) [[likely]]
    return {};
  return calls::special_by_rules<calls::RuleResult<A...>, A...>(arguments...);
}

}  // namespace naru::ops
