// Source locations in errors, memory profiles and synchronization reports. Tests are compiled like the library; this one like a user's program.
#undef NARU_LIBRARY
#include "naru/source_location.h"

#include <gtest/gtest.h>

#include "naru/device/devices.h"
#include "naru/device/memory.h"
#include "naru/device/sync.h"
#include "naru/device/virtual.h"
#include "naru/io.h"
#include "naru/nn.h"
#include "naru/ops.h"

namespace naru {
namespace {

std::string line(unsigned n) { return "source_location_test.cpp:" + std::to_string(n); }

template <class E = RuntimeError, class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "no error";
}
bool names(const std::string& text, unsigned n) { return text.find(" (at " + line(n) + ")") != std::string::npos; }

TEST(Places, ErrorsOfSeldomCallsNameTheCaller) {
  const Tensor x = ones({2, 3});
  const auto with_line = [&](auto f, unsigned n) { EXPECT_TRUE(names(error_of(f), n)) << error_of(f); };
  with_line([&] { x.item<float>(); }, __LINE__);
  with_line([&] { x.data<double>(); }, __LINE__);
  with_line([&] { x.accessor<float, 1>(); }, __LINE__);
  with_line([&] { x.t().span<float>(); }, __LINE__);
  with_line([&] { x.backward(); }, __LINE__);
  with_line([&] { load("/nowhere/x.pt"); }, __LINE__);
  with_line([&] { nn::Linear(2, 2).load_state_dict({}); }, __LINE__);
  with_line([&] { full({}, 300).item<int8_t>(); }, __LINE__);
  with_line([&] { x[0][0].to(Device("cuda:77")); }, __LINE__);
  EXPECT_TRUE(names(error_of<IndexError>([&] { x.index({5}); }), __LINE__));
  EXPECT_TRUE(names(error_of<IndexError>([&] { x.index_put_({0, 9}, 1); }), __LINE__));
}

TEST(Places, OperatorsHaveThatOfTheInnermostHere) {
  const Tensor x = ones({2, 3});
  const auto wrong = [&] { return error_of([&] { matmul(x, x); }); };
  EXPECT_EQ(wrong().find(" (at "), std::string::npos);
  {
    const SourceLocationScope outer;
    const unsigned n = __LINE__ - 1;
    EXPECT_TRUE(names(wrong(), n)) << wrong();
    {
      const SourceLocationScope inner;
      EXPECT_TRUE(names(wrong(), __LINE__ - 1)) << wrong();
    }
    EXPECT_TRUE(names(wrong(), n));
    const std::string exact = error_of([&] { x.item<int>(); });
    EXPECT_TRUE(names(exact, __LINE__ - 1) && !names(exact, n)) << exact;
  }
  EXPECT_EQ(wrong().find(" (at "), std::string::npos);
}

TEST(Places, HoldersOfMemoryAndSynchronizationsHaveOne) {
  const VirtualDevices devices(DeviceType::Cuda, {.memory = size_t{16} << 20});
  const Device cuda(DeviceType::Cuda, 0);
  std::vector<Tensor> kept;
  unsigned made = 0;
  {
    const SourceLocationScope here;
    made = __LINE__ - 1;
    kept.push_back(zeros({600'000}, cuda));
    synchronize(cuda);
  }
  kept.push_back(ones({100'000}).to(cuda));
  const unsigned moved = __LINE__ - 1;
  const std::string text = error_of<OutOfMemoryError>([&] { kept.push_back(zeros({4'000'000}, cuda) + 1), synchronize(cuda); });
  EXPECT_NE(text.find(" at " + line(made) + "\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" at " + line(moved) + "\n"), std::string::npos) << text;
  const CountSyncs syncs;
  const SourceLocationScope here;
  kept[0].cpu();
  ASSERT_FALSE(syncs.list().empty());
  EXPECT_EQ(syncs.list()[0].where, line(__LINE__ - 2));
}

}  // namespace
}  // namespace naru
