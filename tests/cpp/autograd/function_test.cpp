// User-defined functions, the graph as programs see it, derivatives of functions, and anomaly detection.
#include "naru/autograd/function.h"

#include <gtest/gtest.h>

#include "naru/autograd/derivatives.h"
#include "naru/autograd/node.h"
#include "naru/ops.h"
#include "ops/checks.h"

namespace naru {
namespace {

using autograd::Context;
using testing::Doubles;
using testing::leaf;
using List = std::vector<Tensor>;

// Expects f to throw a RuntimeError whose text contains `part`.
template <class F>
void expect_error(F f, const std::string& part) {
  const std::string text = testing::text_of<RuntimeError>(f);
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

struct Cube : autograd::Function<Cube> {
  static Tensor forward(Context* ctx, const Tensor& x) {
    EXPECT_FALSE(grad_enabled());
    ctx->save_for_backward({x});
    return x * x * x;
  }
  static List backward(Context* ctx, const List& grads) {
    const Tensor x = ctx->saved_tensors()[0];
    return {grads[0] * 3 * x * x};
  }
};

// scale * a + b, and a scalar argument without a gradient.
struct Affine : autograd::Function<Affine> {
  static std::pair<Tensor, Tensor> forward(Context* ctx, const Tensor& a, double scale, const List& b) {
    ctx->saved_data["scale"] = scale;
    ctx->saved_data["wanted"] = ctx->needs_input_grad(0) && !ctx->needs_input_grad(1);
    const Tensor places = a.argmax();
    ctx->mark_non_differentiable({places});
    return {a * scale + b[0] + b[1], places};
  }
  static List backward(Context* ctx, const List& grads) {
    EXPECT_TRUE(ctx->saved_data["wanted"].to<bool>());
    return {grads[0] * ctx->saved_data["scale"].toDouble(), Tensor(), grads[0], Tensor()};
  }
};

TEST(AutogradFunction, ItsBackwardIsTheGradientAndMayBeDifferentiated) {
  const Tensor x = leaf({2, -1});
  const Tensor y = Cube::apply(x);
  EXPECT_EQ(y.grad_fn()->name(), "CubeBackward");
  EXPECT_EQ(grad({y}, {x}, {ones_like(y)}, true)[0].to_doubles(), (Doubles{12, 3}));
  EXPECT_TRUE(autograd::gradcheck(&Cube::apply<const Tensor&>, {x}));
  EXPECT_TRUE(autograd::gradgradcheck(&Cube::apply<const Tensor&>, {x}));
  const NoGrad off;
  EXPECT_FALSE(Cube::apply(x).requires_grad());
}

TEST(AutogradFunction, ArgumentsThatAreNoTensorsGetNoGradientAndListsOneForEachTensor) {
  const Tensor a = leaf({1, 5}), b = leaf({1, 1});
  const auto [sum, place] = Affine::apply(a, 3.0, List{b, tensor({1.0, 2.0}, DType::F64)});
  EXPECT_EQ(sum.to_doubles(), (Doubles{5, 18}));
  EXPECT_EQ(place.item<int>(), 1);
  EXPECT_FALSE(place.requires_grad());
  sum.sum().backward();
  EXPECT_EQ(a.grad().to_doubles(), (Doubles{3, 3}));
  EXPECT_EQ(b.grad().to_doubles(), (Doubles{1, 1}));
}

// a * factor + b, which notes which gradients its backward is asked for.
struct Asked : autograd::Function<Asked> {
  static inline std::vector<bool> now;
  static Tensor forward(Context*, const Tensor& a, double factor, const Tensor& b) { return a * factor + b; }
  static List backward(Context* ctx, const List& grads) {
    now = {ctx->needs_input_grad(0), ctx->needs_input_grad(1), ctx->needs_input_grad(2)};
    return {grads[0] * 2, Tensor(), grads[0]};
  }
};

TEST(AutogradFunction, BackwardLearnsWhichGradientsThePassNeeds) {
  using Bools = std::vector<bool>;
  const Tensor a = leaf({1, 5}), b = leaf({1, 1});
  const Tensor y = Asked::apply(a, 2.0, b * 1).sum();
  grad({y}, {a}, {}, true);
  EXPECT_EQ(Asked::now, (Bools{true, false, false}));
  grad({y}, {b}, {}, true);
  EXPECT_EQ(Asked::now, (Bools{false, false, true}));
  backward({y}, {}, true, false, {a});
  EXPECT_EQ(Asked::now, (Bools{true, false, false}));
  y.backward();
  EXPECT_EQ(Asked::now, (Bools{true, false, true}));
  Asked::apply(a, 2.0, b.detach()).sum().backward();
  EXPECT_EQ(Asked::now, (Bools{true, false, false}));
}

struct Doubled : autograd::Function<Doubled> {
  static Tensor forward(Context* ctx, Tensor x, bool tell) {
    if (tell) ctx->mark_dirty({x});
    return x.mul_(2);
  }
  static Tensor backward(Context*, const List& grads) { return grads[0] * 2; }
};
struct Forgetful : autograd::Function<Forgetful> {
  static Tensor forward(Context* ctx, Tensor x) {
    ctx->mark_dirty({x});
    x.add_(1);
    return x * 1;
  }
  static List backward(Context*, const List& grads) { return grads; }
};

TEST(AutogradFunction, AnArgumentWrittenInPlaceGetsTheFunctionAsItsHistory) {
  const Tensor x = leaf({1, 2}), y = x * 1;
  const Tensor z = Doubled::apply(y, true);
  EXPECT_TRUE(z.is(y));
  expect_error([&] { z.sum().backward(); }, "returned an incorrect number of gradients (expected 2, got 1)");
  expect_error([&] { Forgetful::apply(x * 1); }, "marked as dirty during the forward method were not returned");
  expect_error([&] { Doubled::apply(x, true); }, "a leaf Variable that requires grad");
}

struct Two : autograd::Function<Two> {
  static List forward(Context* ctx, const Tensor& x, bool zeros) {
    ctx->set_materialize_grads(zeros);
    ctx->saved_data["zeros"] = zeros;
    return {x * 2, x};
  }
  static List backward(Context* ctx, const List& grads) {
    EXPECT_EQ(grads[1].defined(), ctx->saved_data["zeros"].toBool());
    return {grads[0] * 2, Tensor()};
  }
};

TEST(AutogradFunction, MissingGradientsAreZerosUnlessTheFunctionDoesNotWantThem) {
  const Tensor x = leaf({1, 2});
  for (const bool zeros : {true, false}) {
    const List y = Two::apply(x, zeros);
    EXPECT_FALSE(y[1].is(x));  // an argument that forward returns unchanged becomes a view with the function as its history
    EXPECT_EQ(grad({y[0].sum()}, {x})[0].to_doubles(), (Doubles{2, 2}));
  }
}

TEST(AutogradFunction, ASavedTensorThatWasWrittenSinceOrFreedIsAnError) {
  const Tensor x = leaf({2});
  Tensor in = x * 1;
  const Tensor y = Cube::apply(in);
  in.add_(1);
  expect_error([&] { y.backward(); }, "modified by an inplace operation");
  const Tensor z = Cube::apply(x);
  z.backward();
  expect_error([&] { z.backward(); }, "a second time");
}

TEST(AutogradFunction, AValueIsReadBackAsWhatItWas) {
  std::map<std::string, autograd::Value> data;
  data["n"] = 3, data["name"] = "row", data["t"] = ones({2}), data["shape"] = Dims{1, 2};
  EXPECT_EQ(data["n"].toInt(), 3);
  EXPECT_EQ(data["n"].toDouble(), 3.0);
  EXPECT_EQ(data["name"].toStringRef(), "row");
  EXPECT_EQ(data["t"].toTensor().numel(), 2);
  EXPECT_EQ(data["shape"].to<Dims>(), (Dims{1, 2}));
  EXPECT_THROW(data["name"].toInt(), TypeError);
  EXPECT_THROW(data["none"].toTensor(), TypeError);
}

// --- the graph

TEST(AutogradNode, TheGraphCanBeWalkedFromAResultToItsLeaves) {
  const Tensor x = leaf({1, 2}), y = (x * 2).sum();
  EXPECT_EQ(y.grad_fn()->name(), "SumBackward0");
  const auto next = y.grad_fn()->next_functions();
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].first.name(), "MulBackward0");
  const auto leaves = next[0].first.next_functions();
  EXPECT_EQ(leaves[0].first.name(), "AccumulateGrad");
  EXPECT_TRUE(leaves[0].first.variable().is(x));
  EXPECT_FALSE(x.grad_fn());
  EXPECT_GT(y.grad_fn().sequence_nr(), next[0].first.sequence_nr());
}

TEST(AutogradNode, HooksOnANodeSeeAndReplaceItsGradients) {
  const Tensor x = leaf({1, 2}), y = x * 3;
  List seen;
  auto before = y.grad_fn()->register_prehook([](const List& g) { return List{g[0] * 10}; });
  auto after = y.grad_fn()->register_hook([&](const List& in, const List& out) {
    seen = out;
    return List{in[0] + 1, in[1]};
  });
  EXPECT_EQ(grad({y.sum()}, {x}, {}, true)[0].to_doubles(), (Doubles{31, 31}));
  EXPECT_EQ(seen[0].to_doubles(), (Doubles{10, 10}));
  before.remove();
  after.remove();
  after.remove();  // removing twice has no effect
  EXPECT_EQ(grad({y.sum()}, {x}, {}, true)[0].to_doubles(), (Doubles{3, 3}));
  y.grad_fn()->register_prehook([](const List& g) { return List{g[0], g[0]}; });
  expect_error([&] { y.sum().backward(); }, "incorrect number of values (got 2, but expected 1)");
}

TEST(AutogradNode, AHookOnALeafRunsWhenItsGradHasBeenAddedTo) {
  const Tensor x = leaf({1, 2});
  Doubles seen;
  auto handle = autograd::register_post_accumulate_grad_hook(x, [&](const Tensor& t) { seen = t.grad().to_doubles(); });
  (x * 2).sum().backward();
  (x * 2).sum().backward();
  EXPECT_EQ(seen, (Doubles{4, 4}));
  handle.remove();
  (x * 2).sum().backward();
  EXPECT_EQ(seen, (Doubles{4, 4}));
  EXPECT_THROW(autograd::register_post_accumulate_grad_hook(x * 1, [](const Tensor&) {}), RuntimeError);
}

// --- anomaly detection

std::string warned;

TEST(AnomalyDetection, ANaNIsAnErrorThatNamesTheNodeAndWarnsOfWhereItWasMade) {
  const Tensor x = leaf({0});
  warned.clear();
  set_warner([](const std::string& text) { warned = text; });
  {
    const autograd::GradFn none;
    const DetectAnomaly on;
    expect_error([&] { (x.sqrt() * 0).sum().backward(); }, "Function 'SqrtBackward0' returned nan values");
  }
  set_warner(nullptr);
  EXPECT_NE(warned.find("Traceback of forward call"), std::string::npos) << warned;
  EXPECT_FALSE(anomaly_enabled());
  (x.sqrt() * 0).sum().backward();
}

// --- derivatives of functions

TEST(Derivatives, JacobiansHaveTheOutputsShapeFollowedByTheInputs) {
  const Tensor x = tensor({1.0, 2.0, 3.0}, DType::F64), w = tensor({2.0, 0.5, 1.0}, DType::F64);
  const Tensor j = autograd::jacobian([](const Tensor& t) { return (t * t).view({3, 1}); }, x);
  EXPECT_EQ(j.sizes(), (Dims{3, 1, 3}));
  EXPECT_EQ(j.to_doubles(), (Doubles{2, 0, 0, 0, 4, 0, 0, 0, 6}));
  const auto both = autograd::jacobian([](const Tensor& a, const Tensor& b) { return List{(a * b).sum(), a}; }, {x, w});
  EXPECT_EQ(both[0][1].to_doubles(), x.to_doubles());
  EXPECT_EQ(both[1][1].to_doubles(), Doubles(9, 0.0));
  expect_error(
      [&] {
        autograd::jacobian([](const Tensor& a, const Tensor&) { return a; }, {x, w}, {.strict = true});
      },
      "independent of input 1");
}

TEST(Derivatives, ProductsWithAJacobianAgreeWithIt) {
  const Tensor x = tensor({1.0, 2.0, 3.0}, DType::F64), v = tensor({1.0, -1.0, 2.0}, DType::F64);
  const auto f = [](const Tensor& t) { return t.exp() * t.sum(); };
  const Tensor j = autograd::jacobian(f, x);
  EXPECT_TRUE(allclose(autograd::vjp(f, {x}, {v}).product[0], mv(j.t(), v)));
  const auto forward = autograd::jvp(f, {x}, {v});
  EXPECT_TRUE(allclose(forward.product[0], mv(j, v)));
  EXPECT_FALSE(forward.product[0].requires_grad());
  expect_error([&] { autograd::vjp(f, {x}); }, "The vector v can only be None if");
  expect_error([&] { autograd::jvp(f, {x}, {ones({2}, DType::F64)}); }, "v has invalid size");
}

TEST(Derivatives, ForwardOnesFollowWritesAndNest) {
  const Tensor x = tensor({1.0, 2.0, 3.0}, DType::F64), v = tensor({1.0, -1.0, 2.0}, DType::F64);
  const auto written = [](const Tensor& t) {
    Tensor y = t.clone();
    const Tensor tail = y.slice(0, 1, 3);
    y.mul_(y);
    tail.add_(t[0]);
    return y * tail.sum();
  };
  const auto plain = [](const Tensor& t) {
    const Tensor square = t * t, y = square + tensor({0.0, 1.0, 1.0}, DType::F64) * t[0];
    return y * (y[1] + y[2]);
  };
  EXPECT_TRUE(allclose(autograd::jvp(written, {x}, {v}).product[0], autograd::jvp(plain, {x}, {v}).product[0]));
  EXPECT_TRUE(allclose(autograd::jvp(plain, {x}, {v}).product[0], mv(autograd::jacobian(plain, x), v)));
  // The tangent of a tangent is the second derivative along v, twice.
  const auto along = [&](const Tensor& t) {
    return autograd::jvp([](const Tensor& s) { return s.exp().sum(); }, {t}, {v}, {true}).product[0];
  };
  EXPECT_TRUE(allclose(autograd::jvp(along, {x}, {v}).product[0], (x.exp() * v * v).sum()));
  expect_error(
      [&] {
        autograd::jvp([&](const Tensor& a, const Tensor& b) { return a + b.detach(); }, {x, x}, {v, v}, {.strict = true});
      },
      "independent of input 1");
}

TEST(Derivatives, AHessianAgreesWithItsProducts) {
  const Tensor x = tensor({1.0, 2.0}, DType::F64), v = tensor({3.0, -1.0}, DType::F64);
  const auto f = [](const Tensor& t) { return (t * t * t).sum() + t[0] * t[1]; };
  const Tensor h = autograd::hessian(f, x);
  EXPECT_EQ(h.to_doubles(), (Doubles{6, 1, 1, 12}));
  EXPECT_TRUE(allclose(autograd::hvp(f, {x}, {v}).product[0], mv(h, v)));
  EXPECT_TRUE(allclose(autograd::vhp(f, {x}, {v}).product[0], mv(h, v)));
  const Tensor y = leaf({1, 2});
  EXPECT_EQ(grad({autograd::hessian(f, y, {.create_graph = true}).sum()}, {y})[0].to_doubles(), (Doubles{6, 6}));
  expect_error([&] { autograd::hessian([](const Tensor& t) { return t * t; }, x); }, "should contain a single element");
}

TEST(Derivatives, GradcheckFindsAWrongDerivative) {
  struct Wrong : autograd::Function<Wrong> {
    static Tensor forward(Context*, const Tensor& x) { return x * 2; }
    static Tensor backward(Context*, const List& g) { return g[0] * 3; }
  };
  EXPECT_THROW(autograd::gradcheck([](const Tensor& x) { return Wrong::apply(x); }, {leaf({1, 2})}), autograd::GradcheckError);
  EXPECT_THROW(autograd::gradcheck([](const Tensor& x) { return x; }, {ones({1})}), ValueError);
}

}  // namespace
}  // namespace naru
