// Modules as trees: paths, clones, hooks; parameter utilities, initialisation.
#include <gtest/gtest.h>

#include <cmath>

#include "naru/autograd.h"
#include "naru/nn.h"
#include "naru/nn/classes.h"
#include "naru/nn/images.h"
#include "naru/nn/recurrent.h"

namespace naru {
namespace {

using Doubles = std::vector<double>;

template <class E, class F>
void expect_error(F f, const std::string& part) {
  try {
    f();
  } catch (const E& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    return;
  }
  ADD_FAILURE() << "nothing was thrown: " << part;
}

struct Block : nn::Cloneable<Block> {
  std::shared_ptr<nn::Linear> in = register_module("in", nn::Linear(3, 4));
  std::shared_ptr<nn::Sequential> rest = register_module("rest", nn::Sequential(nn::ReLU(), nn::Dropout(0.5), nn::Linear(4, 2, false)));
  Tensor scale = register_parameter("scale", ones({2}));
  Tensor seen = register_buffer("seen", zeros({1}), false);
  Tensor forward(const Tensor& x) override { return (*rest)((*in)(x)) * scale; }
  std::string name() const override { return "Block"; }
};

TEST(ModuleTree, ModulesAndTensorsAreFoundByTheirPaths) {
  Block b;
  std::vector<std::string> names;
  for (const auto& [name, module] : b.named_modules()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"", "in", "rest", "rest.0", "rest.1", "rest.2"}));
  EXPECT_EQ(b.modules().size(), 6u);
  EXPECT_EQ(b.children().size(), 2u);
  EXPECT_TRUE(b.get_parameter("rest.2.weight").is((*b.rest)[2].as<nn::Linear>()->weight));
  EXPECT_TRUE(b.get_buffer("seen").is(b.seen));
  EXPECT_EQ((*b.rest)[0].as<nn::Linear>(), nullptr);
  expect_error<ValueError>([&] { b.get_submodule("rest.7"); }, "Sequential has no module `7`");
  b.replace_module("in", std::make_shared<nn::Linear>(5, 4));
  EXPECT_EQ(b.get_parameter("in.weight").size(1), 5);
  b.unregister_module("rest");
  EXPECT_EQ(b.children().size(), 1u);
  expect_error<ValueError>([&] { b.unregister_module("rest"); }, "Block has no module `rest`");
}

TEST(ModuleTree, ACloneHasEqualValuesOfItsOwn) {
  Block b;
  b.seen.fill_(7);
  b.in->weight.requires_grad_(false);
  b.eval();
  const uint64_t drawn = default_generator().offset();
  const auto copy = std::dynamic_pointer_cast<Block>(b.clone());
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(default_generator().offset(), drawn);
  const Tensor x = randn({2, 3});
  EXPECT_EQ((*copy)(x).to_doubles(), b(x).to_doubles());
  EXPECT_FALSE(copy->is_training());
  EXPECT_FALSE(copy->in->weight.requires_grad());
  EXPECT_EQ(copy->seen.item<double>(), 7);
  const NoGrad off;
  copy->scale.fill_(3);
  EXPECT_EQ(b.scale.to_doubles(), (Doubles{1, 1}));
  struct Plain : nn::Module {};
  expect_error<NotImplementedError>([] { Plain().clone(); }, "Subclass naru::nn::Cloneable<Module>");
}

