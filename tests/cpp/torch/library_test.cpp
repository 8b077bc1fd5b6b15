// Operators by name, dispatch over types, halves and parallel loops, as libtorch has them.
#include "naru/torch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>

namespace {

torch::Tensor doubled(const torch::Tensor& x) {
  EXPECT_FALSE(torch::GradMode::is_enabled()) << "a function for a device records no history";
  return x * 2;
}
torch::Tensor doubled_by_name(const torch::Tensor& x) {
  static const auto op = c10::Dispatcher::singleton().findSchemaOrThrow("library_test::doubled", "").typed<decltype(doubled)>();
  return op.call(x);
}
struct TwiceInCpp : torch::autograd::Function<TwiceInCpp> {
  static torch::Tensor forward(torch::autograd::AutogradContext*, torch::Tensor x) {
    const at::AutoDispatchBelowAutograd guard;
    return doubled_by_name(x);
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*, torch::autograd::variable_list grads) {
    return {grads[0] * 2};
  }
};
torch::Tensor doubled_recording(const torch::Tensor& x) { return TwiceInCpp::apply(x); }
at::Tensor& filled(at::Tensor& out, double value) {
  out.fill_(value);
  return out;
}
std::tuple<torch::Tensor, int64_t> sized(const torch::Tensor& x, std::vector<int64_t> by, std::optional<torch::Tensor> more) {
  return {more ? *more : x, x.numel() + std::accumulate(by.begin(), by.end(), int64_t{0})};
}

TORCH_LIBRARY(library_test, m) {
  m.def("doubled(Tensor x) -> Tensor");
  m.def("filled(Tensor(a!) out, float value) -> Tensor(a!)", &filled);
  m.def("sized", &sized);
  m.def("nothing(Tensor x) -> Tensor");
}
TORCH_LIBRARY_IMPL(library_test, CPU, m) { m.impl("doubled", &doubled); }
TORCH_LIBRARY_IMPL(library_test, Autograd, m) { m.impl("doubled", TORCH_FN(doubled_recording)); }

TEST(TorchLibrary, AnOperatorIsCalledByItsName) {
  const torch::Tensor x = torch::ones({3}).requires_grad_();
  const torch::Tensor y = doubled_by_name(x);
  y.sum().backward();
  EXPECT_EQ(x.grad()[0].item<float>(), 2);
  at::Tensor out = torch::zeros({2});
  const auto fill = c10::Dispatcher::singleton().findSchemaOrThrow("library_test::filled").typed<at::Tensor&(at::Tensor&, double)>();
  EXPECT_EQ(&fill.call(out, 3), &out);
  EXPECT_EQ(out[1].item<float>(), 3);
  using Sized = std::tuple<torch::Tensor, int64_t>(const torch::Tensor&, std::vector<int64_t>, std::optional<torch::Tensor>);
  const auto size = c10::Dispatcher::singleton().findSchemaOrThrow("library_test::sized").typed<Sized>();
  EXPECT_EQ(std::get<1>(size.call(x, {1, 2}, std::nullopt)), 6);
  EXPECT_TRUE(std::get<0>(size.call(x, {}, out)).is(out));
}

TEST(TorchLibrary, WhatIsNotThereIsNamed) {
  EXPECT_THROW(c10::Dispatcher::singleton().findSchemaOrThrow("library_test::absent"), torch::RuntimeError);
  EXPECT_THROW(naru::library::call_operator("library_test::nothing", {torch::ones({1})}), torch::NotImplementedError);
  try {
    naru::library::call_operator("library_test::sized", {torch::ones({1}), "text", {}});
    FAIL() << "a text is no list";
  } catch (const torch::TypeError& error) {
    EXPECT_STREQ(error.what(), "library_test::sized: argument 1: wanted a list, got str");
  }
  EXPECT_THROW(naru::library::call_operator("library_test::sized", {torch::ones({1})}), torch::TypeError);
}

TEST(TorchLibrary, SchemasAreMadeOfTypes) {
  EXPECT_EQ(naru::library::detail::SignatureOf<decltype(&sized)>::text(), "(Tensor _0, int[] _1, Tensor? _2) -> (Tensor, int)");
  EXPECT_EQ(naru::library::detail::SignatureOf<void(double, at::Scalar, at::ScalarType)>::text(),
            "(float _0, Scalar _1, ScalarType _2) -> ()");
}

TEST(TorchDispatch, EachTypeHasItsElements) {
  for (const auto type : {at::kHalf, at::kBFloat16, at::kFloat, at::kDouble, at::kInt, at::kBool}) {
    const torch::Tensor x = torch::ones({4}, type);
    double sum = 0;
    AT_DISPATCH_ALL_TYPES_AND3(at::kHalf, at::kBFloat16, at::kBool, x.scalar_type(), "sum", [&] {
      const auto a = x.accessor<scalar_t, 1>();
      for (int64_t i = 0; i < a.size(0); ++i) sum += static_cast<double>(a[i]);
    });
    EXPECT_EQ(sum, 4);
  }
  const auto refused = [] { AT_DISPATCH_FLOATING_TYPES(at::kLong, "refused", [] {}); };
  EXPECT_THROW(refused(), torch::NotImplementedError);
  const torch::Tensor z = torch::zeros({1}, at::kComplexFloat);
  z.data_ptr<c10::complex<float>>()[0] = {1, 2};
  EXPECT_EQ(torch::imag(z)[0].item<float>(), 2);
}

TEST(TorchDispatch, HalvesRoundToNearestEven) {
  at::Half h = 1.0f;
  h += 0x1p-11f;  // half of the distance to the next
  EXPECT_EQ(static_cast<float>(h), 1);
  h += 0x1.8p-10f;
  EXPECT_EQ(h.bits(), 0x3c02);
  EXPECT_EQ(static_cast<float>(std::numeric_limits<at::Half>::max()), 65504);
  EXPECT_EQ(static_cast<float>(std::numeric_limits<at::BFloat16>::epsilon()), 0x1p-7f);
  EXPECT_EQ(torch::Scalar(at::BFloat16(2.5f)).to<double>(), 2.5);
}

TEST(TorchParallel, EachIndexIsVisitedOnce) {
  std::vector<std::atomic<int>> seen(1000);
  at::parallel_for(10, 1000, 7, [&](int64_t first, int64_t last) {
    EXPECT_GE(last - first, last == 1000 ? 1 : 7);
    for (int64_t i = first; i < last; ++i) ++seen[static_cast<size_t>(i)];
  });
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], i >= 10) << i;
  EXPECT_THROW(at::parallel_for(0, 100, 1, [](int64_t, int64_t) { TORCH_CHECK(false, "no"); }), torch::RuntimeError);
  EXPECT_FALSE(at::in_parallel_region());
}

