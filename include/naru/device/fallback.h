// Fallback: what happens if a device does not support an operator: an error, or execution on cpu with copies in both directions, which is
// counted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "naru/device.h"

namespace naru {

enum class FallbackPolicy : uint8_t {
  Error,  // NotImplementedError at the call
  Warn,   // runs on cpu; a warning (see set_warner in naru/error.h) the first time for each operator
  Count,  // runs on cpu
};

// The policy for a kind of device: what set_fallback_policy set; else NARU_FALLBACK (error, warn or count); else warn for mps with
// PYTORCH_ENABLE_MPS_FALLBACK=1; else error. Reads the environment at each call. Throws RuntimeError if NARU_FALLBACK has another value.
FallbackPolicy fallback_policy(DeviceType kind);
// Sets the policy for all kinds; empty: the environment decides. Returns the previous setting.
std::optional<FallbackPolicy> set_fallback_policy(std::optional<FallbackPolicy> policy);

struct FallbackUse {
  std::string op;
  DeviceType kind;
  uint64_t calls = 0;
  uint64_t bytes = 0;       // copied in both directions
  double milliseconds = 0;  // of copies and computation
};
// The operators that ran on cpu because a device lacks them, those with the longest time first.
std::vector<FallbackUse> fallback_report();
void reset_fallback_report();

}  // namespace naru
