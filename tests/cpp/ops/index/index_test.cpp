#include "ops/checks.h"

#include "runtime/device/registry.h"

namespace naru {
namespace {

using namespace naru::testing;

// --- basic indices
// -------------------------------------------------------------------------------------------------------------------

TEST(BasicIndex, GivesAViewThatSharesMemory) {
  Tensor x = counted({3, 4});
  Tensor row = x[1];
  EXPECT_EQ(row.to_doubles(), (Doubles{4, 5, 6, 7}));
  row.fill_(-1);
  EXPECT_EQ(x.to_doubles(), (Doubles{0, 1, 2, 3, -1, -1, -1, -1, 8, 9, 10, 11}));
  EXPECT_EQ((x[{Slice(), -1}].to_doubles()), (Doubles{3, -1, 11}));
}

TEST(BasicIndex, SlicesClipToTheTensorAndCountFromTheEnd) {
  const Tensor x = counted({6});
  EXPECT_EQ(x[{Slice(1, 100, 2)}].to_doubles(), (Doubles{1, 3, 5}));
  EXPECT_EQ(x[{Slice(-2, {})}].to_doubles(), (Doubles{4, 5}));
  EXPECT_EQ((x[{Slice(4, 2)}].sizes()), (Dims{0}));
}

TEST(BasicIndex, NoneAddsADimensionAndEllipsisStandsForTheRest) {
  const Tensor x = counted({2, 3, 4});
  EXPECT_EQ((x[{None, Ellipsis, 0}].sizes()), (Dims{1, 2, 3}));
  EXPECT_EQ((x[{0, Ellipsis}].sizes()), (Dims{3, 4}));
  EXPECT_EQ((x[{Ellipsis, None, Slice(0, 2), 1}].sizes()), (Dims{2, 1, 2}));
  EXPECT_EQ((x[{Ellipsis, Slice(1, 2)}].to_doubles()), (Doubles{1, 5, 9, 13, 17, 21}));
}

TEST(BasicIndex, ABoolAddsADimensionOfOneOrNone) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ((x[{true}].sizes()), (Dims{1, 2, 3}));
  EXPECT_EQ((x[{false}].sizes()), (Dims{0, 2, 3}));
  EXPECT_EQ((x[{Slice(), true}].sizes()), (Dims{2, 1, 3}));
}

TEST(BasicIndex, ErrorsSpeakLikePyTorch) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(text_of<IndexError>([&] { x[5]; }), "index 5 is out of bounds for dimension 0 with size 2");
  EXPECT_EQ(text_of<IndexError>([&] { x[{0, -4}]; }), "index -4 is out of bounds for dimension 1 with size 3");
  EXPECT_EQ(text_of<IndexError>([&] { x[{0, 0, 0}]; }), "too many indices for tensor of dimension 2");
  expect_starts(text_of<IndexError>([&] { scalar_tensor(1)[0]; }), "invalid index of a 0-dim tensor");
  expect_starts(text_of<ValueError>([&] { x[{Slice({}, {}, -1)}]; }), "step must be greater than zero");
}

// --- masks and index tensors
// ------------------------------------------------------------------------------------------------------------

TEST(AdvancedIndex, TakesRowsInTheOrderOfThePositionsNegativeOnesFromTheEnd) {
  const Tensor x = counted({3, 2});
  EXPECT_EQ((x[{ints({2, 0, -1})}].to_doubles()), (Doubles{4, 5, 0, 1, 4, 5}));
  EXPECT_EQ((x[{ints({1}).to(DType::I32)}].to_doubles()), (Doubles{2, 3}));
}

TEST(AdvancedIndex, IndexDimensionsReplaceNeighbouringOnesAndElseComeFirst) {
  const Tensor x = counted({2, 3, 4}), i = ints({0, 1});
  EXPECT_EQ((x[{Slice(), i}].sizes()), (Dims{2, 2, 4}));
  EXPECT_EQ((x[{Slice(), i, i}].sizes()), (Dims{2, 2}));
  EXPECT_EQ((x[{i, Slice(), i}].sizes()), (Dims{2, 3}));
  EXPECT_EQ((x[{i, Slice(), i}].to_doubles()), (Doubles{0, 4, 8, 13, 17, 21}));
  // An integer index creates a view first, as in PyTorch (NumPy treats it as an index array).
  EXPECT_EQ((x[{0, Slice(), i}].sizes()), (Dims{3, 2}));
  EXPECT_EQ((x[{Slice(), i, None, i}].sizes()), (Dims{2, 2, 1}));
}

