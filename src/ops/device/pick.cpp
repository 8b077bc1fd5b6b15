// Selection of a device: the best one, or one that meets the requirements.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>

#include "core/device_kinds.h"
#include "naru/device/devices.h"
#include "naru/error.h"
#include "runtime/device/registry.h"
#include "runtime/memory/allocator.h"
#include "runtime/queue/queue.h"

namespace naru {
namespace {

std::string lower(std::string s) {
  for (char& c : s) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return s;
}

// domain, bus, device, function; function is -1 if the text has none. Returns false if the text is not a PCI address.
using PciAddress = std::array<int, 4>;
bool read_pci(const std::string& text, PciAddress& address) {
  address[3] = -1;
  int short_end = 0, end = 0;
  auto* const a = reinterpret_cast<unsigned*>(address.data());
  std::sscanf(text.c_str(), "%x:%x:%x%n.%x%n", a, a + 1, a + 2, &short_end, a + 3, &end);
  const auto size = static_cast<int>(text.size());
  return size > 0 && (end == size || short_end == size);
}

struct Found {
  Device device;
  runtime::Properties properties;
  size_t free = 0;
};

// Bytes available for new tensors: free device memory plus the unused part of our own cache, within the limit if one is set.
size_t free_for_tensors(Device device) {
  const runtime::MemoryStats s = runtime::allocator_of(device).stats();
  const size_t free = runtime::free_memory(device) + (s.reserved() - s.allocated());
  return s.limit ? std::min(free, s.limit - std::min(s.limit, s.allocated())) : free;
}

bool fits(const Found& f, const PickOptions& wanted, const PciAddress& address) {
  if (f.free < wanted.free_memory) return false;
  if (!wanted.uuid.empty()) {
    const std::string uuid = lower(f.properties.uuid), text = lower(wanted.uuid);
    if (!uuid.starts_with(text) && !uuid.starts_with("gpu-" + text) && !uuid.starts_with("mig-" + text)) return false;
  }
  if (wanted.pci.empty()) return true;
  PciAddress mine;
  if (!read_pci(f.properties.pci, mine)) return false;
  if (address[3] < 0) mine[3] = -1;
  return mine == address;
}

std::string describe(const Found& f) {
  const runtime::Properties& p = f.properties;
  std::string text =
      fmt::format("{} ({}) has {} free of {}", f.device.str(), p.name, runtime::size_text(f.free), runtime::size_text(p.total_memory));
  if (!p.uuid.empty()) text += ", uuid " + p.uuid;
  if (!p.pci.empty()) text += ", pci " + p.pci;
  return text;
}

std::string describe(const PickOptions& wanted) {
  std::string text = wanted.kind ? fmt::format("a {} device", name_of(*wanted.kind)) : "a device beside the cpu";
  const char* with = " with ";
  const auto add = [&](const std::string& what) { text += with + what, with = ", "; };
  if (wanted.free_memory) add(runtime::size_text(wanted.free_memory) + " of free memory");
  if (!wanted.uuid.empty()) add("uuid " + wanted.uuid);
  if (!wanted.pci.empty()) add("pci " + wanted.pci);
  return text;
}

}  // namespace

BestDevice best_device() {
  BestDevice best{Device(DeviceType::Cpu), {}};
  for (const DeviceKind& k : accelerator_kinds()) {
    const DeviceType kind = k.type;
    const bool there = device_count(kind) > 0;
    if (there && best.device.is_cpu())
      best.device = Device(kind, 0);
    else
      best.others.emplace_back(kind,
                               there ? fmt::format("available, but {} comes before it", name_of(best.device.type)) : why_unavailable(kind));
  }
  return best;
}

Device pick(const PickOptions& wanted) {
  PciAddress address{};
  // An address with a single colon has no domain; use domain 0.
  const std::string pci = std::count(wanted.pci.begin(), wanted.pci.end(), ':') == 1 ? "0:" + wanted.pci : wanted.pci;
  if (!wanted.pci.empty() && !read_pci(pci, address))
    throw ValueError("pick: wanted a PCI address such as 0000:17:00.0 or 17:00.0, got '{}'", wanted.pci);
  std::string have;
  for (const DeviceKind& k : wanted.kind ? std::span(&kind_of(*wanted.kind), 1) : accelerator_kinds()) {
    const DeviceType kind = k.type;
    const int count = device_count(kind);
    if (count > 0) runtime::flush_all();
    std::optional<Found> best;
    for (int i = 0; i < count; ++i) {
      const Device device = runtime::resolve(Device(kind, i));
      Found f{device, runtime::properties(device), free_for_tensors(device)};
      have += fmt::format("\n  {}", describe(f));
      if (fits(f, wanted, address) && (!best || f.free > best->free)) best = std::move(f);
    }
    if (best) return best->device;
    if (count == 0) have += fmt::format("\n  {}: {}", name_of(kind), why_unavailable(kind));
  }
  throw DeviceUnavailableError("pick: there is no device that fits: wanted " + describe(wanted) + "; what there is:" + have);
}

}  // namespace naru
