#include <gtest/gtest.h>

#include "naru/compositions.h"
#include "naru/devices.h"
#include "naru/linalg.h"
#include "naru/ops.h"

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
