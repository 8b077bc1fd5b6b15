#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <set>

#include "naru/device/virtual.h"
#include "naru/error.h"

namespace naru {
namespace {

[[noreturn]] void raise(std::string_view name, std::string_view value, const char* wanted) {
  throw RuntimeError("virtual devices: {}: wanted {}, got '{}'", name, wanted, value);
}

// Parses a number at the start of `text` and removes it.
template <class T>
bool take_number(std::string_view& text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

double size_of_text(std::string_view name, std::string_view value) {
  constexpr const char* kWanted = "a size, as in 512M or 64MiB";
  std::string_view rest = value;
  double n = 0;
  if (!take_number(rest, n) || n < 0) raise(name, value, kWanted);
  if (rest.ends_with("/s")) rest.remove_suffix(2);
  if (rest.ends_with("iB"))
    rest.remove_suffix(2);
  else if (rest.ends_with("B"))
    rest.remove_suffix(1);
  if (rest.empty()) return n;
  const size_t power = std::string_view("KMGT").find(rest);
  if (rest.size() != 1 || power == std::string_view::npos) raise(name, value, kWanted);
  for (size_t i = 0; i <= power; ++i) n *= 1024;
  return n;
}

double seconds_of_text(std::string_view name, std::string_view value) {
  std::string_view rest = value;
  double n = 0;
  if (take_number(rest, n) && n >= 0) {
    if (rest.empty() || rest == "s") return n;
    if (rest == "ms") return n * 1e-3;
    if (rest == "us") return n * 1e-6;
  }
  raise(name, value, "a time, as in 3ms, 50us or 0.5s");
}

uint64_t count_of_text(std::string_view name, std::string_view value) {
  std::string_view rest = value;
  uint64_t n = 0;
  if (!take_number(rest, n) || !rest.empty()) raise(name, value, "a number, counted from 1 (0: never)");
  return n;
}

void set_option(VirtualOptions& o, std::string_view name, std::string_view value) {
  if (name == "memory") {
    o.memory = static_cast<size_t>(size_of_text(name, value));
    if (o.memory == 0) raise(name, value, "a size above 0");
  } else if (name == "copy_delay") {
    o.copy_delay = seconds_of_text(name, value);
  } else if (name == "launch_delay") {
    o.launch_delay = seconds_of_text(name, value);
  } else if (name == "bandwidth") {
    o.bandwidth = size_of_text(name, value);
  } else if (name == "peer") {
    if (value == "on")
      o.peer = PeerAccess::On;
    else if (value == "off")
      o.peer = PeerAccess::Off;
    else if (value == "corrupt")
      o.peer = PeerAccess::Corrupt;
    else
      raise(name, value, "on, off or corrupt");
  } else if (name == "unified") {
    if (value != "True" && value != "False") raise(name, value, "True or False");
    o.unified = value == "True";
  } else if (name == "fail_allocation") {
    o.fail_allocation = count_of_text(name, value);
  } else if (name == "fail_driver_allocation") {
    o.fail_driver_allocation = count_of_text(name, value);
  } else if (name == "fail_copy") {
    o.fail_copy = count_of_text(name, value);
  } else if (name == "fail_launch") {
    o.fail_launch = count_of_text(name, value);
  } else if (name == "lose_after") {
    o.lose_after = count_of_text(name, value);
  } else if (name == "execute") {
    if (value != "ptx" && value != "host") raise(name, value, "ptx (kernels as NVRTC compiles them, checked) or host");
    o.ptx = value == "ptx";
  } else if (name == "without") {
    while (!value.empty()) {
      const size_t plus = value.find('+');
      if (plus != 0) o.without.emplace_back(value.substr(0, plus));
      value = plus == std::string_view::npos ? std::string_view() : value.substr(plus + 1);
    }
  } else {
    throw RuntimeError(
        "virtual devices: no option '{}'; there are memory, copy_delay, launch_delay, bandwidth, peer, fail_allocation, "
        "fail_driver_allocation, fail_copy, fail_launch, lose_after, unified, without and execute",
        name);
  }
}

std::string_view stripped(std::string_view s) {
  while (s.starts_with(' ')) s.remove_prefix(1);
  while (s.ends_with(' ')) s.remove_suffix(1);
  return s;
}

}  // namespace

VirtualOptions parse_virtual_options(std::string_view text, int count) {
  VirtualOptions o;
  o.count = count;
  if (const char* memory = std::getenv("NARU_VIRTUAL_MEMORY"); memory && *memory) set_option(o, "memory", memory);
  while (!text.empty()) {
    const size_t end = text.find(';');
    const std::string_view part = stripped(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) raise("an option", part, "name=value");
    set_option(o, stripped(part.substr(0, equals)), stripped(part.substr(equals + 1)));
  }
  return o;
}

std::string to_text(const VirtualOptions& o) {
  std::string text = fmt::format("memory={}", o.memory);
  const auto add = [&](const char* name, auto value) {
    if (value != 0) text += fmt::format(";{}={}", name, value);
  };
  add("copy_delay", o.copy_delay), add("launch_delay", o.launch_delay), add("bandwidth", o.bandwidth);
  if (o.peer != PeerAccess::On) text += o.peer == PeerAccess::Off ? ";peer=off" : ";peer=corrupt";
  add("fail_allocation", o.fail_allocation), add("fail_driver_allocation", o.fail_driver_allocation);
  add("fail_copy", o.fail_copy), add("fail_launch", o.fail_launch), add("lose_after", o.lose_after);
  if (o.unified) text += ";unified=True";
  if (o.ptx) text += ";execute=ptx";
  if (const std::set<std::string> names(o.without.begin(), o.without.end()); !names.empty())
    text += fmt::format(";without={}", fmt::join(names, "+"));
  return text;
}

bool VirtualOptions::operator==(const VirtualOptions& other) const { return count == other.count && to_text(*this) == to_text(other); }

}  // namespace naru
