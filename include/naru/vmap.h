// vmap: a function of one entry, called once for all entries of a batch.
//
//   auto each = vmap([](const Tensor& x, const Tensor& y) { return dot(x, y); });
//   Tensor products = each(rows, columns);                       // (n, k), (n, k) -> (n)
//   vmap(f, {.in_dims = {0, std::nullopt}})(batch, same_for_all)
#pragma once

#include <array>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "naru/tensor.h"

namespace naru {

struct VmapOptions {
  // The dimension of each argument that is the batch; none for arguments that are the same for all entries. Empty: the first of all.
  std::vector<std::optional<int64_t>> in_dims;
  int64_t out_dim = 0;  // where the batch is in each result
};

namespace detail {
// While it lives, one vmap is under way on this thread. Random numbers are refused there: they would be the same for all entries.
class VmapScope {
 public:
  explicit VmapScope(std::span<const Tensor* const> arguments, const VmapOptions& options);
  ~VmapScope();
  VmapScope(const VmapScope&) = delete;
  VmapScope& operator=(const VmapScope&) = delete;
  // Argument i as the function sees it, and a result as the caller does.
  Tensor entry(size_t i) const;
  Tensor whole(const Tensor& result) const;
  std::vector<Tensor> whole(const std::vector<Tensor>& results) const {
    std::vector<Tensor> all;
    for (const Tensor& t : results) all.push_back(whole(t));
    return all;
  }
  template <class A, class B>
  std::pair<A, B> whole(const std::pair<A, B>& results) const {
    return {whole(results.first), whole(results.second)};
  }
  template <class... T>
  std::tuple<T...> whole(const std::tuple<T...>& results) const {
    return std::apply([&](const T&... t) { return std::tuple<T...>(whole(t)...); }, results);
  }

 private:
  std::vector<const Tensor*> arguments_;
  const VmapOptions& options_;
  int64_t level_ = 0, size_ = 0;
  const char* former_ = nullptr;  // what random operators were refused with before
};
}  // namespace detail

// What vmap gives: a function of as many tensors as f takes, with the results of f: a Tensor, or a vector, pair or tuple of them.
template <class F>
class Vmapped {
 public:
  Vmapped(F f, VmapOptions options) : f_(std::move(f)), options_(std::move(options)) {}
  template <class... T>
  auto operator()(const T&... arguments) const {
    return of_tensors(std::index_sequence_for<T...>(), Tensor(arguments)...);
  }

 private:
  template <size_t... I, class... T>
  auto of_tensors(std::index_sequence<I...>, const T&... arguments) const {
    const std::array<const Tensor*, sizeof...(T)> all{&arguments...};
    const detail::VmapScope scope(all, options_);
    return scope.whole(f_(scope.entry(I)...));
  }
  F f_;
  VmapOptions options_;
};

// Each operator in f computes for the whole batch, so f sees tensors of the shape of one entry; autograd and nested calls of vmap work within and
// around it. ValueError if in_dims do not fit; RuntimeError for what depends on the values of one entry (item()), NotImplementedError for an operator
// that has no rule.
template <class F>
Vmapped<F> vmap(F f, VmapOptions options = {}) {
  return {std::move(f), std::move(options)};
}

}  // namespace naru
