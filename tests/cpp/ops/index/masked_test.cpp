// Masked reductions and normalisations, from C++ (tests/python/ops/test_masked.py compares them with NumPy).
#include "naru/ops/masked.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/checks.h"

namespace naru {
namespace {

using testing::Doubles;
using testing::Ints;
using testing::text_of;

TEST(Masked, WhatTheMaskLeavesOutDoesNotCount) {
  const Tensor x = tensor({{1.0, 5.0}, {3.0, 2.0}}, DType::F64).requires_grad_(), mask = tensor({{true, false}, {true, true}});
  EXPECT_EQ(masked::sum(x, mask, 1).to_doubles(), (Doubles{1, 5}));
  EXPECT_EQ(masked::sum(x, {}, 1).to_doubles(), (Doubles{6, 5}));
  EXPECT_EQ(masked::mean(x, mask).item<double>(), 2);
  EXPECT_EQ(masked::prod(x, mask, Dims{0, 1}).item<double>(), 6);
  EXPECT_EQ(masked::amax(x, mask, 1, true).sizes(), (Dims{2, 1}));
  EXPECT_EQ(masked::argmax(x, mask, 0, false, DType::I64).to_ints(), (Ints{1, 1}));
  EXPECT_EQ(masked::median(x, mask, 0).to_doubles(), (Doubles{1, 2}));
  EXPECT_EQ(masked::var(x, mask).item<double>(), 1);
  EXPECT_EQ(masked::softmax(zeros({3}), tensor({true, false, true}), 0).to_doubles(), (Doubles{0.5, 0, 0.5}));
  EXPECT_EQ(masked::normalize(tensor({3.0, 9.0, 4.0}), tensor({true, false, true}), 1, 0)[1].item<double>(), 0);
  masked::sum(x, mask).backward();
  EXPECT_EQ(x.grad().to_doubles(), (Doubles{1, 0, 1, 1}));
}

TEST(Masked, OfNothingThereIsWhatChangesNothing) {
  const Tensor x = ones({2}), none = zeros({2}, DType::Bool);
  EXPECT_EQ(masked::sum(x, none).item<double>(), 0);
  EXPECT_EQ(masked::amin(x, none).item<double>(), INFINITY);
  for (const DType t : {DType::U8, DType::I8, DType::I64}) {
    EXPECT_EQ(masked::amax(x.to(t), none).item<int64_t>(), t == DType::U8 ? 0 : t == DType::I8 ? -128 : INT64_MIN);
    EXPECT_EQ(masked::amin(x.to(t), none).item<int64_t>(), t == DType::U8 ? 255 : t == DType::I8 ? 127 : INT64_MAX);
  }
  EXPECT_TRUE(std::isnan(masked::mean(x, none).item<double>()));
  EXPECT_EQ(text_of<ValueError>([&] { masked::median(x.to(DType::I64), none, 0); }),
            "masked median expects no fully masked out rows if dtype is not floating point");
  testing::expect_starts(text_of<IndexError>([&] { masked::sum(x, none.unsqueeze(0)); }), "_input_mask expected broadcastable mask");
}

}  // namespace
}  // namespace naru
