// Which virtual devices there are: NARU_VIRTUAL, or what the program asked for since.
#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "naru/error.h"
#include "runtime/gpu_driver.h"
#include "runtime/registry.h"
#include "runtime/streams.h"

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

// The variable that chooses among the devices of a kind, as for real ones.
const char* visible_variable(DeviceType kind) {
  return kind == DeviceType::Cuda ? "CUDA_VISIBLE_DEVICES" : kind == DeviceType::Rocm ? "HIP_VISIBLE_DEVICES" : nullptr;
}

// By kind: the numbers of the devices that can be used, in the order of their indices.
using Numbers = std::array<std::vector<int>, kDeviceTypes>;

Numbers all_of(const Counts& counts) {
  Numbers numbers;
  for (int t = 0; t < kDeviceTypes; ++t)
    for (int i = 0; i < counts[t]; ++i) numbers[t].push_back(i);
  return numbers;
}

// What NARU_VIRTUAL stands for: devices of the machine, among which the variables choose that choose among real ones.
struct Machine {
  Counts counts{};
  Numbers visible;
};
Machine read_machine() {
  const char* spec = std::getenv("NARU_VIRTUAL");
  Machine m;
  m.counts = parse(spec ? spec : "");
  m.visible = all_of(m.counts);
  for (int t = 0; t < kDeviceTypes; ++t) {
    const auto kind = static_cast<DeviceType>(t);
    const char* variable = visible_variable(kind);
    const char* list = variable ? std::getenv(variable) : nullptr;
    if (!list) continue;
    std::vector<std::string> uuids;
    for (int i = 0; i < m.counts[t]; ++i) uuids.push_back(virtual_uuid(kind, i));
    m.visible[t] = visible_devices(list, uuids);
  }
  return m;
}

struct State {
  std::mutex mutex;
  std::atomic<bool> known{false};
  Machine machine;
  Numbers numbers;
  std::array<std::atomic<int>, kDeviceTypes> counts{};  // how many numbers, to be read without the lock

  void set(Numbers n) {
    numbers = std::move(n);
    for (int t = 0; t < kDeviceTypes; ++t) counts[t].store(static_cast<int>(numbers[t].size()));
    known.store(true, std::memory_order_release);
  }
};
State& state() {
  static auto* s = new State;
  return *s;
}

// Reads the environment the first time.
State& initialised() {
  State& s = state();
  if (s.known.load(std::memory_order_acquire)) return s;
  const std::lock_guard lock(s.mutex);
  if (s.known.load(std::memory_order_relaxed)) return s;
  s.machine = read_machine();
  s.set(s.machine.visible);
  return s;
}

}  // namespace

int virtual_device_count(DeviceType kind) {
  return initialised().counts[static_cast<int>(kind)].load(std::memory_order_acquire);
}

int virtual_device_number(Device device) {
  State& s = initialised();
  const std::lock_guard lock(s.mutex);
  const std::vector<int>& numbers = s.numbers[static_cast<int>(device.type)];
  const auto i = static_cast<size_t>(device.index);
  return i < numbers.size() ? numbers[i] : device.index;  // one that has gone meanwhile
}

std::string virtual_uuid(DeviceType kind, int number) {
  return fmt::format("GPU-76697274-7561-6c00-{:04x}-{:012x}", static_cast<int>(kind), number);
}

Availability virtual_availability(DeviceType kind) {
  State& s = initialised();
  const std::lock_guard lock(s.mutex);
  const auto t = static_cast<size_t>(kind);
  if (!s.numbers[t].empty()) return {true, "", ""};
  if (s.machine.counts[t] == 0 || !s.machine.visible[t].empty()) return {};
  const char* variable = visible_variable(kind);
  const char* value = std::getenv(variable);
  return unavailable(DriverState::Hidden, {{"variable", variable},
                                           {"value", value && *value ? value : "\"\""},
                                           {"detail", fmt::format("; NARU_VIRTUAL gives {}", s.machine.counts[t])}});
}

void set_virtual_devices(const std::string& spec) {
  const Counts counts = parse(spec);
  try {
    initialised();
  } catch (const Error&) {  // NARU_VIRTUAL can't be read, and is no longer needed
  }
  State& s = state();
  Numbers numbers = all_of(counts);
  // What is left as the environment has it stays as the environment has it.
  for (int t = 0; t < kDeviceTypes; ++t)
    if (counts[t] == s.machine.counts[t]) numbers[t] = s.machine.visible[t];
  // Work on devices that go ends first.
  if (s.known.load(std::memory_order_acquire))
    for (int t = 1; t < kDeviceTypes; ++t)
      if (static_cast<int>(numbers[t].size()) < s.counts[t].load()) retire_queues(static_cast<DeviceType>(t));
  const std::lock_guard lock(s.mutex);
  s.set(std::move(numbers));
  forget_virtual_checks();
}

}  // namespace naru::runtime
