#include "runtime/device/availability.h"

#include <fmt/args.h>
#include <fmt/ranges.h>

#include <set>

#include "naru/error.h"

namespace naru::runtime {
namespace {

struct Row {
  const char *name, *reason, *remedy;
};

// In the order of DriverState.
constexpr Row kTable[kDriverStates] = {
    {"works", "", ""},
    {"no library", "no driver library: {detail}", "Install {driver} ({install})"},
    {"driver too old", "{driver} is too old: it supports {have}, naru needs {need}", "Update {driver} to {version} or newer"},
    {"no device node", "{driver} is installed, but there is no {node}", "{load}"},
    {"hidden by environment", "{variable}={value} hides every device{detail}", "Unset {variable}, or let it name a device"},
    {"unsupported architecture", "{name} has {have}, and naru's kernels need {need}", "Use a newer device, or device 'cpu'"},
    {"initialisation error", "{function} failed with {code}: {cause}", "{cure}"},
    {"wrong numbers", "a kernel ran on {device} and gave wrong numbers: {detail}",
     "Update {driver}; `naru selftest {device}` shows which operators are wrong. Until then use device 'cpu'"},
    {"other system", "needs {system}",
     "Use another kind of device (`naru devices` lists them), or set NARU_VIRTUAL={kind}:1 for a virtual one"},
    {"no backend", "no backend of this build serves '{kind}'",
     "Use another kind of device (`naru devices` lists them), or set NARU_VIRTUAL={kind}:1 for a virtual one"},
};

const Row& row(DriverState state) { return kTable[static_cast<int>(state)]; }

}  // namespace

std::string_view name_of(DriverState state) noexcept { return row(state).name; }

Availability unavailable(DriverState state, Facts facts) {
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  for (const auto& [name, value] : facts) store.push_back(fmt::arg(name, value));
  try {
    return {false, fmt::vformat(row(state).reason, store), fmt::vformat(row(state).remedy, store), state};
  } catch (const fmt::format_error&) {
    throw RuntimeError("state '{}': wanted the facts {}", row(state).name, facts_of(state));
  }
}

std::string facts_of(DriverState state) {
  const std::string text = std::string(row(state).reason) + row(state).remedy;
  std::set<std::string> names;
  for (size_t open = text.find('{'); open != std::string::npos; open = text.find('{', open + 1))
    names.insert(text.substr(open + 1, text.find('}', open) - open - 1));
  return fmt::format("{}", fmt::join(names, " "));
}

}  // namespace naru::runtime
