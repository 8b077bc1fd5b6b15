// uint16, uint32 and uint64.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "naru/naru.h"

namespace naru {
namespace {

constexpr uint64_t kMost = ~uint64_t{0};

Tensor most(DType type) { return full({3}, -1, Options(type)); }

TEST(Unsigned, NumbersWrapAroundInTheType) {
  for (const DType type : {kUInt16, kUInt32, kUInt64}) {
    const Tensor x = most(type);
    EXPECT_EQ(x.dtype(), type);
    EXPECT_EQ((x * x).to_ints(), (std::vector<int64_t>{1, 1, 1}));
    EXPECT_TRUE(equal(maximum(x, full({3}, 5, Options(type))), x));
    EXPECT_EQ(x.to(DType::Bool).to_ints(), (std::vector<int64_t>{1, 1, 1}));
  }
}

TEST(Unsigned, ANumberBeyondInt64IsReadWhole) {
  const Scalar s = most(kUInt64)[0].item();
  EXPECT_TRUE(s.is_unsigned());
  EXPECT_EQ(s.to_bits(), kMost);
  EXPECT_EQ(s.to_double(), 0x1p64);
  EXPECT_EQ(number_as<uint64_t>(s), kMost);
  EXPECT_THROW((void)s.to_int(), RuntimeError);
  EXPECT_EQ(full({1}, Scalar::of_unsigned(kMost), Options(kUInt64)).str(), "tensor([18446744073709551615], dtype=torch.uint64)");
}

TEST(Unsigned, OperatorsThatPyTorchLacksAreRefusedByName) {
  EXPECT_THROW(most(kUInt16) + most(kUInt16), NotImplementedError);
  EXPECT_THROW(argmax(most(kUInt32)), NotImplementedError);
  EXPECT_THROW(promote(kUInt16, DType::I8), RuntimeError);
  EXPECT_EQ(promote(kUInt64, DType::F16), DType::F16);
}

TEST(Unsigned, ElementsAreSeenAsTheLanguageHasThem) {
  const Tensor x = most(kUInt32);
  EXPECT_EQ(x.data<uint32_t>()[2], ~uint32_t{0});
  EXPECT_EQ(most(kUInt16).data<uint16_t>()[0], 65535);
  EXPECT_EQ(x.sum().item<int64_t>(), int64_t{3} * 4294967295);
  EXPECT_EQ(x.to(DType::F64).to_doubles()[0], 4294967295.0);
}

}  // namespace
}  // namespace naru