TEST(AdvancedIndex, IndexTensorsBroadcastAgainstEachOther) {
  const Tensor x = counted({3, 4});
  const Tensor y = x[{ints({0, 2}, {2, 1}), ints({1, 3})}];
  EXPECT_EQ(y.sizes(), (Dims{2, 2}));
  EXPECT_EQ(y.to_doubles(), (Doubles{1, 3, 9, 11}));
}

TEST(AdvancedIndex, ATensorWithoutDimensionsIsAnInteger) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ((x[{scalar_tensor(1)}].to_doubles()), (Doubles{3, 4, 5}));
}

TEST(AdvancedIndex, AMaskTakesTheTrueOnesInRowMajorOrder) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ((x[{bools({0, 1, 1, 1, 0, 0}, {2, 3})}].to_doubles()), (Doubles{1, 2, 3}));
  EXPECT_EQ((x[{Slice(), bools({1, 0, 1}, {3})}].to_doubles()), (Doubles{0, 2, 3, 5}));
  EXPECT_EQ((x[{bools({0, 0}, {2})}].sizes()), (Dims{0, 3}));
  // A transposed tensor's memory order is not its row-major order.
  EXPECT_EQ((x.t()[{bools({0, 1, 1, 0, 0, 1}, {3, 2})}].to_doubles()), (Doubles{3, 1, 5}));
}

TEST(AdvancedIndex, AMaskAndPositionsWorkTogether) {
  const Tensor x = counted({3, 4});
  EXPECT_EQ((x[{bools({1, 0, 1}, {3}), ints({1, 2})}].to_doubles()), (Doubles{1, 10}));
  EXPECT_EQ((x[{Slice(1, {}), ints({3, 0})}].to_doubles()), (Doubles{7, 4, 11, 8}));
}

TEST(AdvancedIndex, EmptyPositionsGiveAnEmptyResult) {
  EXPECT_EQ((counted({3, 2})[{zeros({0}, DType::I64)}].sizes()), (Dims{0, 2}));
  EXPECT_EQ((zeros(Dims{0})[{zeros({0, 2}, DType::I64)}].sizes()), (Dims{0, 2}));
}

TEST(AdvancedIndex, ErrorsSpeakLikePyTorch) {
  const Tensor x = counted({2, 3});
  expect_starts(text_of<IndexError>([&] { x.index({ints({0, 5})}); }), "index 5 is out of bounds for dimension 0 with size 2");
  expect_starts(text_of<IndexError>([&] { x.index({Slice(), ints({-4})}); }), "index -4 is out of bounds for dimension 1 with size 3");
  expect_starts(text_of<IndexError>([&] {
                  x[{bools({1, 0, 1}, {3})}];
                }),
                "The shape of the mask [3] at index 0 does not match the shape of the indexed tensor [2, 3] at index 0");
  expect_starts(text_of<IndexError>([&] { x[{tensor(Doubles{0.5})}]; }), "tensors used as indices must be long, int, byte or bool tensors");
  expect_starts(text_of<IndexError>([&] {
                  x.index({ints({0, 1}), ints({0, 1, 2})});
                }),
                "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]");
}

// --- assignment
// ---------------------------------------------------------------------------------------------------------------------------

void put(Tensor x, std::initializer_list<Index> indices, const Operand& value, bool accumulate = false) {
  x.index_put_({indices.begin(), indices.size()}, value, accumulate);
}

TEST(IndexAssignment, WritesNumbersAndTensorsThroughViews) {
  const Tensor x = zeros({2, 3}, DType::I64);
  put(x, {0}, 7);
  put(x, {1, Slice(1, {})}, tensor(Doubles{1.9, -2.9}));  // converted to the target's dtype
  EXPECT_EQ(x.to_ints(), (Ints{7, 7, 7, 0, 1, -2}));
  put(x, {Slice(), 0}, ones({1, 1, 2}));  // leading dimensions of 1 are dropped
  EXPECT_EQ(x.to_ints(), (Ints{1, 7, 7, 1, 1, -2}));
}

TEST(IndexAssignment, AMaskTakesANumberEverywhereOrOneValueEach) {
  const Tensor x = counted({2, 3}), mask = bools({0, 1, 0, 1, 0, 1}, {2, 3});
  put(x, {mask}, -1);
  EXPECT_EQ(x.to_doubles(), (Doubles{0, -1, 2, -1, 4, -1}));
  put(x, {mask}, tensor(Doubles{10, 20, 30}, x.dtype()));
  EXPECT_EQ(x.to_doubles(), (Doubles{0, 10, 2, 20, 4, 30}));
  put(x, {bools({0, 1}, {2})}, 5.5);
  EXPECT_EQ(x.to_doubles(), (Doubles{0, 10, 2, 5.5, 5.5, 5.5}));
  put(x, {Slice(), bools({1, 0, 0}, {3})}, scalar_tensor(8, x.dtype()));
  EXPECT_EQ(x.to_doubles(), (Doubles{8, 10, 2, 8, 5.5, 5.5}));
}

