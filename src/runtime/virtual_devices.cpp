// Which virtual devices there are: NARU_VIRTUAL, or what the program asked for since.
#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <mutex>

#include "naru/error.h"
#include "runtime/streams.h"
#include "runtime/registry.h"

namespace naru::runtime {
namespace {

constexpr int kMost = 32;
using Counts = std::array<int, kDeviceTypes>;

[[noreturn]] void raise_bad(std::string_view spec, const std::string& why) {
  throw RuntimeError("NARU_VIRTUAL: {}; got '{}'. Wanted kinds and numbers, as in cuda:4,mps:1", why, spec);
}

Counts parse(std::string_view spec) {
  Counts counts{};
  std::string_view rest = spec;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    std::string_view item = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    if (item.empty()) raise_bad(spec, "an entry is empty");
    const size_t colon = item.find(':');
    const std::string_view kind = item.substr(0, colon);
    int n = 1;
    if (colon != std::string_view::npos) {
      const std::string_view number = item.substr(colon + 1);
      const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), n);
      if (error != std::errc() || end != number.data() + number.size() || n < 0 || n > kMost)
        raise_bad(spec, fmt::format("'{}' is not a number from 0 to {}", number, kMost));
    }
    bool known = false;
    for (int t = 1; t < kDeviceTypes; ++t)
      if (kind == name_of(static_cast<DeviceType>(t))) counts[t] = n, known = true;
    if (!known)
      raise_bad(spec, fmt::format("'{}' is not a kind of device that can be virtual (cuda, rocm, mps, xpu)", kind));
  }
  return counts;
}

struct State {
  std::mutex mutex;
  std::atomic<bool> known{false};
  std::array<std::atomic<int>, kDeviceTypes> counts{};
};
State& state() {
  static auto* s = new State;
  return *s;
}

// Reads NARU_VIRTUAL the first time.
State& initialised() {
  State& s = state();
  if (s.known.load(std::memory_order_acquire)) return s;
  const std::lock_guard lock(s.mutex);
  if (s.known.load(std::memory_order_relaxed)) return s;
  const char* spec = std::getenv("NARU_VIRTUAL");
  const Counts counts = parse(spec ? spec : "");
  for (int t = 0; t < kDeviceTypes; ++t) s.counts[t].store(counts[t]);
  s.known.store(true, std::memory_order_release);
  return s;
}

}  // namespace

int virtual_device_count(DeviceType kind) {
  return initialised().counts[static_cast<int>(kind)].load(std::memory_order_acquire);
}

void set_virtual_devices(const std::string& spec) {
  const Counts counts = parse(spec);
  State& s = state();
  // Work on devices that go ends first.
  if (s.known.load(std::memory_order_acquire))
    for (int t = 1; t < kDeviceTypes; ++t)
      if (counts[t] < s.counts[t].load()) retire_queues(static_cast<DeviceType>(t));
  const std::lock_guard lock(s.mutex);
  for (int t = 0; t < kDeviceTypes; ++t) s.counts[t].store(counts[t]);
  s.known.store(true, std::memory_order_release);
}

}  // namespace naru::runtime
