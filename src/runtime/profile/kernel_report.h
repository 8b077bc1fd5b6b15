// KernelReport: what interpreted kernels (docs/kernelcheck.md) did wrong, and how much they did.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace naru::runtime {

struct KernelFault {
  std::string kernel, kind;         // "race in a block"
  std::string file;                 // "kernel": the user's own source
  uint32_t line = 0;                // 0: unknown
  std::string source;               // the text of that line
  std::string thread, instruction;  // "thread (3, 0, 0) of block (0, 0, 0)"; "ld.shared.f32"
  std::string text;                 // what was wrong
  std::string made;                 // "add at train.py:9": the operator whose result the kernel writes, "" if unknown
  uint64_t times = 1;               // accesses with this fault
  // One sentence for an error.
  std::string sentence() const;
};

// Thread-safe.
class KernelReport {
 public:
  // While it collects, devices go on after a fault, and no error is raised.
  void collect(bool on) noexcept { collects_.store(on); }
  bool collects() const noexcept { return collects_.load(); }
  // One fault of each kind, kernel and line is kept; of others the times are added.
  void add(KernelFault fault);
  void count(const std::string& kernel, const std::vector<std::pair<const char*, double>>& figures);
  std::vector<KernelFault> faults() const;
  // By kernel: "launches", and the names of the figures.
  std::map<std::string, std::map<std::string, double>> figures() const;
  void clear();

 private:
  std::atomic<bool> collects_{false};
  mutable std::mutex mutex_;
  std::vector<KernelFault> faults_;
  std::map<std::string, std::map<std::string, double>> figures_;
};
KernelReport& kernel_report();

}  // namespace naru::runtime