TEST(IndexAssignment, PositionsTakeBroadcastValues) {
  const Tensor x = zeros({3, 2});
  put(x, {ints({2, 0})}, tensor(Doubles{1, 2}));
  EXPECT_EQ(x.to_doubles(), (Doubles{1, 2, 0, 0, 1, 2}));
  put(x, {ints({1}), ints({0, 1})}, 9);
  EXPECT_EQ(x.to_doubles(), (Doubles{1, 2, 9, 9, 1, 2}));
  put(x, {Slice(), ints({1})}, ints({5, 6, 7}, {3, 1}).to(x.dtype()));
  EXPECT_EQ(x.to_doubles(), (Doubles{1, 5, 9, 6, 1, 7}));
}

TEST(IndexAssignment, AccumulateAddsForEachRepetition) {
  const Tensor x = zeros({3});
  put(x, {ints({0, 2, 0, 0})}, tensor(Doubles{1, 2, 3, 4}), true);
  EXPECT_EQ(x.to_doubles(), (Doubles{8, 0, 2}));
}

TEST(IndexAssignment, OverlappingSourceIsReadBeforeItIsWritten) {
  const Tensor x = counted({5});
  put(x, {Slice(1, {})}, x[{Slice({}, 4)}]);
  EXPECT_EQ(x.to_doubles(), (Doubles{0, 0, 1, 2, 3}));
  const Tensor y = ints({2, 0, 1});
  put(y, {y}, y);  // indices, values and target are the same tensor
  EXPECT_EQ(y.to_ints(), (Ints{0, 1, 2}));
}

TEST(IndexAssignment, IntoATensorWithoutElementsIsNoError) {
  // NumPy's empty arrays have strides of 0; that is not overlapping memory.
  const Tensor x = zeros({3, 0, 2}).as_strided({3, 0, 2}, {0, 0, 0}, 0);
  put(x, {Ellipsis, 1}, 1);
  put(x, {ints({2, 0})}, zeros({2, 0, 2}));
  EXPECT_EQ(x.numel(), 0);
}

TEST(IndexAssignment, ErrorsSpeakLikePyTorchAndWriteNothing) {
  const Tensor x = counted({2, 3});
  expect_starts(text_of<RuntimeError>([&] { put(x, {0}, zeros({2})); }),
                "The expanded size of the tensor (3) must match the existing size (2) at non-singleton dimension 0.");
  expect_starts(text_of<RuntimeError>([&] {
                  put(x, {ints({0, 1})}, zeros({7}, x.dtype()));
                }),
                "shape mismatch: value tensor of shape [7] cannot be broadcast to indexing result of shape [2, 3]");
  EXPECT_THROW(put(x, {ints({0, 9})}, 1.0), IndexError);
  EXPECT_THROW(put(zeros({3}).expand({2, 3}), {ints({0})}, 1.0), RuntimeError);
  EXPECT_EQ(x.to_doubles(), counted({2, 3}).to_doubles());
}

// --- gradients
// ------------------------------------------------------------------------------------------------------------------------------

TEST(IndexGradient, FlowsToEveryElementTakenAsOftenAsItWasTaken) {
  const Tensor x = counted({3, 4}) * 0.1;
  const Tensor i = ints({2, 0, 2}), mask = bools({1, 0, 0, 1, 0, 1, 1, 0, 0, 0, 0, 1}, {3, 4});
  expect_gradient([&](const Tensor& t) { return t[{i}].square(); }, x);
  expect_gradient([&](const Tensor& t) { return t[{Slice(), ints({1, 1, 3})}].square(); }, x);
  expect_gradient([&](const Tensor& t) { return t[{mask}].square(); }, x);
  expect_gradient([&](const Tensor& t) { return t.t()[{ints({0, 0}), i[{Slice({}, 2)}]}].square(); }, x);
  expect_gradient([&](const Tensor& t) { return t[{Slice(0, 3, 2), Slice(1, {})}].square(); }, x);
}

