#include "runtime/profile/kernel_report.h"

#include <fmt/format.h>

namespace naru::runtime {

std::string KernelFault::sentence() const {
  std::string s = fmt::format("{}: kernel '{}'", kind, kernel);
  if (line) s += fmt::format(", line {}", line);
  if (!source.empty()) s += fmt::format(" (`{}`)", source);
  s += fmt::format(", {}: {}", thread, text);
  if (!made.empty()) s += fmt::format(". The kernel computes {}", made);
  return s;
}

void KernelReport::add(KernelFault fault) {
  const std::lock_guard lock(mutex_);
  for (KernelFault& f : faults_)
    if (f.kernel == fault.kernel && f.kind == fault.kind && f.file == fault.file && f.line == fault.line && f.source == fault.source)
      return static_cast<void>(f.times += fault.times);
  faults_.push_back(std::move(fault));
}

void KernelReport::count(const std::string& kernel, const std::vector<std::pair<const char*, double>>& figures) {
  const std::lock_guard lock(mutex_);
  auto& row = figures_[kernel];
  row["launches"] += 1;
  for (const auto& [name, value] : figures) row[name] += value;
}

std::vector<KernelFault> KernelReport::faults() const {
  const std::lock_guard lock(mutex_);
  return faults_;
}

std::map<std::string, std::map<std::string, double>> KernelReport::figures() const {
  const std::lock_guard lock(mutex_);
  return figures_;
}

void KernelReport::clear() {
  const std::lock_guard lock(mutex_);
  faults_.clear(), figures_.clear();
}

KernelReport& kernel_report() {
  static auto* const report = new KernelReport;
  return *report;
}

}  // namespace naru::runtime
