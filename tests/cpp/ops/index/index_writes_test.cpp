// Compositions that write by index, from C++.
#include <gtest/gtest.h>

#include <string>

#include "naru/ops.h"
#include "naru/ops/functions.h"
#include "ops/checks.h"

namespace naru {
namespace {

using testing::Doubles;
using testing::expect_starts;
using testing::text_of;

TEST(IndexWrites, CopiesAndWritesAgree) {
  const Tensor t = zeros({2, 3}), index = tensor({2, 0}), source = arange(1, 5).reshape({2, 2}).to(DType::F32);
  EXPECT_EQ(index_fill(t, 1, index, 7).to_doubles(), (Doubles{7, 0, 7, 7, 0, 7}));
  EXPECT_EQ(t.index_copy(1, index, source).to_doubles(), (Doubles{2, 0, 1, 4, 0, 3}));
  EXPECT_EQ(index_add(t, 1, index, source, 10).to_doubles(), (Doubles{20, 0, 10, 40, 0, 30}));
  const Index places[] = {tensor({1}), Slice()};
  EXPECT_EQ(index_put(t, places, 5).to_doubles(), (Doubles{0, 0, 0, 5, 5, 5}));
  EXPECT_EQ(t.to_doubles(), Doubles(6, 0));
  index_copy_(t, 1, index, source);
  index_fill_(t, 0, tensor({1}), 9);
  EXPECT_EQ(t.to_doubles(), (Doubles{2, 0, 1, 9, 9, 9}));
  expect_starts(text_of<IndexError>([&] { index_copy_(t, 1, tensor({3, 0}), source); }), "index_copy_(): index 3 is out of bounds");
  expect_starts(text_of<RuntimeError>([&] { index_copy_(t, 1, index, source.to(DType::F64)); }),
                "index_copy_(): self and source expected to have the same dtype");
  expect_starts(text_of<IndexError>([&] { index_fill(t, 1, tensor({1.0}), 0); }), "index_fill_(): Expected dtype int64 for index.");
}

TEST(IndexWrites, TakeAlongDimBroadcastsAndCountsFromTheEnd) {
  const Tensor t = tensor({1.0, 2.0, 3.0, 4.0}).reshape({2, 2});
  EXPECT_EQ(take_along_dim(t, tensor({-1}).reshape({1, 1}), 1).to_doubles(), (Doubles{2, 4}));
  EXPECT_EQ(t.take_along_dim(tensor({3, 0})).to_doubles(), (Doubles{4, 1}));
  expect_starts(text_of<RuntimeError>([&] { take_along_dim(t, tensor({0}), 1); }), "torch.take_along_dim(): input and indices");
}

TEST(IndexWrites, MasksTakeElementsInOrder) {
  const Tensor t = zeros({3}), mask = tensor({1, 0, 1}).to(DType::Bool);
  masked_scatter_(t, mask, tensor({5.0, 6.0, 7.0}));
  EXPECT_EQ(t.to_doubles(), (Doubles{5, 0, 6}));
  EXPECT_EQ(nonzero_numpy(t).size(), 1u);
  EXPECT_EQ(nonzero_numpy(t)[0].to_doubles(), (Doubles{0, 2}));
  expect_starts(text_of<RuntimeError>([&] { masked_scatter_(t, mask, tensor({5.0})); }), "masked_scatter: expected self and source");
}

std::string warned;

TEST(IndexWrites, AnExpandedTensorIsWrittenOnceWithAWarning) {
  warned.clear();
  set_warner([](const std::string& text) { warned = text; });
  const Tensor t = zeros({1, 2}).expand({2, 2});
  masked_fill_(t, tensor({0, 1, 0, 0}).reshape({2, 2}).to(DType::Bool), 5);
  set_warner(nullptr);
  EXPECT_EQ(t.to_doubles(), (Doubles{0, 5, 0, 5}));
  expect_starts(warned, "Use of masked_fill_ on expanded tensors is deprecated.");
}

TEST(IndexWrites, OneElementIsTrueOrNot) {
  EXPECT_TRUE(is_nonzero(tensor({2.0})));
  EXPECT_FALSE(tensor({0}).is_nonzero());
  expect_starts(text_of<RuntimeError>([] { is_nonzero(zeros({2})); }), "Boolean value of Tensor with more than one value is ambiguous");
  EXPECT_EQ(fill(zeros({2}), 3).to_doubles(), (Doubles{3, 3}));
}

}  // namespace
}  // namespace naru
