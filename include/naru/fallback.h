// Fallback: what happens when a device does not support an operator. It can be an error, or run on the cpu with copies there and back, which is counted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "naru/device.h"

namespace naru {

enum class FallbackPolicy : uint8_t {
  Error,  // NotImplementedError at the call
  Warn,   // runs on the cpu; a warning (see set_warner in naru/error.h) the first time for each operator
  Count,  // runs on the cpu
};

// What holds for a kind of device now: what set_fallback_policy said; else NARU_FALLBACK (error, warn or count); else, for mps,
// PYTORCH_ENABLE_MPS_FALLBACK=1 means warn; else error. The environment is read at each call. Throws RuntimeError for another word.
FallbackPolicy fallback_policy(DeviceType kind);
// For all kinds; nothing: as the environment says. Returns what was set.
std::optional<FallbackPolicy> set_fallback_policy(std::optional<FallbackPolicy> policy);

struct FallbackUse {
  std::string op;
  DeviceType kind;
  uint64_t calls = 0;
  uint64_t bytes = 0;       // copied there and back
  double milliseconds = 0;  // copies and work
};
// What ran on the cpu for want of a device's operator so far, the longest first.
std::vector<FallbackUse> fallback_report();
void reset_fallback_report();

}  // namespace naru
