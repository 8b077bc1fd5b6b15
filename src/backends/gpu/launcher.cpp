#include "backends/gpu/launcher.h"

#include <array>
#include <cstring>

#include "naru/error.h"

namespace naru::backends::gpu {
void StreamLauncher::run(const ir::Instruction& instruction) {
  if (const auto* c = std::get_if<ir::CopyBytes>(&instruction)) return copy(*c);
  if (const auto* e = std::get_if<ir::Exchange>(&instruction)) {
    if (!only_prepares_) e->communicator->enqueue(e->calls, reinterpret_cast<uintptr_t>(stream_));
    return;
  }
  if (device_.run_by_library(instruction, *this)) return;
  render::c::run_any(instruction, *this);
}

void StreamLauncher::start(const render::c::Launch& launch) {
  constexpr size_t kMost = 32;
  const Driver& driver = device_.driver();
  const LaunchLimits& limits = driver.limits;
  if (launch.memory.size() > kMost)
    throw RuntimeError("{}: a kernel with {} pieces of memory; at most {} are allowed", driver.language, launch.memory.size(), kMost);
  if (launch.groups > limits.groups)
    throw RuntimeError("{}: a kernel of {} groups; at most {} are allowed", driver.language, launch.groups, limits.groups);
  if (launch.groups == 0) return;
  if (only_prepares_) return prepare(launch);
  Address memory[kMost + 1];
  void* parameters[kMost + 1];
  size_t n = 0;
  for (; n < launch.memory.size(); ++n) {
    memory[n] = address(launch.memory[n]);
    parameters[n] = &memory[n];
  }
  // Addresses need no offsets from the start of a block.
  std::memset(launch.arguments.data(), 0, n * 8);
  parameters[n] = launch.arguments.data();
  if (render::c::in_memory(n, launch.arguments.size(), device_.target())) {
    memory[n] = address(large_arguments(launch.arguments.data(), launch.arguments.size()));
    parameters[n] = &memory[n];
  }
  const bool three = launch.group3[0] > 0;
  const auto groups = three ? launch.groups3 : std::array<int64_t, 3>{launch.groups, 1, 1};
  const auto group = three ? launch.group3 : std::array{launch.group, 1, 1};
  if (groups[1] > limits.other_groups || groups[2] > limits.other_groups)
    throw RuntimeError("{}: a grid of {} x {} x {} groups; at most {} are allowed in the second and third dimension", driver.language,
                       groups[0], groups[1], groups[2], limits.other_groups);
  if (group[2] > limits.deepest)
    throw RuntimeError("{}: groups of {} x {} x {} items; at most {} are allowed in the third dimension", driver.language, group[0],
                       group[1], group[2], limits.deepest);
  if (limits.items > 0 && groups[0] > limits.items / group[0])
    throw RuntimeError("{}: a kernel of {} groups of {} items; at most {} items are allowed. Use smaller tensors, or work on parts of them",
                       driver.language, groups[0], group[0], limits.items);
  const auto u = [](int64_t n) { return static_cast<unsigned>(n); };
  device_.call(driver.launch, device_.kernel_of(launch), u(groups[0]), u(groups[1]), u(groups[2]), u(group[0]), u(group[1]), u(group[2]),
               u(launch.shared), stream_, parameters, nullptr);
}

void StreamLauncher::copy(const ir::CopyBytes& c) {
  if (c.bytes == 0) return;
  const Driver& driver = device_.driver();
  const bool from_here = c.source_device == device_.device(), to_here = c.target_device == device_.device();
  if (from_here && to_here) return copy_within(c);
  if (only_prepares_) return;
  if (to_here && c.source_device.is_cpu()) return device_.call(driver.copy_up, address(c.target), c.source, c.bytes, stream_);
  if (from_here && c.target_device.is_cpu()) return device_.call(driver.copy_down, c.target, address(c.source), c.bytes, stream_);
  if (!to_here || c.source_device.type != device_.device().type)
    throw RuntimeError("device {}: asked to copy from {} to {}", device_.device().str(), c.source_device.str(), c.target_device.str());
  device_.copy_from(devices_.at(c.source_device), c.target, c.source, c.bytes, stream_);
}

void StreamLauncher::copy_within(const ir::CopyBytes& c) {
  if (c.target == c.source) return;
  const auto copy = [&](const void* from, const void* to) {
    if (only_prepares_) return;
    device_.call(device_.driver().copy_within, address(to), address(from), c.bytes, stream_);
  };
  const auto *from = static_cast<const char*>(c.source), *to = static_cast<const char*>(c.target);
  const bool overlap = from < to + c.bytes && to < from + c.bytes;
  if (!overlap) return copy(from, to);
  void* const between = scratch(c.bytes);
  copy(from, between);
  copy(between, to);
}

}  // namespace naru::backends::gpu
