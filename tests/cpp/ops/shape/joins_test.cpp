// Stacking, splitting, repeating and permuting, from C++.
#include <gtest/gtest.h>

#include "naru/ops.h"
#include "naru/ops/functions.h"
#include "ops/checks.h"

namespace naru {
namespace {

using testing::Doubles;
using testing::expect_starts;
using testing::text_of;

TEST(Joins, StacksTakeVectorsAsRowsOrColumns) {
  const Tensor a = tensor({1.0, 2.0}), b = tensor({3.0, 4.0});
  EXPECT_EQ(hstack({a, b}).sizes(), (Dims{4}));
  EXPECT_EQ(hstack({a.reshape({2, 1}), b.reshape({2, 1})}).to_doubles(), (Doubles{1, 3, 2, 4}));
  EXPECT_EQ(vstack({a, b}).to_doubles(), (Doubles{1, 2, 3, 4}));
  EXPECT_EQ(dstack({a, b}).sizes(), (Dims{1, 2, 2}));
  EXPECT_EQ(column_stack({a, b}).to_doubles(), (Doubles{1, 3, 2, 4}));
}

TEST(Joins, PiecesEndWhereTheyAreToldTo) {
  const Tensor t = tensor({0, 1, 2, 3, 4});
  EXPECT_EQ(tensor_split(t, 3)[0].numel(), 2);
  EXPECT_EQ(t.tensor_split({1, -1})[1].to_doubles(), (Doubles{1, 2, 3}));
  EXPECT_EQ(tensor_split(t, tensor({1, 2})).size(), 3u);
  EXPECT_EQ(tensor_split(t, tensor(Scalar(2))).size(), 2u);
  expect_starts(text_of<RuntimeError>([&] { tensor_split(t, 0); }), "number of sections must be larger than 0, got 0");
}

TEST(Joins, ElementsAreRepeatedInARow) {
  const Tensor t = tensor({7, 8});
  EXPECT_EQ(t.repeat_interleave(2).to_doubles(), (Doubles{7, 7, 8, 8}));
  EXPECT_EQ(repeat_interleave(t, tensor({0, 3})).to_doubles(), (Doubles{8, 8, 8}));
  EXPECT_EQ(repeat_interleave(tensor({2, 1})).to_doubles(), (Doubles{0, 0, 1}));
  EXPECT_EQ(tile(t, {2, 2}).sizes(), (Dims{2, 4}));
  EXPECT_EQ(repeat_interleave(t, tensor({2, 1}), {}, 3).to_doubles(), (Doubles{7, 7, 8}));
  expect_starts(text_of<RuntimeError>([&] { repeat_interleave(t, tensor({0, -3})); }), "repeats can not be negative");
  expect_starts(text_of<RuntimeError>([&] { repeat_interleave(t, 2, {}, 3); }),
                "repeat_interleave: Invalid output_size, expected 4 but got 3");
  expect_starts(text_of<RuntimeError>([&] { repeat_interleave(t, tensor({2, 1}), {}, 4); }), "allocated size does not match required size");
}

TEST(Joins, DimensionsMoveAndTurn) {
  const Tensor t = arange(0, 24).reshape({2, 3, 4});
  EXPECT_EQ(t.movedim({0, 1}, {2, 0}).sizes(), (Dims{3, 4, 2}));
  EXPECT_EQ(squeeze(zeros({1, 2, 1}), {0, -1}).sizes(), (Dims{2}));
  EXPECT_EQ(rot90(tensor({1, 2, 3, 4}).reshape({2, 2})).to_doubles(), (Doubles{2, 4, 1, 3}));
  expect_starts(text_of<RuntimeError>([&] { movedim(t, {0, 0}, {1, 2}); }), "movedim: repeated dim in `source` ([0, 0])");
}

TEST(Joins, DiagonalsAndTriangles) {
  EXPECT_EQ(diag(tensor({1.0, 2.0}), 1).to_doubles(), (Doubles{0, 1, 0, 0, 0, 2, 0, 0, 0}));
  EXPECT_EQ(diag(tensor({1.0, 2.0, 3.0, 4.0}).reshape({2, 2})).to_doubles(), (Doubles{1, 4}));
  EXPECT_EQ(trace(tensor({1.0, 2.0, 3.0, 4.0}).reshape({2, 2})).item<double>(), 5);
  EXPECT_EQ(tril_indices(2, 3).to_doubles(), (Doubles{0, 1, 1, 0, 0, 1}));
  EXPECT_EQ(triu_indices(2, 2, 1, DType::I32).to_doubles(), (Doubles{0, 1}));
  const Tensor tall = zeros({4, 2});
  fill_diagonal_(tall, 1, true);
  EXPECT_EQ(tall.to_doubles(), (Doubles{1, 0, 0, 1, 0, 0, 1, 0}));
  const Tensor square = ones({2, 2});
  tril_(square);
  EXPECT_EQ(square.to_doubles(), (Doubles{1, 0, 1, 1}));
}

TEST(Joins, ATensorTakesAnotherGeometry) {
  const Tensor t = tensor({1.0, 2.0, 3.0, 4.0}).reshape({2, 2}).clone();
  transpose_(t, 0, 1);
  EXPECT_EQ(t.to_doubles(), (Doubles{1, 3, 2, 4}));
  unsqueeze_(t, 0);
  squeeze_(t);
  resize_(t, {6});
  EXPECT_EQ(t.to_doubles(), (Doubles{1, 2, 3, 4, 0, 0}));
  const Tensor model = zeros({1, 2, 3, 2}).contiguous(MemoryFormat::ChannelsLast), other = zeros({1});
  resize_as_(other, model, MemoryFormat::Preserve);
  EXPECT_EQ(other.strides(), model.strides());
  expect_starts(text_of<RuntimeError>([&] { resize_(other, {1}, MemoryFormat::Preserve); }), "Unsupported memory format");
  Tensor leaf = zeros({2, 2});
  leaf.requires_grad_();
  expect_starts(text_of<RuntimeError>([&] { t_(leaf); }), "a leaf Variable that requires grad is being used");
  expect_starts(text_of<RuntimeError>([&] { resize_(leaf, {1}); }), "cannot resize variables that require grad");
}

TEST(Joins, ATensorTakesOverAnothersMemory) {
  const Tensor t = zeros({2}), from = tensor({1.0, 2.0, 3.0, 4.0}).reshape({2, 2}).t();
  set_(t, from);
  from[0].fill_(9);
  EXPECT_EQ(t.to_doubles(), (Doubles{9, 9, 2, 4}));
  expect_starts(text_of<RuntimeError>([&] { set_(t, zeros({1}, DType::I64)); }), "Could not set tensor of type int64 to a tensor of type");
  EXPECT_FALSE(is_shared(t));
  share_memory_(t);
  EXPECT_TRUE(is_shared(t));
  EXPECT_EQ(t.to_doubles(), (Doubles{9, 9, 2, 4}));
  EXPECT_EQ(mT(t).strides(), (Dims{2, 1}));
  EXPECT_EQ(numpy_T(zeros({2, 3, 4})).sizes(), (Dims{4, 3, 2}));
  expect_starts(text_of<RuntimeError>([] { matrix_H(zeros({3})); }), "tensor.H is only supported on matrices (2-D tensors).");
}

TEST(Joins, MethodsInPlaceGiveTheTensor) {
  Tensor t = tensor({1.0, 2.0, 3.0, 4.0}).reshape({2, 2}).clone();
  EXPECT_EQ(t.tril_().t_().to_doubles(), (Doubles{1, 3, 0, 4}));
  EXPECT_EQ(t.index_fill_(0, tensor({1}), 7).fill_diagonal_(0).cumsum_(1).to_doubles(), (Doubles{0, 3, 7, 7}));
  EXPECT_EQ(t.resize_({1, 2}).squeeze_().sizes(), (Dims{2}));
  EXPECT_TRUE(t.round_(1).lerp_(t, 0.5).unsqueeze_(0).is(t));
}

TEST(Joins, VectorsOfAllKinds) {
  const Tensor a = tensor({1.0, 2.0}), b = tensor({3.0, 6.0});
  EXPECT_EQ(dist(a, b, 1).item<double>(), 6);
  EXPECT_EQ(kron(a, b).to_doubles(), (Doubles{3, 6, 6, 12}));
  EXPECT_EQ(diff(b, 1, -1, tensor({1.0}), tensor({7.0})).to_doubles(), (Doubles{2, 3, 1}));
  EXPECT_EQ(diff(tensor({1, 4, 9}), 2).to_doubles(), (Doubles{2}));
  EXPECT_EQ(trapezoid(b).item<double>(), 4.5);
  EXPECT_EQ(trapezoid(b, 2).item<double>(), 9);
  EXPECT_EQ(trapezoid(b, tensor({0.0, 4.0})).item<double>(), 18);
  EXPECT_EQ(tensordot(a.reshape({1, 2}), b.reshape({2, 1}), 1).to_doubles(), (Doubles{15}));
  EXPECT_EQ(tensordot(a, b, {0}, {-1}).item<double>(), 15);
  EXPECT_NEAR(cosine_similarity(a, tensor({-2.0, 1.0}), 0).item<double>(), 0, 1e-7);
}

TEST(Joins, RangesAndStridesOfNewTensors) {
  EXPECT_EQ(range(0, 1, 0.5).to_doubles(), (Doubles{0, 0.5, 1}));
  EXPECT_EQ(logspace(0, 2, 3).to_doubles(), (Doubles{1, 10, 100}));
  EXPECT_EQ(empty_strided({2, 3}, {1, 2}).strides(), (Dims{1, 2}));
  const Tensor transposed = zeros({2, 3}).t();
  EXPECT_EQ(rand_like(transposed).strides(), transposed.strides());
  EXPECT_EQ(randint_like(transposed, 3, 4, DType::I64).to_doubles(), Doubles(6, 3));
  EXPECT_EQ(bernoulli(transposed, 1).to_doubles(), Doubles(6, 1));
  expect_starts(text_of<RuntimeError>([] { empty_strided({2}, {-1}); }), "empty_strided: wanted sizes and strides >= 0");
}

}  // namespace
}  // namespace naru