TEST(ModuleTree, EveryLayerCanBeCloned) {
  nn::Sequential all(nn::Linear(4, 4), nn::LayerNorm(4), nn::RMSNorm(4), nn::PReLU(4), nn::ELU(0.5), nn::Dropout2d(), nn::Embedding(3, 2),
                     nn::Conv2d(2, 4, {3}, {.stride = {2}, .groups = 2}), nn::ConvTranspose1d(2, 2, {3}), nn::BatchNorm2d(3),
                     nn::InstanceNorm1d(3, 1e-5, 0.1, true, true), nn::GroupNorm(2, 4), nn::MaxPool2d(2), nn::ReflectionPad2d(Dims{1}),
                     nn::Upsample({.scale_factor = {2}}), nn::CrossEntropyLoss(Reduction::Sum, 0, ones({3})), nn::MaxUnpool2d(2),
                     nn::Bilinear(2, 3, 4), nn::Functional([](const Tensor& x) { return x; }),
                     nn::BatchNorm1d(3, 1e-5, 0.1, false, {}, false), nn::RReLU(0.1, 0.2), nn::FeatureAlphaDropout(), nn::CrossMapLRN2d(3),
                     nn::EmbeddingBag(3, 2, {.mode = "sum", .padding_idx = 1}), nn::CTCLoss(2), nn::MultiMarginLoss(2, 1, ones({3})),
                     nn::AdaptiveLogSoftmaxWithLoss(8, 10, {2, 5}, 2, true), nn::LinearCrossEntropyLoss(4, 3, {.bias = true}, ones({3})));
  nn::ModuleList list;
  list.push_back(nn::Tanh());
  nn::ModuleDict dict;
  dict.insert("a", nn::Linear(2, 2));
  all.push_back(std::move(list)), all.push_back(std::move(dict)), all.push_back(nn::ParameterList({ones({2})}));
  const auto copy = all.clone();
  EXPECT_EQ(copy->str(), all.str());
  const auto own = all.state_dict(), other = copy->state_dict();
  ASSERT_EQ(own.size(), other.size());
  for (size_t i = 0; i < own.size(); ++i) {
    EXPECT_EQ(own[i].first, other[i].first);
    EXPECT_EQ(own[i].second.to_doubles(), other[i].second.to_doubles()) << own[i].first;
    EXPECT_NE(own[i].second.data_ptr(), other[i].second.data_ptr()) << own[i].first;
  }
}

TEST(ModuleHooks, SeeAndReplaceWhatGoesThroughAModule) {
  nn::Linear l(2, 1, false);
  l.load_state_dict({{"weight", tensor({1.0, 1.0}, DType::F32).view({1, 2})}});
  std::vector<std::string> order;
  auto before = l.register_forward_pre_hook([&](nn::Module& m, const Tensor& x) {
    order.push_back("before " + m.name());
    return x * 2;
  });
  auto after = l.register_forward_hook([&](nn::Module&, const Tensor& x, const Tensor& y) {
    order.push_back("after");
    EXPECT_EQ(x.to_doubles(), (Doubles{2, 4}));
    return y + 1;
  });
  nn::Sequential s;
  s.push_back(std::make_shared<nn::Sequential>());
  const Tensor x = tensor({1.0, 2.0}, DType::F32);
  EXPECT_EQ(l(x).to_doubles(), (Doubles{7}));
  EXPECT_EQ(order, (std::vector<std::string>{"before Linear", "after"}));
  before.remove(), after.remove();
  EXPECT_EQ(l(x).to_doubles(), (Doubles{3}));
}

TEST(ModuleHooks, RunWithinASequentialAndAlsoBackward) {
  auto l = std::make_shared<nn::Linear>(2, 1, false);
  l->load_state_dict({{"weight", tensor({1.0, 3.0}, DType::F32).view({1, 2})}});
  nn::Sequential s(l, nn::Tanh());
  Doubles seen_in, seen_out;
  auto handle = l->register_full_backward_hook([&](nn::Module&, const Tensor& in, const Tensor& out) {
    seen_in = in.defined() ? in.to_doubles() : Doubles{};
    seen_out = out.to_doubles();
    return in.defined() ? in * 10 : Tensor();
  });
  auto pre = l->register_full_backward_pre_hook([](nn::Module&, const Tensor& out) { return out * 2; });
  Tensor x = zeros({2}).requires_grad_();
  s(x).sum().backward();
  EXPECT_EQ(seen_out, (Doubles{2}));
  EXPECT_EQ(seen_in, (Doubles{2, 6}));
  EXPECT_EQ(x.grad().to_doubles(), (Doubles{20, 60}));
  s(zeros({2})).sum().backward();
  EXPECT_EQ(seen_in, Doubles{});
  handle.remove(), pre.remove();
  x.set_grad({});
  s(x).sum().backward();
  EXPECT_EQ(x.grad().to_doubles(), (Doubles{1, 3}));
}

