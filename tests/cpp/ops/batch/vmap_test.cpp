// vmap for C++: what a batch gives is what its entries give.
#include "naru/vmap.h"

#include <gtest/gtest.h>

#include "naru/autograd.h"
#include "naru/nn/functional.h"
#include "naru/ops.h"
#include "naru/ops/functions.h"
#include "ops/checks.h"

namespace naru {
namespace {

Tensor numbers(const Dims& sizes, uint64_t seed = 0) {
  manual_seed(seed);
  return randn(sizes, Options(DType::F64));
}

// f of the whole batch, and entry by entry.
template <class F, class... T>
void expect_same(const char* what, F f, const T&... batches) {
  const Tensor all = vmap(f)(batches...);
  std::vector<Tensor> each;
  const std::array<Tensor, sizeof...(T)> list{batches...};
  for (int64_t i = 0; i < list[0].size(0); ++i) each.push_back(f(batches.select(0, i)...));
  const Tensor want = stack(each);
  ASSERT_EQ(all.sizes(), want.sizes()) << what;
  EXPECT_EQ(all.dtype(), want.dtype()) << what;
  EXPECT_TRUE(allclose(all, want, 1e-9, 1e-12)) << what;
}

TEST(Vmap, GivesWhatEntriesGive) {
  const Tensor a = numbers({3, 4, 5}), b = numbers({3, 5}, 1), matrix = numbers({5, 6}, 2);
  expect_same(
      "elementwise", [](const Tensor& x, const Tensor& y) { return sin(x * 2 + 1) - y; }, a, b);
  expect_same(
      "a number of each entry", [](const Tensor& x, const Tensor& y) { return x * y.select(0, 1); }, a, b);
  expect_same(
      "reductions", [](const Tensor& x) { return sum(x, 0) + mean(x, -1, true).sum() + amax(x) + x.var(1).sum(); }, a);
  expect_same(
      "along a dimension", [](const Tensor& x) { return softmax(x, 0) + cumsum(x, -1) + sort(x, 0).first; }, a);
  expect_same(
      "views",
      [](const Tensor& x) {
        return x.t().unsqueeze(0).expand({2, 5, 4}).reshape({-1}).slice(0, 1, {}, 3);
      },
      a);
  expect_same(
      "joins",
      [](const Tensor& x, const Tensor& y) {
        return cat({x, stack({y, y})}, 0).flip({0});
      },
      a, b);
  expect_same(
      "products", [&](const Tensor& x, const Tensor& y) { return matmul(matmul(x, y) + 1, x) + matmul(y, matrix).sum(); }, a, b);
  expect_same(
      "positions",
      [](const Tensor& x) {
        return x[{Slice(0, 2), std::vector<int64_t>{0, 3, 3}}] + gather(x, 0, argsort(x, 0)).sum();
      },
      a);
  expect_same(
      "writes",
      [](const Tensor& x, const Tensor& y) {
        Tensor t = x.clone();
        t[1] = y;
        t.mul_(2).select(0, 0).copy_(y.flip({0}));
        return t;
      },
      a, b);
}

TEST(Vmap, TakesDimensionsAndGivesThem) {
  const Tensor a = numbers({4, 3}), v = numbers({4}, 1);
  const auto scaled = vmap([](const Tensor& x, const Tensor& y) { return x * y; }, {.in_dims = {1, std::nullopt}, .out_dim = -1});
  EXPECT_TRUE(equal(scaled(a, v), a * v.unsqueeze(1)));
  const auto [least, greatest] = vmap([](const Tensor& x) { return std::pair(min(x), max(x)); })(a);
  EXPECT_TRUE(equal(least, amin(a, 1)) && equal(greatest, amax(a, 1)));
  EXPECT_EQ(vmap([](const Tensor&) { return ones({2}); })(a).sizes(), (Dims{4, 2}));
}

TEST(Vmap, NestsAndIsDifferentiated) {
  const Tensor a = numbers({3, 4}), b = numbers({5, 4}, 1);
  const auto row = [&](const Tensor& x) { return vmap([&](const Tensor& y) { return dot(x, y); })(b); };
  EXPECT_TRUE(allclose(vmap(row)(a), matmul(a, b.t())));

  const Tensor w = numbers({4}, 2).requires_grad_();
  sum(vmap([&](const Tensor& x) { return tanh(dot(x, w)); })(a)).backward();
  const Tensor through = w.grad().clone();
  w.set_grad({});
  sum(tanh(matmul(a, w))).backward();
  EXPECT_TRUE(allclose(through, w.grad()));
}

TEST(Vmap, RefusesWhatItCannotDo) {
  const Tensor a = numbers({3, 4});
  const auto text = [&](auto f) { return testing::text_of<RuntimeError>([&] { vmap(f)(a); }); };
  EXPECT_NE(text([](const Tensor& x) { return x * x.sum().item().to_double(); }).find("item()"), std::string::npos);
  EXPECT_NE(text([](const Tensor& x) { return x + randn({4}); }).find("randomness error mode"), std::string::npos);
  EXPECT_NE(text([](const Tensor& x) { return nonzero(x); }).find("dynamic shape"), std::string::npos);
  EXPECT_NE(text([](const Tensor& x) { return zeros({4}, Options(DType::F64)).add_(x); }).find("inplace arithmetic"), std::string::npos);
  Tensor kept;
  vmap([&](const Tensor& x) { return kept = x; })(a);
  EXPECT_THROW(kept + 1, RuntimeError);
  EXPECT_NO_THROW(randn({1}));
  EXPECT_THROW(vmap([](const Tensor& x, const Tensor& y) { return x + y; })(a, numbers({4, 4})), ValueError);
  EXPECT_THROW(vmap([](const Tensor& x) { return x; }, {.in_dims = {std::nullopt}})(a), ValueError);
}

}  // namespace
}  // namespace naru
