#include "naru/dtype.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "naru/error.h"

namespace naru {
namespace {

TEST(DType, EachTypeHasItsNamesAndIsFoundByThem) {
  std::set<std::string_view> names;
  for (const DType t : kAllDTypes) {
    EXPECT_TRUE(names.insert(name_of(t)).second) << name_of(t);
    EXPECT_EQ(parse_dtype(name_of(t)), t);
    EXPECT_EQ(parse_dtype("torch." + std::string(name_of(t))), t);
  }
  for (const auto& [alias, t] : kDTypeAliases) EXPECT_EQ(parse_dtype(alias), t);
  EXPECT_THROW(parse_dtype("float8"), TypeError);
}

// True if every value of `from` is a value of `to`.
bool holds(DType to, DType from) {
  if (is_complex(to)) return holds(real_of(to), real_of(from));
  const DTypeTraits &a = traits_of(to), &b = traits_of(from);
  if (a.category != b.category) return a.category > b.category;
  return a.digits >= b.digits && (a.is_signed || !b.is_signed) && a.greatest >= b.greatest;
}

TEST(DType, PromotionGivesTheSmallestTypeThatHoldsBothInEitherOrder) {
  for (const DType a : kAllDTypes)
    for (const DType b : kAllDTypes) {
      SCOPED_TRACE(std::string(name_of(a)) + " and " + std::string(name_of(b)));
      if (a != b && (is_float8(a) || is_float8(b))) {
        EXPECT_THROW(promote(a, b), RuntimeError);
        continue;
      }
      if (a != b && (is_wide_unsigned(a) || is_wide_unsigned(b))) {
        if (is_floating(a) || is_floating(b))
          EXPECT_EQ(promote(a, b), is_floating(a) ? a : b);
        else
          EXPECT_THROW(promote(a, b), RuntimeError);
        continue;
      }
      const DType both = promote(a, b);
      EXPECT_EQ(both, promote(b, a));
      EXPECT_TRUE(holds(both, a) && holds(both, b)) << name_of(both);
      if (is_complex(a) || is_complex(b)) {
        EXPECT_EQ(both, complex_of(promote(real_of(a), real_of(b)))) << name_of(both);
        continue;
      }
      if (category_of(a) != category_of(b)) {
        EXPECT_TRUE(both == a || both == b) << name_of(both);
        continue;
      }
      for (const DType other : kAllDTypes)
        if (other != both && !is_wide_unsigned(other) && !is_float8(other) && holds(other, a) && holds(other, b)) {
          EXPECT_TRUE(category_of(other) > category_of(both) || size_of(other) >= size_of(both)) << name_of(other) << " would do";
        }
    }
  EXPECT_EQ(promote(DType::U8, DType::I8), DType::I16);
  EXPECT_EQ(promote(DType::F16, DType::BF16), DType::F32);
  EXPECT_EQ(promote(DType::I64, DType::F16), DType::F16);
  EXPECT_EQ(promote(DType::F64, kComplex64), kComplex128);
  EXPECT_EQ(promote(DType::I64, kComplex32), kComplex32);
  EXPECT_EQ(promote(DType::BF16, kComplex32), kComplex64);
}

TEST(DType, SumsAreKeptInATypeThatHoldsTheirTerms) {
  for (const DType t : kAllDTypes) {
    // Sums of uint64 are int64, modulo 2^64.
    EXPECT_EQ(holds(traits_of(t).accumulator, t), t != kUInt64) << name_of(t);
    EXPECT_EQ(traits_of(traits_of(t).accumulator).accumulator, traits_of(t).accumulator) << name_of(t);
    EXPECT_EQ(is_complex(t), traits_of(t).real != t) << name_of(t);
  }
}

}  // namespace
}  // namespace naru