TEST(IndexGradient, OfAssignmentLeavesOutWhatWasOverwrittenAndReachesTheValue) {
  const Tensor x = counted({3, 2}) * 0.1, v = tensor(Doubles{0.5, 0.7}, x.dtype());
  const auto assign = [](const Tensor& t, std::initializer_list<Index> indices, const Operand& value, bool accumulate = false) {
    Tensor y = t * 1.0;
    y.index_put_({indices.begin(), indices.size()}, value, accumulate);
    return y.square();
  };
  const Tensor i = ints({2, 0}), mask = bools({1, 0, 0, 1, 1, 0}, {3, 2});
  expect_gradient([&](const Tensor& t) { return assign(t, {i}, v); }, x);
  expect_gradient([&](const Tensor& t) { return assign(x, {i}, t); }, v);
  expect_gradient([&](const Tensor& t) { return assign(t, {i}, v, true); }, x);
  expect_gradient([&](const Tensor& t) { return assign(x, {i}, t, true); }, v);
  expect_gradient([&](const Tensor& t) { return assign(t, {mask}, 3.0); }, x);
  expect_gradient([&](const Tensor& t) { return assign(x, {mask}, t); }, scalar_tensor(0.25, x.dtype()));
  expect_gradient([&](const Tensor& t) { return assign(t, {1}, v); }, x);
  expect_gradient([&](const Tensor& t) { return assign(x, {1}, t); }, v);
  // Through a view: the write changes the base.
  expect_gradient([&](const Tensor& t) { return assign(t, {Slice(1, {}), ints({0})}, 2.0); }, x);
  expect_gradient([&](const Tensor& t) { return assign(x, {Slice(1, {}), ints({0, 1})}, t); }, v);
}

TEST(IndexGradient, AViewTakenBeforeAnAssignmentHasItsHistoryToo) {
  Tensor x = counted({2, 2}).requires_grad_();
  Tensor y = x * 1.0;
  const Tensor row = y[1];
  put(y, {ints({1}), ints({0})}, 5.0);
  EXPECT_EQ(row.to_doubles(), (Doubles{5, 3}));
  row.sum().backward();
  EXPECT_EQ(x.grad().to_doubles(), (Doubles{0, 0, 0, 1}));
}

TEST(IndexGradient, OfTheGradientIsThereToo) {
  Tensor x = tensor(Doubles{1, 2, 3}, DType::F64).requires_grad_();
  const Tensor y = x[{ints({0, 0, 2})}];
  const Tensor g = grad({(y * y * y).sum()}, {x}, {}, false, true)[0];
  EXPECT_EQ(g.to_doubles(), (Doubles{6, 0, 27}));
  g.sum().backward();
  EXPECT_EQ(x.grad().to_doubles(), (Doubles{12, 0, 18}));
}

TEST(IndexGradient, AnAssignmentToALeafIsAnErrorButUnderNoGrad) {
  Tensor x = counted({3}).requires_grad_();  // created as a view, but still a leaf
  EXPECT_THROW(put(x, {0}, 1.0), RuntimeError);
  EXPECT_THROW(put(x, {ints({0})}, 1.0), RuntimeError);
  EXPECT_THROW(put(x, {bools({1, 0, 0}, {3})}, 1.0), RuntimeError);
  const NoGrad no_grad;
  put(x, {ints({0})}, 9.0);
  EXPECT_EQ(x.to_doubles(), (Doubles{9, 1, 2}));
}

// --- gather, scatter and related operators
// -----------------------------------------------------------------------------------------------------------

TEST(Gather, TakesOneElementForEachPosition) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(gather(x, 1, ints({0, 2, 1, 1}, {2, 2})).to_doubles(), (Doubles{0, 2, 4, 4}));
  EXPECT_EQ(gather(x, 0, ints({1, 0}, {1, 2})).to_doubles(), (Doubles{3, 1}));
  expect_gradient([](const Tensor& t) { return gather(t, 1, ints({0, 2, 1, 1}, {2, 2})).square(); }, x);
  expect_starts(text_of<RuntimeError>([&] {
                  gather(x, 1, ints({0, 0, 0}, {3, 1}));
                }),
                "Size does not match at dimension 0 expected index [3, 1] to be no larger than self [2, 3] apart from "
                "dimension 1");
  EXPECT_THROW(gather(x, 1, ints({7}, {1, 1})), RuntimeError);
  EXPECT_THROW(gather(x, 1, zeros({1, 1})), RuntimeError);
}