TEST(ModuleHooks, SeeAllTensorsOfACallWithSeveral) {
  nn::Bilinear layer(2, 2, 1, false);
  {
    const NoGrad off;
    layer.weight.fill_(1);
  }
  using List = nn::Module::Tensors;
  auto before = layer.register_forward_pre_hook([](nn::Module&, const List& in) { return List{in[0] * 2, in[1]}; });
  auto after = layer.register_forward_hook([](nn::Module&, const List& in, const List& out) { return List{out[0] + in[0][0]}; });
  Doubles grads;
  auto backward = layer.register_full_backward_hook([&](nn::Module&, const List& in, const List& out) {
    grads = {in[0][1].item<double>(), static_cast<double>(in[1].defined()), out[0].item<double>()};
    return List{in[0] * 10, in[1]};
  });
  Tensor a = tensor({1.0, 2.0}, DType::F32).requires_grad_();
  const Tensor b = tensor({3.0, 4.0}, DType::F32), y = layer(a, b);
  EXPECT_EQ(y.to_doubles(), (Doubles{2 * 3 * 7 + 2}));
  y.backward();
  EXPECT_EQ(grads, (Doubles{7, 0, 1}));
  EXPECT_EQ(a.grad().to_doubles(), (Doubles{160, 140}));  // 10 * (7 + 1) and 10 * 7, doubled
  before.remove(), after.remove(), backward.remove();
  EXPECT_EQ(layer(a, b).to_doubles(), (Doubles{21}));
}

TEST(ModuleHooks, SeeStatesAndWeightsOfLossesAndRefuseOtherNumbers) {
  using List = nn::Module::Tensors;
  nn::LSTM lstm(2, 3);
  std::vector<size_t> seen;
  lstm.register_forward_hook([&](nn::Module&, const List& in, const List& out) {
    seen = {in.size(), out.size()};
    return List{zeros_like(out[0]), out[1], out[2]};
  });
  const auto [y, state] = lstm(ones({4, 1, 2}));
  EXPECT_EQ(seen, (std::vector<size_t>{3, 3}));
  EXPECT_EQ(y.sum().item<double>(), 0);
  EXPECT_NE(state.first.abs().sum().item<double>(), 0);
  nn::MSELoss loss;
  loss.register_forward_hook([](nn::Module&, const List&, const List& out) { return List{out[0] * 3}; });
  EXPECT_EQ(loss(ones({2}), zeros({2})).item<double>(), 3);
  auto one = loss.register_forward_pre_hook([](nn::Module&, const Tensor& x) { return x; });
  expect_error<RuntimeError>([&] { loss(ones({2}), zeros({2})); }, "a hook on MSELoss takes one tensor, but the call has 2 inputs");
  one.remove();
  loss.register_forward_pre_hook([](nn::Module&, const List& in) { return List{in[0]}; });
  expect_error<RuntimeError>([&] { loss(ones({2}), zeros({2})); }, "a hook on MSELoss returned 1 inputs, but there are 2");
}

TEST(ModuleHooks, BackwardBehindAModuleThatIsGoneHasNoneOfItsHooks) {
  Tensor x = ones({2}).requires_grad_(), y;
  int calls = 0;
  {
    nn::Tanh layer;
    layer.register_full_backward_hook([&](nn::Module&, const Tensor& in, const Tensor&) { return ++calls, in; });
    y = layer(x);
  }
  y.sum().backward();
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(x.grad().defined());
  nn::Tanh first;
  first.register_full_backward_hook([&](nn::Module& m, const Tensor& in, const Tensor&) { return calls += m.name() == "Tanh", in; });
  y = first(x);
  const nn::Tanh second(std::move(first));
  y.sum().backward();
  EXPECT_EQ(calls, 1);
}

// --- utilities

