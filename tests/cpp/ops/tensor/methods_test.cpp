#include <gtest/gtest.h>

#include "naru/device/devices.h"
#include "naru/ops.h"
#include "naru/ops/aliases.h"
#include "naru/ops/functions.h"
#include "naru/ops/linalg.h"

namespace naru {
namespace {

TEST(Methods, AreTheFunctionsOfThatName) {
  const Tensor x = randn({3, 4}), m = randn({4, 4}), mask = x.gt(0);
  const Tensor at = tensor({{0, 1}, {1, 0}, {2, 2}});
  EXPECT_TRUE(x.equal(x.clone()));
  const auto same = [](const Tensor& a, const Tensor& b) { return a.dtype() == b.dtype() && equal(a, b); };
  EXPECT_TRUE(same(x.softmax(-1), softmax(x, -1)));
  EXPECT_TRUE(same(x.mm(m), mm(x, m)));
  EXPECT_TRUE(same(x.std(0), std(x, Dims{0})));
  EXPECT_TRUE(same(x.max(1).second, max(x, 1).second));
  EXPECT_TRUE(same(x.gather(1, at), gather(x, 1, at)));
  EXPECT_TRUE(same(x.masked_fill(mask, 2), masked_fill(x, mask, 2)));
  EXPECT_TRUE(same(x.topk(2).first, topk(x, 2).first));
  EXPECT_TRUE(same(x.cumsum(0), cumsum(x, 0)));
  EXPECT_TRUE(same(x.any(0), any(x, Dims{0})));
  EXPECT_TRUE(same(x.norm(), norm(x)));
  EXPECT_TRUE(same(m.det(), linalg::det(m)));
  EXPECT_TRUE(same(m.inverse(), linalg::inv(m)));
  EXPECT_TRUE(same(x[0].expand_as(x), x[0].expand({3, 4})));
  EXPECT_TRUE(same(x.new_zeros(2), zeros({2})));
  EXPECT_EQ(x.split(2).size(), 2u);
  EXPECT_EQ(x.type_as(at).dtype(), DType::I64);
  EXPECT_EQ(x.nbytes(), 48u);
  Tensor w = x.clone();
  w.masked_fill_(mask, 0).scatter_(1, at, 5);
  EXPECT_EQ(w[0][0].item<float>(), 5);
  EXPECT_TRUE(same(x[mask].softmax(0), softmax(x[mask], 0)));
}

TEST(Methods, WriteToTheTensorWhatTheirFunctionGives) {
  const Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}}), before = x.clone();
  x.addmm_(x.clone(), ones({2, 2})).deg2rad_().sinc_();
  EXPECT_TRUE(equal(x, sinc(deg2rad(addmm(before, before, ones({2, 2}))))));
  EXPECT_TRUE(equal(x.polygamma(1), polygamma(1, x)));
  EXPECT_EQ(before.clone().greater_(2).to_doubles(), (std::vector<double>{0, 0, 1, 1}));
  const Tensor whole = tensor({4, 6});
  EXPECT_EQ(whole.gcd_(tensor({6, 4})).to_ints(), (std::vector<int64_t>{2, 2}));
  try {
    whole.sinc_();
    FAIL();
  } catch (const RuntimeError& e) {
    EXPECT_STREQ(e.what(), "result type Float can't be cast to the desired output type Long (sinc_ writes to its tensor)");
  }
  EXPECT_THROW(tensor({1.0}).heaviside_(ones({2})), RuntimeError);
  const Tensor w = tensor({2.0}).requires_grad_(), y = w * 1.0;
  y.arctan_().backward();
  EXPECT_NEAR(w.grad().item<double>(), 0.2, 1e-7);
}

TEST(Methods, OtherNamesAreTheSameFunctions) {
  const Tensor x = tensor({{0.5, -0.25}, {0.75, 0.1}}), y = x + 2;
  EXPECT_TRUE(equal(x.arccos(), acos(x)) && equal(absolute(x), x.abs()) && equal(x.multiply(y), x * y) &&
              equal(subtract(x, y, 2), sub(x, y, 2)));
  EXPECT_TRUE(equal(x.swapaxes(0, 1), x.t()) && equal(x.fliplr(), flip(x, {1})) && equal(x.clip(0, 0.5), clamp(x, 0, 0.5)));
  EXPECT_TRUE(equal(clip(x, 0, 0.5), clamp(x, 0, 0.5)) && equal(concat({x, y}), cat({x, y})) && x.is_same_size(y));
  EXPECT_EQ(x.stride(-2), 2);
  EXPECT_EQ(atleast_3d(x).sizes(), (Dims{2, 2, 1}));
  EXPECT_TRUE(equal(special::psi(y), digamma(y)) && equal(special::hermite_polynomial_h(y, 2), y * y * 4 - 2));
}

TEST(Methods, DimsAreANumberAListOrDims) {
  const Tensor x = randn({2, 3});
  EXPECT_TRUE(equal(x.sum(0), x.sum({0})));
  EXPECT_TRUE(equal(sum(x, 1), sum(x, Dims{1})));
  EXPECT_TRUE(equal(x.mean(-1, true), mean(x, {1}, true)));
  EXPECT_EQ(zeros(3).sizes(), (Dims{3}));
  EXPECT_EQ(x.reshape(-1).sizes(), (Dims{6}));
  EXPECT_EQ(x.amax(1).sizes(), (Dims{2}));
  EXPECT_EQ(zeros(0).numel(), 0);
}

TEST(Methods, OptionsAreATypeADeviceOrTheNameOfOne) {
  EXPECT_EQ(ones({2}, "float64").dtype(), DType::F64);
  EXPECT_EQ(ones({2}, "cpu").device(), Device("cpu"));
  EXPECT_EQ(ones({2}, best_device()).device(), best_device().device);
  EXPECT_EQ(ones({2}, DType::I64).dtype(), DType::I64);
  try {
    ones({2}, "floaty");
    FAIL();
  } catch (const RuntimeError& e) {
    EXPECT_NE(std::string(e.what()).find("neither a device"), std::string::npos);
  }
}

}  // namespace
}  // namespace naru
