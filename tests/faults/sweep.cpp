#include <fmt/format.h>

#include "sweep.h"

#include <gtest/gtest.h>

#include <bit>
#include <new>

#include "naru/device/devices.h"
#include "naru/error.h"
#include "runtime/memory/memory.h"

namespace naru::faults {
namespace {

bool same_bits(const Values& a, const Values& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size()) return false;
    for (size_t k = 0; k < a[i].size(); ++k)
      if (std::bit_cast<uint64_t>(a[i][k]) != std::bit_cast<uint64_t>(b[i][k])) return false;
  }
  return true;
}

// Runs `f`; returns the text of its exception, or an empty string.
template <class F>
std::string attempt(const F& f) {
  try {
    f();
    return "";
  } catch (const Error& e) {
    const std::string text = e.what();
    EXPECT_EQ(text.find("std::"), std::string::npos) << text;
    return text.empty() ? "an error without words" : text;
  } catch (const std::bad_alloc&) {
    return "bad_alloc";
  }
}

size_t in_use(Device device) { return runtime::memory_stats(device).allocated() + runtime::memory_stats(Device("cpu")).allocated(); }

}  // namespace

void settle(Device device) {
  for (const Device d : {device, Device("cpu")})
    for (int i = 0; i < 10; ++i)
      if (attempt([&] { synchronize(d); }).empty()) break;
}

uint64_t sweep(const Step& step, Device device, const Fault& fault, std::optional<uint64_t> last) {
  static uint64_t variants = 0;
  variant = ++variants;
  const Values right = step.make(device)();
  settle(device);
  constexpr uint64_t kMost = 100000;
  for (uint64_t n = 1; n <= last.value_or(kMost); ++n) {
    SCOPED_TRACE(fmt::format("{} on {}, number {}", step.name, device.str(), n));
    variant = ++variants;
    const size_t before = in_use(device);
    bool failed = false;
    {
      Once once;
      Values got;
      fault.arm(n);
      std::string trouble = attempt([&] {
        Once made = step.make(device);
        synchronize(device);  // allocations of the setup are not counted
        once = std::move(made);
        got = once();
        synchronize(device);
      });
      failed = fault.disarm(trouble);
      EXPECT_TRUE(failed || trouble.empty()) << trouble;
      EXPECT_TRUE(!trouble.empty() || same_bits(got, right)) << "no error, and other bits";
      settle(device);
      if (!failed) return n - 1;
      if (once) {
        trouble = attempt([&] { got = once(); });
        EXPECT_EQ(trouble, "") << "what is left can't be used";
        EXPECT_TRUE(same_bits(got, right)) << "other bits from what is left";
      }
    }
    settle(device);
    EXPECT_EQ(in_use(device), before) << "memory was not given back";
    Values got;
    EXPECT_EQ(attempt([&] { got = step.make(device)(); }), "");
    EXPECT_TRUE(same_bits(got, right)) << "other bits from the same step";
    settle(device);
    if (::testing::Test::HasFailure()) return n;
  }
  EXPECT_TRUE(last) << step.name << " never ran through";
  return last.value_or(kMost);
}

}  // namespace naru::faults