TEST(NnUtils, GradientsAreClippedByTheirNormAndByValue) {
  Tensor a = zeros({2}).requires_grad_(), b = zeros({1}).requires_grad_();
  a.set_grad(tensor({3.0, 0.0}, DType::F32)), b.set_grad(tensor({4.0}, DType::F32));
  EXPECT_EQ(nn::utils::clip_grad_norm_({a, b}, 10).item<double>(), 5);
  EXPECT_EQ(a.grad().to_doubles(), (Doubles{3, 0}));
  nn::utils::clip_grad_norm_({a, b}, 1);
  EXPECT_NEAR(a.grad()[0].item<double>(), 0.6, 1e-6);
  nn::utils::clip_grad_value_({a, b}, 0.25);
  EXPECT_EQ(b.grad().item<double>(), 0.25);
  a.set_grad(tensor({INFINITY, 0.0}, DType::F32));
  expect_error<RuntimeError>([&] { nn::utils::clip_grad_norm_({a}, 1, 2, true); }, "is non-finite, so it cannot be clipped");
}

TEST(NnUtils, ParametersBecomeAVectorAndComeBack) {
  nn::Linear l(2, 3);
  const Tensor v = nn::utils::parameters_to_vector(l.parameters());
  EXPECT_EQ(v.numel(), 9);
  nn::utils::vector_to_parameters(arange(0, 9, 1, DType::F32), l.parameters());
  EXPECT_EQ(l.bias.to_doubles(), (Doubles{6, 7, 8}));
  EXPECT_TRUE(l.bias.requires_grad() && l.bias.is_leaf());
  expect_error<RuntimeError>([&] { nn::utils::vector_to_parameters(zeros({3}), l.parameters()); }, "the parameters have 9 elements");
}

TEST(NnUtils, SequencesArePaddedOnEitherSide) {
  const std::vector<Tensor> s{tensor({1.0, 2.0}), tensor({3.0})};
  const Tensor p = nn::utils::rnn::pad_sequence(s, true, -1);
  EXPECT_EQ(p.to_doubles(), (Doubles{1, 2, 3, -1}));
  EXPECT_EQ(nn::utils::rnn::pad_sequence(s, false, 0, "left").to_doubles(), (Doubles{1, 0, 2, 3}));
  EXPECT_EQ(nn::utils::rnn::unpad_sequence(p, tensor({2, 1}), true)[1].to_doubles(), (Doubles{3}));
}

