// Graphs: equal nodes are stored once, redundant conversions are dropped, literals get the type of the other operand.
#include "ir/expr.h"

#include <gtest/gtest.h>

#include <bit>

namespace naru::ir {
namespace {

TEST(Graph, StoresEqualNodesOnce) {
  Graph g;
  const V x = input(g, 0, DType::F32);
  const V a = x * 2 + 1, b = x * 2 + 1;
  EXPECT_EQ(a.id(), b.id());
  EXPECT_NE((x * 3).id(), (x * 2).id());
  EXPECT_NE(input(g, 1, DType::F32).id(), x.id());
  EXPECT_EQ(input(g, 0, DType::F32).id(), x.id());
}

TEST(Graph, KeepsOperandsBeforeTheirUsers) {
  Graph g;
  const V x = input(g, 0, DType::F64);
  where(x > 0.0, sqrt(x), fma(x, x, 1.0));
  for (uint32_t i = 0; i < g.nodes().size(); ++i)
    for (const uint32_t operand : {g[i].a, g[i].b, g[i].c}) EXPECT_TRUE(operand == kNoNode || operand < i);
}

TEST(Graph, TellsConstantsOfDifferentSignApart) {
  Graph g;
  const V x = input(g, 0, DType::F32);
  EXPECT_NE(x.lit(0.0).id(), x.lit(-0.0).id());
}

TEST(Graph, DropsConversionsThatChangeNothing) {
  Graph g;
  for (const DType t :
       {DType::Bool, DType::U8, DType::I8, DType::I16, DType::I32, DType::I64, DType::F16, DType::BF16, DType::F32, DType::F64}) {
    const V x = input(g, static_cast<uint64_t>(t), t);
    EXPECT_EQ(convert(x, t).id(), x.id()) << name_of(t);
  }
  const V half = input(g, 20, DType::F16), byte = input(g, 21, DType::U8), flag = input(g, 22, DType::Bool);
  EXPECT_EQ(convert(half, DType::F32).id(), half.id());
  EXPECT_EQ(convert(byte, DType::I16).id(), byte.id());
  EXPECT_EQ(convert(convert(half * 2, DType::BF16), DType::F32).id(), convert(half * 2, DType::BF16).id());
  EXPECT_EQ(convert(convert(flag, DType::F32), DType::Bool).id(), flag.id());
}

TEST(Graph, KeepsConversionsThatChangeValues) {
  Graph g;
  const V half = input(g, 0, DType::F16), byte = input(g, 1, DType::U8), small = input(g, 2, DType::I8);
  EXPECT_NE(convert(half + half, DType::F16).id(), (half + half).id());
  EXPECT_NE(convert(half, DType::BF16).id(), half.id());
  EXPECT_NE(convert(byte, DType::I8).id(), byte.id());
  EXPECT_NE(convert(small, DType::U8).id(), small.id());
  EXPECT_NE(convert(convert(byte, DType::Bool), DType::I32).id(), byte.id());
}

TEST(Builder, GivesLiteralsTheOtherOperandsType) {
  Graph g;
  const V f = input(g, 0, DType::F16), d = input(g, 1, DType::F64), i = input(g, 2, DType::I64);
  EXPECT_EQ(g[(0.1 + f).id()].type, VType::F32);
  EXPECT_EQ(f.lit(0.1).graph()[f.lit(0.1).id()].bits, std::bit_cast<uint32_t>(0.1f));
  EXPECT_EQ(g[d.lit(0.1).id()].bits, std::bit_cast<uint64_t>(0.1));
  EXPECT_EQ(g[i.lit(-3).id()].bits, static_cast<uint64_t>(-3));
  EXPECT_EQ((i + 1).type(), VType::I64);
  EXPECT_EQ((d < 1.0).type(), VType::Bool);
}

TEST(Builder, WritesGreaterAsLessWithSwappedOperands) {
  Graph g;
  const V a = input(g, 0, DType::F32), b = input(g, 1, DType::F32);
  EXPECT_EQ((a > b).id(), (b < a).id());
  EXPECT_EQ((a >= b).id(), (b <= a).id());
  EXPECT_EQ(isnan(a).id(), (a != a).id());
}

}  // namespace
}  // namespace naru::ir
