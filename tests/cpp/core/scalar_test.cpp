#include "naru/scalar.h"

#include <gtest/gtest.h>
#include <complex>

#include "naru/error.h"

namespace naru {
namespace {

TEST(Scalar, AComplexNumberIsOneOfItsOwnCategory) {
  const Scalar s = std::complex<float>(1.5f, -2);
  EXPECT_TRUE(s.is_complex());
  EXPECT_FALSE(s.is_float());
  EXPECT_EQ(s.to<std::complex<double>>(), std::complex<double>(1.5, -2));
  EXPECT_EQ(s.dtype(), kComplex64);
  EXPECT_TRUE(Scalar(std::complex<double>(0, 1)).to_bool());
  EXPECT_FALSE(Scalar(std::complex<double>(0, 0)).to_bool());
}

TEST(Scalar, AComplexNumberIsARealOneOnlyWithoutAnImaginaryPart) {
  EXPECT_EQ(Scalar(std::complex<double>(3, 0)).to_double(), 3);
  EXPECT_EQ(Scalar(std::complex<double>(3, 0)).to_int(), 3);
  EXPECT_THROW(Scalar(std::complex<double>(3, 1)).to_double(), RuntimeError);
  EXPECT_THROW(Scalar(std::complex<double>(3, 1)).to_int(), RuntimeError);
}

TEST(Scalar, ARealNumberIsAComplexOne) {
  EXPECT_EQ(Scalar(2).to<std::complex<double>>(), std::complex<double>(2, 0));
  EXPECT_EQ(Scalar(2.5).to<std::complex<double>>(), std::complex<double>(2.5, 0));
  EXPECT_EQ(Scalar(true).to<std::complex<double>>(), std::complex<double>(1, 0));
}

}  // namespace
}  // namespace naru
