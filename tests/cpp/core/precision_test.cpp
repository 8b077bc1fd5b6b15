#include "naru/device/precision.h"

#include <gtest/gtest.h>

namespace naru {
namespace {

TEST(Precision, EachSettingStandsInTheValueOfTheTypesItIsAbout) {
  const Precision first = precision_of(DType::F32);
  EXPECT_EQ(first, Precision());
  allow_tf32(true);
  EXPECT_TRUE(precision_of(DType::F32).tf32);
  allow_tf32(false);
  allow_reduced_precision_reduction(DType::BF16, false);
  EXPECT_TRUE(precision_of(DType::F16).reduced_accumulation);
  EXPECT_FALSE(precision_of(DType::BF16).reduced_accumulation);
  allow_reduced_precision_reduction(DType::BF16, true);
  use_deterministic_algorithms(true);
  for (const DType t : kAllDTypes) EXPECT_TRUE(precision_of(t).deterministic);
  use_deterministic_algorithms(false);
  EXPECT_EQ(precision_of(DType::BF16), first);
}

}  // namespace
}  // namespace naru
