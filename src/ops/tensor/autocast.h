// Mixed precision: which dtype a function needs for its floating-point arguments inside an autocast block, and the casts.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/autocast.h"
#include "core/operators.h"
#include "naru/tensor.h"

namespace naru::autocast {

// PyTorch's lists are in the operators' records. Its list for cuda is used for every kind but cpu.
using operators::Cast;
using Rules = operators::Autocast;

// True if an open block casts this tensor at all.
bool eligible(const Tensor& t);
Tensor cast(const Tensor& t, DType to);  // t itself if it is not eligible or already has that type
void clear_cache() noexcept;

// What a call of `function` with these tensors decides: the kind of device whose block applies, and the type to cast to. Empty if no block is open
// for any of the tensors, or if the function accepts its arguments as they are. keeps_dtype: the caller named a dtype for the result, which overrides
// float32. RuntimeError if the function is refused.
struct Decision {
  DeviceType kind;
  std::optional<DType> to;  // none: no cast
};
std::optional<Decision> decide(Rules rules, std::string_view function, std::span<const Tensor* const> tensors, bool keeps_dtype);

// The cast arguments of a function; no other cast happens during its lifetime. Converts to false if they need no cast. For the call path (ops/call) and
// the elementwise table: nothing else casts. Costs one load if no block is open anywhere.
class Casts {
 public:
  Casts(const char* function, std::span<const Tensor* const> tensors, bool keeps_dtype) {
    if (anywhere()) [[unlikely]]
      inside_ = enter(function, tensors, keeps_dtype);
  }
  Casts(const char* function, std::span<const Operand> operands) {
    if (anywhere()) [[unlikely]]
      inside_ = enter(function, operands);
  }
  explicit operator bool() const noexcept { return inside_ != nullptr; }
  const std::vector<Tensor>& all() const noexcept { return inside_->tensors; }
  // Scalars among them are unchanged.
  std::span<const Operand> operands() const noexcept { return inside_->operands; }

 private:
  struct Inside {
    std::vector<Tensor> tensors;
    std::vector<Operand> operands;
    Off off;
  };
  using Entered = std::unique_ptr<Inside>;
  static Entered enter(std::string_view function, std::span<const Tensor* const> tensors, bool keeps_dtype);
  static Entered enter(std::string_view function, std::span<const Operand> operands);
  Entered inside_;
};

}  // namespace naru::autocast
