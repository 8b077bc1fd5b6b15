#include "backends/cpu/libraries/block_copy.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace naru::cpu {
namespace {

// Where a block layout has the element at these positions.
int64_t place_of(const BlockLayout& b, const Dims& at) {
  Dims outer = at;
  int64_t place = 0, step = 1;
  for (size_t i = b.inner.size(); i-- > 0;) {
    int64_t& o = outer[b.inner[i].dimension];
    place += o % b.inner[i].size * step;
    o /= b.inner[i].size, step *= b.inner[i].size;
  }
  for (size_t d = 0; d < at.size(); ++d) place += outer[d] * b.strides[d];
  return place;
}

// The layout with dense blocks, in order.
BlockLayout dense(const Dims& sizes, std::vector<BlockLayout::Block> inner) {
  BlockLayout b{sizes, Dims(sizes.size(), 0), std::move(inner)};
  int64_t step = 1;
  Dims outer = sizes;
  for (const auto& i : b.inner) step *= i.size, outer[i.dimension] /= i.size;
  for (size_t d = sizes.size(); d-- > 0; step *= outer[d]) b.strides[d] = step;
  return b;
}

template <class T>
void expect_right(const Dims& sizes, const Dims& strides, int64_t span, const BlockLayout& blocks) {
  const auto copy = BlockCopy::make(sizes, strides, blocks, sizeof(T));
  ASSERT_TRUE(copy.has_value());
  std::vector<T> array(static_cast<size_t>(span)), found(static_cast<size_t>(product(sizes))), back(array.size(), T(7));
  std::iota(array.begin(), array.end(), T(1));
  std::vector<char> scratch(copy->scratch_bytes());
  copy->to_blocks(reinterpret_cast<const char*>(array.data()), reinterpret_cast<char*>(found.data()), scratch.data());
  std::vector<T> wanted(back);
  Dims at(sizes.size(), 0);
  for (int64_t n = 0; n < product(sizes); ++n) {
    int64_t rest = n, from = 0;
    for (size_t d = sizes.size(); d-- > 0; rest /= sizes[d]) at[d] = rest % sizes[d], from += at[d] * strides[d];
    ASSERT_EQ(found[static_cast<size_t>(place_of(blocks, at))], array[static_cast<size_t>(from)]) << n;
    wanted[static_cast<size_t>(from)] = array[static_cast<size_t>(from)];
  }
  copy->from_blocks(reinterpret_cast<const char*>(found.data()), reinterpret_cast<char*>(back.data()), scratch.data());
  ASSERT_EQ(back, wanted);  // what lies between the array's elements is not touched
}

TEST(BlockCopy, copies_there_and_back_in_every_order_of_blocks) {
  std::mt19937 random(5);
  const auto draw = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random() % static_cast<uint32_t>(most - least + 1));
  };
  for (int round = 0; round < 300; ++round) {
    const int64_t size = draw(0, 1) ? 16 : 8;
    Dims sizes{draw(1, 3), draw(1, 3) * size};
    for (int64_t d = draw(1, 3); d > 0; --d) sizes.push_back(draw(1, 7));
    const int64_t positions = product(sizes) / sizes[0] / sizes[1];
    std::vector<BlockLayout::Block> inner{{size, 1}};
    const bool both = draw(0, 1) != 0;
    if (both) {
      sizes[0] *= size;
      inner.insert(draw(0, 1) ? inner.begin() : inner.end(), {size, 0});
    }
    // Of one dimension the other may lie anywhere.
    Dims strides(sizes.size(), 1);
    for (size_t d = sizes.size() - 1; d-- > 2;) strides[d] = strides[d + 1] * sizes[d + 1];
    strides[1] = positions + (both ? 0 : draw(0, 5));
    strides[0] = strides[1] * sizes[1] + draw(0, 9);
    SCOPED_TRACE(::testing::Message() << sizes.str() << ' ' << strides.str() << ' ' << size << (both ? " both" : ""));
    const int64_t span = strides[0] * sizes[0];
    round % 3 ? expect_right<float>(sizes, strides, span, dense(sizes, inner))
              : expect_right<uint16_t>(sizes, strides, span, dense(sizes, inner));
    if (HasFatalFailure()) return;
  }
}

