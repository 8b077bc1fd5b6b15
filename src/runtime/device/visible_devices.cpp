#include <algorithm>
#include <charconv>

#include "runtime/device/gpu_driver.h"

namespace naru::runtime {
namespace {

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

// The index of the device that an entry names, or -1.
int named(std::string_view entry, std::span<const std::string> uuids) {
  int index = -1;
  const auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), index);
  if (error == std::errc() && end == entry.data() + entry.size())
    return index >= 0 && static_cast<size_t>(index) < uuids.size() ? index : -1;
  int found = -1;
  for (size_t i = 0; i < uuids.size(); ++i) {
    if (entry.empty() || !uuids[i].starts_with(entry)) continue;
    if (found >= 0) return -1;
    found = static_cast<int>(i);
  }
  return found;
}

}  // namespace

std::vector<int> visible_devices(std::string_view list, std::span<const std::string> uuids) {
  std::vector<int> chosen;
  for (bool more = true; more;) {
    const size_t comma = list.find(',');
    more = comma != std::string_view::npos;
    const int index = named(trimmed(list.substr(0, comma)), uuids);
    if (index < 0) break;
    if (std::find(chosen.begin(), chosen.end(), index) != chosen.end()) return {};
    chosen.push_back(index);
    if (more) list.remove_prefix(comma + 1);
  }
  return chosen;
}

}  // namespace naru::runtime