TEST(Scatter, WritesOneElementForEachPosition) {
  const Tensor index = ints({0, 2, 1, 1}, {2, 2});
  EXPECT_EQ(scatter(zeros({2, 3}), 1, index, ints({5, 6, 7, 8}, {2, 2}).to(DType::F32)).to_doubles(), (Doubles{5, 0, 6, 0, 8, 0}));
  EXPECT_EQ(scatter(zeros({2, 3}), 1, index, 4).to_doubles(), (Doubles{4, 0, 4, 0, 4, 0}));
  EXPECT_EQ(scatter_add(zeros({2, 3}), 1, index, ones({2, 2})).to_doubles(), (Doubles{1, 0, 1, 0, 2, 0}));
  const Tensor x = counted({2, 3});
  const Tensor other = ints({0, 2, 1, 0}, {2, 2}), values = counted({2, 3}) + 0.5;
  expect_gradient([&](const Tensor& t) { return scatter(t, 1, other, values).square(); }, x);
  expect_gradient([&](const Tensor& t) { return scatter(x, 1, other, t).square(); }, values);
  expect_gradient([&](const Tensor& t) { return scatter_add(t, 1, index, values).square(); }, x);
  expect_gradient([&](const Tensor& t) { return scatter_add(x, 1, index, t).square(); }, values);
  EXPECT_THROW(scatter(x, 1, index, zeros({2, 2})), RuntimeError);  // different dtype
}

TEST(IndexSelect, TakesSlicesAndIndexAddPutsThemBack) {
  const Tensor x = counted({2, 3});
  EXPECT_EQ(index_select(x, 1, ints({2, 0, 2})).to_doubles(), (Doubles{2, 0, 2, 5, 3, 5}));
  expect_gradient([](const Tensor& t) { return index_select(t, 1, ints({2, 0, 2})).square(); }, x);
  const Tensor y = zeros({2, 3}, DType::F64);
  index_add_(y, 1, ints({2, 2}), counted({2, 2}), 2);
  EXPECT_EQ(y.to_doubles(), (Doubles{0, 0, 2, 0, 0, 10}));
  EXPECT_EQ(take(x, ints({5, 0}, {2, 1})).to_doubles(), (Doubles{5, 0}));
  EXPECT_THROW(index_select(x, 0, ints({2})), IndexError);
}

TEST(OneHot, SetsOneElementOfEachRow) {
  EXPECT_EQ(one_hot(ints({1, 0})).to_ints(), (Ints{0, 1, 1, 0}));
  EXPECT_EQ(one_hot(ints({1}), 3).to_ints(), (Ints{0, 1, 0}));
  EXPECT_EQ(text_of<RuntimeError>([] { one_hot(ints({-1})); }), "Class values must be non-negative.");
}

TEST(Masks, SelectAndFill) {
  const Tensor x = counted({2, 3}), mask = bools({1, 0, 1}, {3});
  EXPECT_EQ(masked_select(x, mask).to_doubles(), (Doubles{0, 2, 3, 5}));
  EXPECT_EQ(masked_fill(x, mask, -1).to_doubles(), (Doubles{-1, 1, -1, -1, 4, -1}));
  EXPECT_EQ(masked_fill(ints({1, 2, 3}), mask, 7.9).to_ints(), (Ints{7, 2, 7}));  // keeps the dtype
  expect_gradient([&](const Tensor& t) { return masked_select(t, mask).square(); }, x);
  expect_gradient([&](const Tensor& t) { return masked_fill(t, mask, 2.0).square(); }, x);
  expect_gradient([&](const Tensor& t) { return masked_fill(x, mask, t).square(); }, scalar_tensor(0.5));
  EXPECT_EQ(nonzero(bools({0, 1, 1, 0, 0, 1}, {2, 3})).to_ints(), (Ints{0, 1, 0, 2, 1, 2}));
  EXPECT_EQ(nonzero(zeros({3})).sizes(), (Dims{0, 1}));
  expect_starts(text_of<RuntimeError>([&] { masked_fill(x, mask, zeros({3})); }), "masked_fill only supports a 0-dimensional value tensor");
}

TEST(Indexing, OnAVirtualDeviceGivesTheSameAndAnErrorAtTheNextRead) {
  runtime::set_virtual_devices("cuda:1");
  const Tensor x = counted({3, 4}), there = x.cuda(), i = ints({2, 0});
  EXPECT_EQ((there[{i, Slice(1, 3)}].cpu().to_doubles()), (x[{i, Slice(1, 3)}].to_doubles()));
  EXPECT_EQ((there[{(there > 4.0)}].cpu().to_doubles()), (x[{(x > 4.0)}].to_doubles()));
  put(there, {i.cuda()}, 1);
  EXPECT_EQ(there.cpu().to_doubles(), (Doubles{1, 1, 1, 1, 4, 5, 6, 7, 1, 1, 1, 1}));
  EXPECT_THROW((there[{ints({9})}].cpu()), IndexError);
  EXPECT_THROW((x[{i.cuda()}]), RuntimeError);
}

}  // namespace
}  // namespace naru
