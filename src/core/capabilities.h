// Capabilities: what a device supports, as data. Fallback, coverage, the queue and the renderers decide by this alone.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "naru/dtype.h"

namespace naru {

// Arithmetic of the device. Operations that results depend on must be exact by IEEE 754; otherwise the device is not used.
struct Arithmetic {
  bool fp64 = true;                               // in hardware; if not, what operators on other dtypes compute in it is done in integers
  bool exact_division = true, exact_root = true;  // float32 operations are correctly rounded; if not, they are computed in float64
  bool exact_fma = true;                          // rounded only once
  // float32 operations keep denormal operands and results. If not, they may count as zero; all other bits are the same.
  bool denormals = true;
  bool atomics = true;  // 32-bit, in device memory
};

// The feature that the device lacks to give naru's results: "atomic operations"; "": nothing.
std::string_view missing_in(const Arithmetic& arithmetic) noexcept;

class Capabilities {
 public:
  Arithmetic arithmetic;
  bool unified_memory = false;     // the host may use its addresses after pending work has finished
  bool row_fused = false;          // it supports ir::RowFused
  int64_t longest_chosen_row = 0;  // elements at most of a row, where such work is for some of the rows only
  bool maps_each = false;          // it supports ir::MapEach
  bool reduces_together = false;   // it computes several results of an ir::Reduce in one pass
  bool cuda_source = false;        // it accepts user kernels in CUDA C++ without translation
  bool elements = true;            // tensors have elements, not only shapes (false: meta)
  bool library_products = false;   // vendor libraries compute matrix products, with other rounding, unless deterministic mode is on

  // Marks a dtype, or an operator by name (ir/addresses.h; "*": all), as unsupported.
  void exclude(DType type) { dtypes_ &= ~bit(type); }
  void exclude(std::string_view op) { unsupported_.emplace(op); }
  // The same for operators of instructions that only the host runs (ir/inspect.h). A separate set, checked only for such instructions.
  void exclude_host_only(std::string_view op) { host_only_.emplace(op); }

  bool supports(DType type) const noexcept { return (dtypes_ & bit(type)) != 0; }
  bool supports(std::string_view op) const {
    return (unsupported_.empty() || !(unsupported_.contains(op) || unsupported_.contains("*"))) &&
           (host_only_.empty() || !host_only_.contains(op));
  }
  // True if nothing is excluded, apart from the host-only instructions.
  bool supports_everything() const noexcept { return dtypes_ == ~uint64_t{0} && unsupported_.empty(); }

 private:
  static constexpr uint64_t bit(DType type) noexcept { return uint64_t{1} << static_cast<int>(type); }
  uint64_t dtypes_ = ~uint64_t{0};
  std::set<std::string, std::less<>> unsupported_, host_only_;
};

}  // namespace naru