TEST(TorchTensor, OptionsAndDevicesAreCalledAsInLibtorch) {
  const torch::Tensor x = torch::ones({2, 3}, torch::dtype(torch::kDouble));
  EXPECT_TRUE(x.device().type() == torch::kCPU && x.device().type() == at::DeviceType::CPU && !x.device().is_cuda());
  EXPECT_EQ(x.options().dtype(torch::kLong).dtype(), torch::kLong);
  EXPECT_TRUE(torch::zeros({1}, x.options().requires_grad(true)).requires_grad());
  EXPECT_EQ(torch::empty({1}, x.type()).scalar_type(), at::ScalarType::Double);
  EXPECT_EQ(x.sizes().vec(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(x.slice(1, 1).size(1), 2);
  int64_t sum = 0;
  for (const auto i : c10::irange(1, x.size(1))) sum += i;
  EXPECT_EQ(sum, 3);
}

TEST(TorchChecks, TextsAreWrittenOneBehindTheOther) {
  try {
    TORCH_CHECK_VALUE(false, "got ", torch::Dims{2, 3}, " of ", at::kFloat);
    FAIL();
  } catch (const torch::ValueError& error) {
    EXPECT_STREQ(error.what(), "got [2, 3] of Float");
  }
  try {
    TORCH_CHECK_EQ(1 + 1, 3, "sums");
    FAIL();
  } catch (const c10::Error& error) {
    EXPECT_STREQ(error.what_without_backtrace(), "Check failed: 1 + 1 == 3 (2 vs. 3). sums");
  }
}

}  // namespace
