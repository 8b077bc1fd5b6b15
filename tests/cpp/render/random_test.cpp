// Random graphs, compiled for each instruction set, against the interpreter, bit for bit.
#include "render/random_graph.h"

namespace naru::test {
namespace {

TEST(NativeRandomGraphs, SmallOnesEqualTheInterpreter) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    const auto r = random_kernel(seed, 1 + static_cast<int>(seed % 12), 150, 1 + static_cast<int>(seed % 3));
    ASSERT_TRUE(agrees(r.kernel, r.inputs, r.params, static_cast<int64_t>(seed % 151), 7)) << "seed " << seed;
  }
}

TEST(NativeRandomGraphs, LargeOnesEqualTheInterpreter) {
  for (uint64_t seed = 1000; seed < 1200; ++seed) {
    const auto r = random_kernel(seed, 60, 200, 1 + static_cast<int>(seed % 6));
    ASSERT_TRUE(agrees(r.kernel, r.inputs, r.params, 65 + static_cast<int64_t>(seed % 136), -3)) << "seed " << seed;
  }
}

TEST(NativeRandomGraphs, VeryLargeOnesEqualTheInterpreter) {
  for (uint64_t seed = 2000; seed < 2006; ++seed) {
    const auto r = random_kernel(seed, 500, 100, 4);
    ASSERT_TRUE(agrees(r.kernel, r.inputs, r.params, 77)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace naru::test
