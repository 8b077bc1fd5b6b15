// The current virtual devices: from NARU_VIRTUAL, or as set by the program since.
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "core/device_kinds.h"
#include "naru/device/virtual.h"
#include "naru/error.h"
#include "runtime/device/gpu_driver.h"
#include "runtime/device/peer.h"
#include "runtime/device/registry.h"
#include "runtime/queue/streams.h"

namespace naru::runtime {
namespace {

constexpr int kMost = 32;
// By kind; the count is 0 if there are none.
using Kinds = std::array<VirtualOptions, kDeviceTypes>;

[[noreturn]] void raise_bad(std::string_view spec, const std::string& why) {
  throw RuntimeError(
      "NARU_VIRTUAL: {}; got '{}'. Wanted kinds and numbers, with settings in parentheses, as in cuda:4,mps:1 or "
      "cuda:2(memory=64MiB;copy_delay=3ms)",
      why, spec);
}

Kinds no_kinds() {
  Kinds kinds;
  for (VirtualOptions& o : kinds) o.count = 0;
  return kinds;
}

// "cuda:4(memory=64MiB;copy_delay=3ms),mps:1".
Kinds parse(std::string_view spec) {
  Kinds kinds = no_kinds();
  std::string_view rest = spec;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    std::string_view item = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    while (!item.empty() && item.front() == ' ') item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ') item.remove_suffix(1);
    if (item.empty()) raise_bad(spec, "an entry is empty");
    std::string_view options;
    if (const size_t open = item.find('('); open != std::string_view::npos) {
      if (item.back() != ')') raise_bad(spec, "a parenthesis is not closed");
      options = item.substr(open + 1, item.size() - open - 2);
      item = item.substr(0, open);
    }
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
    for (const DeviceKind& k : accelerator_kinds()) {
      if (kind != k.name) continue;
      VirtualOptions& o = kinds[static_cast<size_t>(k.type)];
      o = parse_virtual_options(options, n), known = true;
      if (o.ptx && k.type != DeviceType::Cuda)
        raise_bad(spec, fmt::format("execute=ptx is for cuda, whose kernels are PTX, and not for '{}'", k.name));
    }
    if (!known && item.find('=') != std::string_view::npos) raise_bad(spec, fmt::format("'{}' is a setting outside of parentheses", item));
    if (!known) raise_bad(spec, fmt::format("'{}' is not a kind of device that can be virtual ({})", kind, names_of(accelerator_kinds())));
  }
  return kinds;
}

std::string text_of(const Kinds& kinds) {
  std::string text;
  for (int t = 1; t < kDeviceTypes; ++t)
    if (kinds[t].count)
      text += fmt::format("{}{}:{}({})", text.empty() ? "" : ",", name_of(static_cast<DeviceType>(t)), kinds[t].count, to_text(kinds[t]));
  return text;
}

// By kind: the physical numbers of the visible devices, in the order of their indices.
using Numbers = std::array<std::vector<int>, kDeviceTypes>;

Numbers all_of(const Kinds& kinds) {
  Numbers numbers;
  for (int t = 0; t < kDeviceTypes; ++t)
    for (int i = 0; i < kinds[t].count; ++i) numbers[t].push_back(i);
  return numbers;
}

// The devices that NARU_VIRTUAL defines, and those of them that variables such as CUDA_VISIBLE_DEVICES leave visible.
struct Machine {
  Kinds kinds = no_kinds();
  Numbers visible;
};
Machine read_machine() {
  const char* spec = std::getenv("NARU_VIRTUAL");
  Machine m;
  m.kinds = parse(spec ? spec : "");
  m.visible = all_of(m.kinds);
  for (int t = 0; t < kDeviceTypes; ++t) {
    const auto kind = static_cast<DeviceType>(t);
    const char* variable = kind_of(kind).visible;
    const char* list = variable ? std::getenv(variable) : nullptr;
    if (!list) continue;
    std::vector<std::string> uuids;
    for (int i = 0; i < m.kinds[t].count; ++i) uuids.push_back(virtual_uuid(kind, i));
    m.visible[t] = visible_devices(list, uuids);
  }
  return m;
}

struct State {
  std::mutex mutex;
  std::atomic<bool> known{false};
  Machine machine;
  Kinds kinds;
  Numbers numbers;
  std::array<std::atomic<uint64_t>, kDeviceTypes> generations{};
  std::array<std::atomic<int>, kDeviceTypes> counts{};  // sizes of `numbers`, readable without the lock

