// What a device can do, as data: fallback, coverage, the queue and the renderers decide by nothing else.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "naru/dtype.h"

namespace naru {

// How it computes. What an operator's result depends on is exact by IEEE 754, or the device is not used.
struct Arithmetic {
  bool fp64 = true;                               // operators on other types may compute in float64 inside
  bool exact_division = true, exact_root = true;  // of float32: correctly rounded; else they are taken in float64
  bool exact_fma = true;                          // rounded once
  bool denormals = true;                          // of float32
  bool atomics = true;                            // of 32 bits, in the device's memory
};

// What keeps a device that computes so from giving naru's results: "correctly rounded division"; "": nothing.
std::string_view missing_in(const Arithmetic& arithmetic) noexcept;

class Capabilities {
 public:
  Arithmetic arithmetic;
  bool unified_memory = false;    // the host may use its addresses, once work on what lies there has been done
  bool row_fused = false;         // it takes ir::RowFused
  bool cuda_source = false;       // it takes users' kernels in CUDA C++ as they are
  bool elements = true;           // tensors have elements, beside shapes
  bool library_products = false;  // libraries do its products, with bits of their own, unless algorithms are to be deterministic

  // Tensors of this dtype, or an operator by its name (ir/addresses.h; "*": all of them), are not supported.
  void exclude(DType type) { dtypes_ &= ~bit(type); }
  void exclude(std::string_view op) { unsupported_.emplace(op); }
  // The same for operators of instructions that only hosts carry out (ir/inspect.h): asked for where there is such an instruction, and not before
  // all others.
  void exclude_host_only(std::string_view op) { host_only_.emplace(op); }

  bool supports(DType type) const noexcept { return (dtypes_ & bit(type)) != 0; }
  bool supports(std::string_view op) const {
    return (unsupported_.empty() || !(unsupported_.contains(op) || unsupported_.contains("*"))) &&
           (host_only_.empty() || !host_only_.contains(op));
  }
  // Nothing that instructions can ask for is excluded, but for those that only hosts carry out.
  bool supports_everything() const noexcept { return dtypes_ == ~uint64_t{0} && unsupported_.empty() && arithmetic.fp64; }

 private:
  static constexpr uint64_t bit(DType type) noexcept { return uint64_t{1} << static_cast<int>(type); }
  uint64_t dtypes_ = ~uint64_t{0};
  std::set<std::string, std::less<>> unsupported_, host_only_;
};

}  // namespace naru
