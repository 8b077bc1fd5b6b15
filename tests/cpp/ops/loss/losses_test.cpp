#include <cmath>
#include <limits>

#include "ops/gradients.h"
#include "runtime/device/registry.h"

namespace naru {
namespace {

using test::expect_error;
using test::expect_gradients;
using test::numbers;
using Doubles = std::vector<double>;
using Ints = std::vector<int64_t>;
using In = const std::vector<Tensor>&;

constexpr Reduction kReductions[] = {Reduction::None, Reduction::Mean, Reduction::Sum};

void expect_near(const Tensor& got, const Tensor& wanted, double tolerance) {
  ASSERT_EQ(got.sizes(), wanted.sizes());
  const Doubles a = got.to_doubles(), b = wanted.to_doubles();
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << "element " << i;
}

Tensor reduce(const Tensor& t, Reduction r) { return r == Reduction::None ? t : r == Reduction::Mean ? mean(t) : sum(t); }

TEST(Softmax, SumsToOneAlongAnyDimensionWithoutOverflow) {
  const Tensor x = numbers({3, 40, 5}, -1000, 1000);
  for (int64_t d = -3; d < 3; ++d) {
    const Tensor y = softmax(x, d);
    expect_near(sum(y, Dims{d}), ones(sum(y, Dims{d}).sizes(), Options(DType::F64)), 1e-14);
    EXPECT_EQ(argmax(y, d).to_ints(), argmax(x, d).to_ints());
    const Tensor z = numbers({3, 40, 5});
    expect_near(softmax(z, d), exp(z) / sum(exp(z), Dims{d}, true), 1e-15);
    expect_near(log_softmax(z, d), log(softmax(z, d)), 1e-14);
  }
  EXPECT_EQ(softmax(scalar_tensor(2.0), 0).item<double>(), 1);
  EXPECT_EQ(log_softmax(scalar_tensor(2.0), -1).item<double>(), 0);
  EXPECT_EQ(softmax(ones({0, 3}), 0).sizes(), (Dims{0, 3}));
}

TEST(Softmax, HasGradientsOfBothOrders) {
  const Tensor x = numbers({2, 3, 2});
  for (int64_t d = 0; d < 3; ++d) {
    expect_gradients([d](In t) { return softmax(t[0], d); }, {x});
    expect_gradients([d](In t) { return log_softmax(t[0], d); }, {x});
  }
}

TEST(Softmax, OfIntegersNeedsATypeToBeNamed) {
  const Tensor i = ones({2, 3}, Options(DType::I64));
  expect_error<NotImplementedError>([&] { softmax(i, 0); }, "\"softmax_kernel_impl\" not implemented for 'Long'");
  EXPECT_EQ(softmax(i, 0, DType::F32).to_doubles(), Doubles(6, 0.5));
  expect_error<IndexError>([&] { softmax(ones({2, 3}), 2); }, "Dimension out of range (expected to be in range of [-2, 1], but got 2)");
}

// By definition: -log softmax at the target, times the target's weight; 0 where ignored.
Tensor naive_cross_entropy(const Tensor& x, const Tensor& target, const Tensor& weight, Reduction r, int64_t ignore) {
  const int64_t dim = x.dim() == 1 ? 0 : 1;
  const Tensor p = log_softmax(x, dim).movedim(dim, -1).contiguous(), flat = p.view({-1, p.size(-1)});
  const Ints t = target.to_ints();
  const Doubles w = weight.defined() ? weight.to_doubles() : Doubles(static_cast<size_t>(x.size(dim)), 1.0);
  const Doubles values = flat.to_doubles();
  Doubles each;
  double total = 0, weights = 0;
  for (size_t i = 0; i < t.size(); ++i) {
    const bool counts = t[i] != ignore;
    const double wi = counts ? w[static_cast<size_t>(t[i])] : 0.0;
    each.push_back(counts ? -wi * values[i * w.size() + static_cast<size_t>(t[i])] : 0.0);
    total += each.back(), weights += wi;
  }
  if (r == Reduction::None) return tensor(each, Options(DType::F64)).view(target.sizes());
  return scalar_tensor(r == Reduction::Mean ? total / weights : total, Options(DType::F64));
}

TEST(CrossEntropy, FollowsItsDefinitionForEveryReductionWeightAndShape) {
  struct Case {
    Tensor x, target;
  };
  const Case cases[] = {{numbers({5, 4}), tensor(Ints{0, 3, 1, 3, 2})},
                        {numbers({5, 4}), tensor(Ints{0, -100, 1, 3, -100})},
                        {numbers({4}), scalar_tensor(2)},
                        {numbers({2, 4, 3}), tensor(Ints{0, 3, 1, 3, 2, -100}).view({2, 3})},
                        {numbers({4, 5}).t(), tensor(Ints{0, 3, 1, 3, 2}).to(DType::U8)}};
  const Tensor weight = numbers({4}, 0.5, 2);
  for (const Case& c : cases)
    for (const Tensor& w : {Tensor(), weight})
      for (Reduction r : kReductions) {
        SCOPED_TRACE(c.x.str());
        expect_near(cross_entropy(c.x, c.target, w, r), naive_cross_entropy(c.x, c.target, w, r, -100), 1e-13);
        const int64_t dim = c.x.dim() == 1 ? 0 : 1;
        expect_near(nll_loss(log_softmax(c.x, dim), c.target, w, r), cross_entropy(c.x, c.target, w, r), 1e-13);
        expect_gradients([&](In t) { return cross_entropy(t[0], c.target, w, r); }, {c.x.contiguous()});
        expect_gradients([&](In t) { return nll_loss(t[0], c.target, w, r); }, {c.x.contiguous()}, false);
      }
  EXPECT_TRUE(std::isnan(cross_entropy(ones({2, 3}), tensor(Ints{-100, -100})).item<double>()));
}

TEST(CrossEntropy, TakesProbabilitiesAndSmoothing) {
  const Tensor x = numbers({3, 4}), p = softmax(numbers({3, 4}, -1, 1, 5), 1), target = tensor(Ints{1, 0, 3}),
               weight = numbers({4}, 0.5, 2);
  expect_near(cross_entropy(x, p), -mean(sum(p * log_softmax(x, 1), Dims{1})), 1e-14);
  expect_gradients([&](In t) { return cross_entropy(t[0], t[1]); }, {x, p});
  // Label smoothing of class indices equals smoothed probabilities.
  const Tensor hot = one_hot(target, 4).to(DType::F64) * 0.8 + 0.2 / 4;
  for (Reduction r : kReductions) expect_near(cross_entropy(x, target, {}, r, -100, 0.2), cross_entropy(x, hot, {}, r), 1e-14);
  expect_near(cross_entropy(x, target, weight, Reduction::Sum, -100, 0.2), cross_entropy(x, hot, weight, Reduction::Sum), 1e-14);
  expect_gradients([&](In t) { return cross_entropy(t[0], target, weight, Reduction::Mean, -100, 0.2); }, {x});
}

TEST(CrossEntropy, BadTargetsAreErrorsWithPyTorchsText) {
  const Tensor f = ones({2, 3});
  expect_error<IndexError>([&] { cross_entropy(f, tensor(Ints{0, 12})); }, "Target 12 is out of bounds.");
  expect_error<IndexError>([&] { nll_loss(f, tensor(Ints{0, -1})); }, "Target -1 is out of bounds.");
  expect_error<ValueError>([&] { cross_entropy(f, tensor(Ints{0})); }, "Expected input batch_size (2) to match target batch_size (1).");
  expect_error<RuntimeError>([&] { cross_entropy(f, tensor(Doubles{0, 1})); }, "expected target dtype to be Long or Byte, but got Float");
  expect_error<RuntimeError>([&] { cross_entropy(f, ones({2, 4})); }, "expected target dtype to be Long or Byte, but got Float");
  expect_error<RuntimeError>(
      [&] {
        cross_entropy(ones({2, 3, 4}), ones({2, 5}, Options(DType::I64)));
      },
      "Expected target size [2, 4], got [2, 5]");
  expect_error<RuntimeError>(
      [&] {
        cross_entropy(f, tensor(Ints{0, 1}), ones({2}));
      },
      "weight tensor should be defined either for all 3 classes or no classes");
  expect_error<NotImplementedError>(
      [&] {
        cross_entropy(f.to(DType::I64), tensor(Ints{0, 1}));
      },
      "\"log_softmax_lastdim_kernel_impl\" not implemented for 'Long'");
}

TEST(CrossEntropy, AChangedTargetIsSeenByBackward) {
  Tensor x = ones({2, 3}).requires_grad_();
  Tensor target = tensor(Ints{0, 1});
  const Tensor loss = cross_entropy(x, target);
  target.index_put_(std::vector<Index>{Index(0)}, 2);
  EXPECT_THROW(loss.backward(), RuntimeError);
}

TEST(Losses, OfDifferencesFollowTheirFormulasAndHaveGradients) {
  const Tensor a = numbers({3, 4}, -2, 2), b = numbers({3, 4}, -2, 2, 3), row = numbers({4}, -2, 2, 4);
  for (Reduction r : kReductions) {
    expect_near(mse_loss(a, b, r), reduce((a - b) * (a - b), r), 1e-14);
    expect_near(l1_loss(a, b, r), reduce(abs(a - b), r), 1e-14);
    const Tensor d = abs(a - b);
    expect_near(smooth_l1_loss(a, b, r, 0.5), reduce(where(d < 0.5, d * d, d - 0.25), r), 1e-14);
    expect_gradients([r](In t) { return mse_loss(t[0], t[1], r); }, {a, b});
    expect_gradients([r](In t) { return mse_loss(t[0], t[1], r); }, {a, row});
    expect_gradients([r](In t) { return l1_loss(t[0], t[1], r); }, {a, b});
    expect_gradients([r](In t) { return smooth_l1_loss(t[0], t[1], r, 0.7); }, {a, b});
  }
  EXPECT_EQ(mse_loss(a.to(DType::F32), b).dtype(), DType::F64);
  expect_error<NotImplementedError>([&] { mse_loss(a.to(DType::I64), b.to(DType::I64)); }, "\"mse_cpu\" not implemented for 'Long'");
  expect_error<RuntimeError>(
      [&] {
        mse_loss(ones({2, 3}), ones({4}));
      },
      "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1");
}

TEST(Losses, OfProbabilitiesFollowTheirFormulasAndHaveGradients) {
  const Tensor x = numbers({3, 4}, -2, 2), p = numbers({3, 4}, 0.1, 0.9, 8), t = numbers({3, 4}, 0, 1, 3), w = numbers({4}, 0.5, 2, 4),
               pw = numbers({4}, 0.5, 3, 5);
  for (Reduction r : kReductions) {
    const Tensor each = -(t * log(p) + (1.0 - t) * log(1.0 - p));
    expect_near(binary_cross_entropy(p, t, {}, r), reduce(each, r), 1e-14);
    expect_near(binary_cross_entropy(p, t, w, r), reduce(each * w, r), 1e-14);
    const Tensor s = sigmoid(x), logits = -(t * pw * log(s) + (1.0 - t) * log(1.0 - s));
    expect_near(binary_cross_entropy_with_logits(x, t, w, r, pw), reduce(logits * w, r), 1e-13);
    expect_near(binary_cross_entropy_with_logits(x, t, {}, r), binary_cross_entropy(s, t, {}, r), 1e-13);
    expect_gradients([&](In v) { return binary_cross_entropy(v[0], v[1], w, r); }, {p, t});
    expect_gradients([&](In v) { return binary_cross_entropy_with_logits(v[0], v[1], w, r, pw); }, {x, t});
    expect_gradients([&](In v) { return binary_cross_entropy_with_logits(v[0], v[1], {}, r); }, {x, t});
  }
  // Finite at 0 and 1.
  EXPECT_EQ(binary_cross_entropy(tensor(Doubles{0, 1}), tensor(Doubles{1, 0})).item<double>(), 100);
  expect_error<RuntimeError>([] { binary_cross_entropy(tensor(Doubles{1.5}), tensor(Doubles{1})); },
                             "all elements of input should be between 0 and 1");
  expect_error<ValueError>(
      [] {
        binary_cross_entropy_with_logits(ones({2, 3}), ones({3}));
      },
      "Target size (torch.Size([3])) must be the same as input size (torch.Size([2, 3]))");
}

TEST(LayerNorm, FollowsItsFormulaAndHasGradients) {
  const Tensor x = numbers({4, 3, 5}), w = numbers({3, 5}, 0.5, 2, 2), b = numbers({3, 5}, -1, 1, 3);
  const Tensor m = mean(x, Dims{1, 2}, true), v = mean(square(x - m), Dims{1, 2}, true);
  const Tensor hat = (x - m) / sqrt(v + 1e-5);
  expect_near(layer_norm(x, {3, 5}), hat, 1e-14);
  expect_near(layer_norm(x, {3, 5}, w, b), hat * w + b, 1e-14);
  expect_gradients([](In t) { return layer_norm(t[0], {3, 5}, t[1], t[2]); }, {x.narrow(0, 0, 2), w, b});
  expect_gradients([](In t) { return layer_norm(t[0], {5}); }, {x.select(0, 0)});
  expect_gradients([](In t) { return layer_norm(t[0], {5}, t[1]); }, {x.select(0, 0), w.select(0, 0)});
  expect_error<RuntimeError>(
      [&] {
        layer_norm(ones({2, 3}), {2});
      },
      "Given normalized_shape=[2], expected input with shape [*, 2], but got input of size[2, 3]");
  expect_error<RuntimeError>([&] { layer_norm(ones({2, 3}), {}); }, "Expected normalized_shape to be at least 1-dimensional");
}

TEST(Embedding, ChoosesRowsAndAddsTheirGradients) {
  const Tensor w = numbers({4, 3}), index = tensor(Ints{1, 0, 1, 3}).view({2, 2});
  expect_near(embedding(w, index), index_select(w, 0, index.view({-1})).view({2, 2, 3}), 0);
  expect_gradients([&](In t) { return embedding(t[0], index); }, {w});
  Tensor leaf = w.clone().requires_grad_();
  embedding(leaf, index, 1).sum().backward();
  EXPECT_EQ(leaf.grad().to_doubles(), (Doubles{1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1}));
  leaf.set_grad({});
  embedding(leaf, index.to(DType::I32)).sum().backward();
  EXPECT_EQ(leaf.grad().to_doubles(), (Doubles{1, 1, 1, 2, 2, 2, 0, 0, 0, 1, 1, 1}));
  expect_error<IndexError>([&] { embedding(w, tensor(Ints{4})); }, "index out of range in self");
  expect_error<IndexError>([&] { embedding(w, tensor(Ints{-1})); }, "index out of range in self");
  expect_error<RuntimeError>(
      [&] { embedding(w, tensor(Doubles{1})); },
      "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got torch.FloatTensor instead");
}

TEST(Dropout, ZeroesItsShareScalesTheRestAndMasksTheGradientAlike) {
  manual_seed(3);
  Tensor x = ones({100, 100}).requires_grad_();
  const Tensor y = dropout(x, 0.25);
  const double kept = count_nonzero(y).item<double>();
  EXPECT_NEAR(kept / 10000, 0.75, 0.02);
  EXPECT_EQ(max(y).item<float>(), 1 / 0.75f);
  y.sum().backward();
  EXPECT_EQ(x.grad().to_doubles(), y.to_doubles());
  EXPECT_TRUE(dropout(x, 0.5, false).is(x));
  EXPECT_EQ(sum(abs(dropout(x, 1.0))).item<double>(), 0);
  expect_error<ValueError>([&] { dropout(x, 1.5); }, "dropout probability has to be between 0 and 1, but got 1.5");
}

TEST(Networks, GiveTheSameBitsOnAVirtualDevice) {
  runtime::set_virtual_devices("cuda:2,mps:1");
  const Tensor x = numbers({33, 10}).to(DType::F32), target = randint(0, 10, {33}), g = numbers({33, 10}, -1, 1, 4).to(DType::F32);
  const auto outcome = [&](Device d) {
    Tensor t = x.to(d, false, true).requires_grad_();
    const Tensor loss = cross_entropy(t, target.to(d));
    loss.backward();
    Doubles all = t.grad().to_doubles();
    for (const Tensor& y : {loss, softmax(t, 1), log_softmax(t, 0), layer_norm(t, {10}), mse_loss(t, g.to(d))})
      for (double v : y.to_doubles()) all.push_back(v);
    return all;
  };
  EXPECT_EQ(outcome(Device(DeviceType::Cpu)), outcome(Device("cuda:1")));
  EXPECT_THROW(cross_entropy(x.to("cuda"), tensor(Ints{12}).expand({33}).to("cuda")).item(), IndexError);
}

}  // namespace
}  // namespace naru
