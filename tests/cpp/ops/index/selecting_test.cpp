// searchsorted, bucketize, index writes and torch.special, from C++.
#include "naru/ops/functions.h"

#include <gtest/gtest.h>

#include <cmath>

#include "naru/ops/special.h"
#include "ops/checks.h"

namespace naru {
namespace {

using testing::Doubles;
using testing::expect_gradient;
using testing::Ints;
using testing::text_of;

TEST(Selecting, NaNIsLeftOutOfMediansAndQuantiles) {
  const Tensor t = tensor({3.0, NAN, 1.0, 2.0, NAN, NAN}).view({2, 3});
  EXPECT_EQ(nanmedian(t).item<double>(), 2);
  EXPECT_EQ(nanmedian(t, 1).second.to_ints(), (Ints{2, 0}));
  EXPECT_EQ(nanquantile(t, 0.5, 1).to_doubles(), (Doubles{2, 2}));
  EXPECT_EQ(nanquantile(t, tensor({0.0, 1.0})).to_doubles(), (Doubles{1, 3}));
}

TEST(Selecting, ElementsAreCountedInBins) {
  const auto [hist, edges] = histogram(tensor({0.0, 1.0, 1.0, 2.0}), 2);
  EXPECT_EQ(hist.to_doubles(), (Doubles{1, 3}));
  EXPECT_EQ(edges.to_doubles(), (Doubles{0, 1, 2}));
  EXPECT_EQ(histogram(tensor({0.0, 1.0, 5.0}), tensor({0.0, 1.0, 4.0})).first.to_doubles(), (Doubles{1, 1}));
  EXPECT_EQ(text_of<RuntimeError>([] { histogram(ones({2}), 0); }), "torch.histogram(): bins must be > 0, but got 0 for dimension 0");
}

TEST(Selecting, NumbersAreTakenApartAndFollowEachOther) {
  const auto [mantissa, exponent] = frexp(tensor({-3.5, 0.0, 8.0}, DType::F64));
  EXPECT_EQ(mantissa.to_doubles(), (Doubles{-0.875, 0, 0.5}));
  EXPECT_EQ(exponent.to_ints(), (Ints{2, 0, 4}));
  EXPECT_EQ(nextafter(tensor({0.0, 1.0}, DType::F64), tensor({1.0, -1.0}, DType::F64)).to_doubles(),
            (Doubles{5e-324, std::nextafter(1, -1)}));
}

TEST(Selecting, PiecesAreReducedAndElementsPut) {
  EXPECT_EQ(segment_reduce(tensor({1.0, 2.0, 3.0}), "max", tensor({2, 1})).to_doubles(), (Doubles{2, 3}));
  EXPECT_EQ(put(zeros({2, 2}), tensor({0, -1}), tensor({5.0, 6.0})).to_doubles(), (Doubles{5, 0, 0, 6}));
  EXPECT_EQ(masked_scatter(zeros({2}), tensor({0, 1}).to(DType::Bool), tensor({7.0, 8.0})).to_doubles(), (Doubles{0, 7}));
}

TEST(Special, GradientsAgreeWithDifferences) {
  const Tensor x = tensor({0.3, 0.5, 1.0}, DType::F64);
  for (Tensor (*const f)(const Tensor&) : {special::erfcx, special::ndtr, special::log_ndtr, special::i0e, special::i1, special::i1e})
    expect_gradient([f](const Tensor& t) { return f(t); }, x);
  expect_gradient([](const Tensor& t) { return special::ndtri(t); }, tensor({0.45, 0.55}, DType::F64));
  EXPECT_THROW(special::xlog1py(1, 2), TypeError);
  EXPECT_EQ(special::orthogonal_polynomial("legendre_polynomial_p", tensor({2.0}), 2).to_doubles(), (Doubles{5.5}));
}

}  // namespace
}  // namespace naru
