// einsum (tests/python compares it with NumPy).
#include <gtest/gtest.h>

#include "naru/ops/aliases.h"
#include "ops/checks.h"

namespace naru {
namespace {

using testing::counted;
using testing::Doubles;
using testing::text_of;

TEST(Einsum, SumsWhatTheResultDoesNotName) {
  const Tensor x = counted({2, 3}), y = counted({3, 2}), b = counted({4, 2, 3});
  EXPECT_TRUE(equal(einsum("ij,jk->ik", {x, y}), x.mm(y)));
  EXPECT_TRUE(equal(einsum("ij, jk", {x, y}), x.mm(y)));
  EXPECT_TRUE(equal(einsum("...ij,...j->...i", {b, counted({3})}), b.matmul(counted({3}))));
  EXPECT_TRUE(equal(einsum("ij->ji", {x}), x.t()));
  EXPECT_EQ(einsum("ii", {counted({3, 3})}).item<double>(), 12);
  EXPECT_TRUE(equal(einsum("iij->ij", {counted({3, 3, 2})}), counted({3, 3, 2}).diagonal(0, 0, 1).t()));
  EXPECT_TRUE(equal(einsum("ij,jk,kl->il", {x, y, x}), x.mm(y).mm(x)));
  EXPECT_EQ(einsum("i,i->", {counted({0}), counted({0})}).item<double>(), 0);
  testing::expect_gradient([&](const Tensor& t) { return einsum("ij,jk->k", {t, y}); }, x);
}

TEST(Einsum, SaysWhatDoesNotFit) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(text_of<RuntimeError>([&] { einsum("ij,jk", {x}); }), "einsum(): fewer operands were provided than specified in the equation");
  EXPECT_EQ(text_of<RuntimeError>([&] { einsum("ij->k", {x}); }),
            "einsum(): output subscript k does not appear in the equation for any input operand");
  EXPECT_EQ(text_of<RuntimeError>([&] { einsum("i1", {x}); }),
            "einsum(): invalid subscript given at index 1 in the equation string, subscripts must be in [a-zA-Z]");
  EXPECT_EQ(text_of<RuntimeError>([&] {
              einsum("ij,ij->j", {x, counted({2, 2})});
            }),
            "einsum(): subscript j has size 2 for operand 1 which does not broadcast with previously seen size 3");
  EXPECT_THROW(einsum("", {}), ValueError);
  EXPECT_THROW(einsum("ij", {Tensor()}), RuntimeError);
}

}  // namespace
}  // namespace naru