  void set(Kinds k, Numbers n) {
    kinds = std::move(k);
    numbers = std::move(n);
    for (int t = 0; t < kDeviceTypes; ++t) counts[t].store(static_cast<int>(numbers[t].size()));
    known.store(true, std::memory_order_release);
  }
};
State& state() {
  static auto* s = new State;
  return *s;
}

// Reads the environment at the first call.
State& initialised() {
  State& s = state();
  if (s.known.load(std::memory_order_acquire)) return s;
  const std::lock_guard lock(s.mutex);
  if (s.known.load(std::memory_order_relaxed)) return s;
  s.machine = read_machine();
  s.set(s.machine.kinds, s.machine.visible);
  return s;
}

}  // namespace

int virtual_device_count(DeviceType kind) { return initialised().counts[static_cast<int>(kind)].load(std::memory_order_acquire); }

int virtual_device_number(Device device) {
  State& s = initialised();
  const std::lock_guard lock(s.mutex);
  const std::vector<int>& numbers = s.numbers[static_cast<int>(device.type)];
  const auto i = static_cast<size_t>(device.index);
  return i < numbers.size() ? numbers[i] : device.index;  // the device was removed meanwhile
}

std::string virtual_uuid(DeviceType kind, int number) {
  return fmt::format("GPU-76697274-7561-6c00-{:04x}-{:012x}", static_cast<int>(kind), number);
}

Availability virtual_availability(DeviceType kind) {
  State& s = initialised();
  const std::lock_guard lock(s.mutex);
  const auto t = static_cast<size_t>(kind);
  if (!s.numbers[t].empty()) return {true, "", ""};
  if (s.machine.kinds[t].count == 0 || !s.machine.visible[t].empty()) return {};
  const char* variable = kind_of(kind).visible;
  const char* value = std::getenv(variable);
  return unavailable(DriverState::Hidden, {{"variable", variable},
                                           {"value", value && *value ? value : "\"\""},
                                           {"detail", fmt::format("; NARU_VIRTUAL gives {}", s.machine.kinds[t].count)}});
}

VirtualOptions virtual_options(DeviceType kind) {
  State& s = initialised();
  const std::lock_guard lock(s.mutex);
  return s.kinds[static_cast<size_t>(kind)];
}

uint64_t virtual_generation(DeviceType kind) noexcept {
  return state().generations[static_cast<size_t>(kind)].load(std::memory_order_acquire);
}

std::string virtual_devices() {
  State& s = initialised();
  const std::lock_guard lock(s.mutex);
  return text_of(s.kinds);
}

void set_virtual_devices(const std::string& spec) {
  Kinds kinds = parse(spec);
  try {
    initialised();
  } catch (const Error&) {  // NARU_VIRTUAL is malformed, but no longer used
  }
  State& s = state();
  Numbers numbers = all_of(kinds);
  // A kind whose definition still equals the environment's keeps the environment's visible devices.
  for (int t = 0; t < kDeviceTypes; ++t)
    if (kinds[t] == s.machine.kinds[t]) numbers[t] = s.machine.visible[t];
  // First finish the work on removed devices. Devices with other options are new ones, with their own memory.
  if (s.known.load(std::memory_order_acquire))
    for (int t = 1; t < kDeviceTypes; ++t) {
      VirtualOptions others = kinds[t];
      others.count = s.kinds[t].count;
      const bool replaced = kinds[t].count && s.kinds[t].count && !(others == s.kinds[t]);
      const auto kind = static_cast<DeviceType>(t);
      // Virtual devices hide the real ones of their kind.
      const bool in_place_of_real = s.counts[t].load() == 0 && !numbers[t].empty();
      if (replaced || in_place_of_real || static_cast<int>(numbers[t].size()) < s.counts[t].load()) retire_queues(kind);
      if (in_place_of_real) forget_peers();
      if (replaced || (s.kinds[t].count && !kinds[t].count)) retire_devices(kind), ++s.generations[t];
    }
  const std::lock_guard lock(s.mutex);
  s.set(std::move(kinds), std::move(numbers));
  forget_virtual_checks();
}

}  // namespace naru::runtime

namespace naru {

VirtualDevices::VirtualDevices(DeviceType kind, const VirtualOptions& options) : before_(runtime::virtual_devices()) {
  runtime::Kinds kinds = runtime::parse(before_);
  kinds[static_cast<size_t>(kind)] = options;
  runtime::set_virtual_devices(runtime::text_of(kinds));
}
VirtualDevices::~VirtualDevices() {
  try {
    runtime::set_virtual_devices(before_);
  } catch (const Error&) {
    // Can't fail: the same text was accepted before.
  }
}

}  // namespace naru