// The layout with blocks of the first dimension within all others, channels behind positions: Acdb16a.
BlockLayout rows_within(const Dims& sizes, int64_t size) {
  BlockLayout b{sizes, Dims(sizes.size(), 0), {{size, 0}}};
  b.strides[1] = size;
  int64_t step = size * sizes[1];
  for (size_t d = sizes.size(); d-- > 2; step *= sizes[d]) b.strides[d] = step;
  b.strides[0] = step;
  return b;
}

TEST(BlockCopy, copies_arrays_whose_channels_are_dense) {
  std::mt19937 random(6);
  const auto draw = [&](int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random() % static_cast<uint32_t>(most - least + 1));
  };
  for (int round = 0; round < 300; ++round) {
    const int64_t size = draw(1, 4) * 8, kind = draw(0, 3);  // blocks of channels, of out alone, of both in either order
    Dims sizes{draw(1, 3) * (kind > 0 ? size : 1), kind == 1 ? draw(1, 40) : draw(1, 3) * size};
    for (int64_t d = draw(1, 3); d > 0; --d) sizes.push_back(draw(1, 5));
    Dims strides(sizes.size(), 1);
    int64_t step = sizes[1];
    for (size_t d = sizes.size(); d-- > 2; step *= sizes[d]) strides[d] = step;
    strides[0] = step + draw(0, 9);
    const std::vector<BlockLayout::Block> inner = kind == 0   ? std::vector<BlockLayout::Block>{{size, 1}}
                                                  : kind == 2 ? std::vector<BlockLayout::Block>{{size, 0}, {size, 1}}
                                                              : std::vector<BlockLayout::Block>{{size, 1}, {size, 0}};
    const BlockLayout blocks = kind == 1 ? rows_within(sizes, size) : dense(sizes, inner);
    SCOPED_TRACE(::testing::Message() << sizes.str() << ' ' << strides.str() << ' ' << size << " kind " << kind);
    round % 3 ? expect_right<float>(sizes, strides, strides[0] * sizes[0], blocks)
              : expect_right<uint16_t>(sizes, strides, strides[0] * sizes[0], blocks);
    if (HasFatalFailure()) return;
  }
}

TEST(BlockCopy, takes_no_other_layouts) {
  const Dims sizes{32, 32, 3, 3}, strides{288, 9, 3, 1};
  const auto takes = [&](const Dims& s, const BlockLayout& b) { return BlockCopy::make(sizes, s, b, 4).has_value(); };
  EXPECT_TRUE(takes(strides, dense(sizes, {{16, 1}, {16, 0}})));
  EXPECT_TRUE(takes({288, 1, 96, 32}, dense(sizes, {{16, 1}, {16, 0}})));   // channels last
  EXPECT_FALSE(takes({288, 1, 32, 96}, dense(sizes, {{16, 1}, {16, 0}})));  // with columns before rows
  EXPECT_FALSE(takes(strides, rows_within(sizes, 16)));
  EXPECT_FALSE(takes(strides, dense(sizes, {{8, 1}, {16, 0}, {2, 1}})));  // pairs within
  EXPECT_FALSE(takes(strides, dense(sizes, {{16, 0}})));                  // of the first dimension only
  EXPECT_FALSE(takes(strides, dense(sizes, {})));
  BlockLayout padded = dense({48, 32, 3, 3}, {{16, 1}, {16, 0}});
  EXPECT_FALSE(takes(strides, padded));
  BlockLayout turned = dense(sizes, {{16, 1}});
  std::swap(turned.strides[2], turned.strides[3]);
  EXPECT_FALSE(takes(strides, turned));
}

}  // namespace
}  // namespace naru::cpu