TEST(NnInit, FillsAsItsNamesSay) {
  manual_seed(1);
  Tensor w = empty({200, 100});
  const auto deviation = [&] { return std(w).item<double>(); };
  nn::init::xavier_normal_(w);
  EXPECT_NEAR(deviation(), std::sqrt(2.0 / 300), 0.003);
  nn::init::kaiming_uniform_(w, 0, "fan_out", "relu");
  EXPECT_NEAR(deviation(), std::sqrt(2.0 / 200), 0.003);
  nn::init::orthogonal_(w, 2);
  EXPECT_TRUE(allclose(matmul(w.t(), w), eye(100) * 4, 1e-4, 1e-4));
  const Tensor wide = nn::init::orthogonal_(empty({3, 2, 4}));
  EXPECT_TRUE(allclose(matmul(wide.view({3, 8}), wide.view({3, 8}).t()), eye(3), 1e-5, 1e-5));
  nn::init::trunc_normal_(w, 0, 1, -0.5, 0.5);
  EXPECT_LE(w.abs().max().item<double>(), 0.5);
  nn::init::sparse_(w, 0.25);
  EXPECT_EQ((w == 0).to(DType::I64).sum(Dims{0}).max().item<int64_t>(), 50);
  const Tensor d = nn::init::dirac_(empty({2, 2, 3}));
  EXPECT_EQ(d.to_doubles(), (Doubles{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(nn::init::eye_(empty({2, 2})).to_doubles(), (Doubles{1, 0, 0, 1}));
  expect_error<ValueError>([] { nn::init::calculate_gain("swish"); }, "Unsupported nonlinearity swish");
  expect_error<ValueError>([&] { nn::init::kaiming_normal_(w, 0, "fan"); }, "Mode fan not supported");
}

// --- layers

TEST(Layers, PrintAsPythonsDo) {
  EXPECT_EQ(nn::ELU().str(), "ELU(alpha=1.0)");
  EXPECT_EQ(nn::Hardtanh().str(), "Hardtanh(min_val=-1.0, max_val=1.0)");
  EXPECT_EQ(nn::MaxPool2d(2).str(), "MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)");
  EXPECT_EQ(nn::ReflectionPad2d(Dims{1}).str(), "ReflectionPad2d((1, 1, 1, 1))");
  EXPECT_EQ(nn::Upsample({.scale_factor = {2}}).str(), "Upsample(scale_factor=2.0, mode='nearest')");
  EXPECT_EQ(nn::InstanceNorm2d(3).str(), "InstanceNorm2d(3, eps=1e-05, momentum=0.1, affine=False, bias=False, track_running_stats=False)");
  EXPECT_EQ(nn::RMSNorm(4).str(), "RMSNorm((4,), eps=None, elementwise_affine=True)");
  EXPECT_EQ(nn::LocalResponseNorm(2).str(), "LocalResponseNorm(2, alpha=0.0001, beta=0.75, k=1.0)");
}

TEST(Layers, ComputeWhatTheirFunctionsDo) {
  namespace F = nn::functional;
  const Tensor x = tensor({-2.0, -0.3, 0.0, 0.7, 3.0}, DType::F64);
  EXPECT_EQ(nn::Hardtanh()(x).to_doubles(), (Doubles{-1, -0.3, 0, 0.7, 1}));
  EXPECT_EQ(F::hardtanh(tensor({-3, 2})).to_ints(), (std::vector<int64_t>{-1, 1}));
  EXPECT_EQ(nn::Softshrink()(x).to_doubles(), (Doubles{-1.5, 0, 0, 0.7 - 0.5, 2.5}));
  EXPECT_EQ(nn::Hardshrink()(x).to_doubles(), (Doubles{-2, 0, 0, 0.7, 3}));
  EXPECT_NEAR(nn::CELU(2)(x)[0].item<double>(), 2 * std::expm1(-1.0), 1e-15);
  EXPECT_TRUE(allclose(nn::SELU()(x)[4], tensor(3 * 1.0507009873554805, DType::F64)));
  EXPECT_EQ(nn::GLU()(tensor({2.0, 0.0})).to_doubles(), (Doubles{1}));
  EXPECT_TRUE(allclose(nn::RMSNorm(5)(x.to(DType::F32)), (x / (x * x).mean().sqrt()).to(DType::F32), 1e-5));
  EXPECT_TRUE(allclose(F::normalize(x, 2, 0), x / norm(x)));
  EXPECT_EQ(nn::Unflatten(0, {5, 1})(x).sizes(), (Dims{5, 1}));
  EXPECT_EQ(F::smooth_l1_loss(x, x + 1, Reduction::Mean, 0).item<double>(), 1);
  EXPECT_NEAR(nn::GaussianNLLLoss()(x, x + 1, ones_like(x)).item<double>(), 0.5, 1e-12);
  EXPECT_NEAR(nn::KLDivLoss("batchmean")(log_softmax(x.view({1, 5}), 1), softmax(x.view({1, 5}) * 1.0, 1)).item<double>(), 0, 1e-12);
  expect_error<ValueError>([&] { F::gaussian_nll_loss(x, x, -ones_like(x)); }, "var has negative entry/entries");
  expect_error<RuntimeError>([&] { F::rms_norm(x, {4}); }, "Given normalized_shape=[4]");
  expect_error<RuntimeError>([&] { F::celu(x, 0); }, "alpha cannot be 0 for CELU");
  const Tensor q = randn({2, 3, 4}), mask = tril(ones({3, 3}, DType::Bool));
  EXPECT_TRUE(allclose(F::scaled_dot_product_attention(q, q, q, {}, 0, true), F::scaled_dot_product_attention(q, q, q, mask), 1e-6));
  Tensor y = x.clone();
  F::elu_(y);
  EXPECT_EQ(y.to_doubles(), F::elu(x).to_doubles());
}

TEST(Layers, WithLossesComputeWhatTheirFunctionsDo) {
  namespace F = nn::functional;
  const Tensor x = randn({3, 4}, DType::F64), y = tensor({0, 3, 1});
  EXPECT_EQ(nn::MultiMarginLoss(2)(x, y).item<double>(), multi_margin_loss(x, y, 2).item<double>());
  EXPECT_EQ(nn::MultiLabelSoftMarginLoss()(x, x).item<double>(), multilabel_soft_margin_loss(x, x).item<double>());
  EXPECT_EQ(nn::TripletMarginWithDistanceLoss([](const Tensor& a, const Tensor& b) { return (a - b).abs().sum({-1}); })(x, x + 1, x)
                .item<double>(),
            5);
  const Tensor log = log_softmax(randn({6, 2, 5}), 2), labels = tensor({{1, 2, 3}, {4, 4, 0}}), steps = tensor({6, 5}),
               counts = tensor({3, 2});
  EXPECT_EQ(nn::CTCLoss()(log, labels, steps, counts).item<double>(), ctc_loss(log, labels, {6, 5}, {3, 2}).item<double>());
  nn::EmbeddingBag bag(5, 2, {.mode = "max"});
  EXPECT_EQ(bag(tensor({{1, 1}, {2, 4}}))[0].to_doubles(), bag.weight[1].to_doubles());
  nn::AdaptiveLogSoftmaxWithLoss adaptive(4, 10, {3, 6}, 2);
  const auto [output, loss] = adaptive(x.to(DType::F32), tensor({0, 4, 9}));
  EXPECT_NEAR(output[2].item<double>(), adaptive.log_prob(x.to(DType::F32))[2][9].item<double>(), 1e-5);
  EXPECT_NEAR(loss.item<double>(), -output.mean().item<double>(), 1e-6);
  nn::LinearCrossEntropyLoss linear(4, 5);
  const Tensor single = x.to(DType::F32);
  EXPECT_NEAR(linear(single, y).item<double>(), cross_entropy((*linear.linear)(single), y).item<double>(), 1e-6);
  expect_error<RuntimeError>([&] { multi_margin_loss(x, tensor({0, 4, 1})); }, "target out of range");
  expect_error<NotImplementedError>(
      [&] {
        F::embedding_bag(y.view({1, 3}), x, {.mode = "max", .per_sample_weights = x.narrow(1, 0, 1).t()});
      },
      "mode='max'");
}

TEST(Layers, OfImagesComputeWhatTheirFunctionsDo) {
  namespace F = nn::functional;
  const Tensor x = arange(0, 16, 1, DType::F32).view({1, 1, 4, 4});
  const auto [values, places] = F::max_pool2d_with_indices(x, {2});
  EXPECT_EQ(nn::MaxUnpool2d(2)(values, places).sum().item<double>(), values.sum().item<double>());
  expect_error<ValueError>([&, v = values, p = places] { F::max_unpool2d(v, p, {2}, {}, {0}, {9, 9}); }, "invalid output_size");
  EXPECT_EQ(nn::Upsample({.scale_factor = {2}})(x).sizes(), (Dims{1, 1, 8, 8}));
  EXPECT_EQ(nn::UpsamplingBilinear2d({.size = {7}})(x).sizes(), (Dims{1, 1, 7, 7}));
  expect_error<ValueError>([&] { F::interpolate(x, {}); }, "either size or scale_factor should be defined");
  EXPECT_EQ(nn::Fold({4, 4}, {2}, {1}, {0}, {2})(nn::Unfold({2}, {1}, {0}, {2})(x)).to_doubles(), x.to_doubles());
  EXPECT_EQ(nn::PixelUnshuffle(2)(x).sizes(), (Dims{1, 4, 2, 2}));
  EXPECT_EQ(nn::FractionalMaxPool2d({2}, {.output_ratio = {0.5}})(x).sizes(), (Dims{1, 1, 2, 2}));
  EXPECT_EQ(nn::AdaptiveMaxPool2d(2)(x).to_doubles(), (Doubles{5, 7, 13, 15}));
  EXPECT_EQ(nn::ZeroPad2d(Dims{1, 0, 0, 0})(x).sizes(), (Dims{1, 1, 4, 5}));
  EXPECT_NEAR(nn::InstanceNorm2d(1)(x).mean().item<double>(), 0, 1e-6);
}

}  // namespace
}  // namespace naru
