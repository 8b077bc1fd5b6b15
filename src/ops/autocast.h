// Mixed precision: what a function wants of its floating-point arguments while a block of autocast is open, and the casts.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/autocast.h"
#include "naru/tensor.h"

namespace naru::autocast {

// Nothing, the block's 16-bit type, float32, the widest among them, or not to be called at all.
enum class Rule : uint8_t { None, Lower, Float32, Widest, Refused };
// On the cpu, and on the other kinds of devices.
struct Rules {
  Rule cpu = Rule::None, others = Rule::None;
};
// PyTorch's lists, by the function's name; its list for cuda stands for every kind but cpu.
Rules rules_of(std::string_view function);
const std::unordered_map<std::string_view, Rules>& all_rules();

// Whether a block casts this tensor at all.
bool eligible(const Tensor& t);
Tensor cast(const Tensor& t, DType to);  // t itself, where it is not eligible or of that type already
void clear_cache() noexcept;

// What a call of `function` with these tensors decides: the kind of device whose block it is, and the type to cast to; nothing where no block
// is open for any of them, or where the function takes what it is given. keeps_dtype: the caller has named a type for the result, which stands above float32.
// Throws RuntimeError for a function that is refused.
struct Decision {
  DeviceType kind;
  std::optional<DType> to;  // none: as they are
};
std::optional<Decision> decide(Rules rules, std::string_view function, std::span<const Tensor* const> tensors, bool keeps_dtype);

// The arguments of a function, cast; inside its life nothing else is. False where they are to be taken as they are. A function that the lists
// name begins with it, and nothing else casts:
//   if (const Casts c("softmax", {&t}, dtype.has_value()); c) return softmax(c[0], dim, dtype);
// One load where no block is open anywhere.
class Casts {
 public:
  Casts(const char* function, std::initializer_list<const Tensor*> tensors, bool keeps_dtype = false) {
    if (anywhere()) [[unlikely]]
      inside_ = enter(function, {tensors.begin(), tensors.size()}, keeps_dtype);
  }
  Casts(const char* function, std::span<const Operand> operands) {
    if (anywhere()) [[unlikely]]
      inside_ = enter(function, operands);
  }
  Casts(const char* function, const std::vector<Tensor>& tensors) {
    if (anywhere()) [[unlikely]]
      inside_ = enter(function, tensors);
  }
  explicit operator bool() const noexcept { return inside_ != nullptr; }
  const Tensor& operator[](size_t i) const { return inside_->tensors[i]; }
  const std::vector<Tensor>& all() const noexcept { return inside_->tensors; }
  // Numbers among them stay as they are.
  std::span<const Operand> operands() const noexcept { return inside_->operands; }

 private:
  struct Inside {
    std::vector<Tensor> tensors;
    std::vector<Operand> operands;
    Off off;
  };
  using Entered = std::unique_ptr<Inside>;
  static Entered enter(std::string_view function, std::span<const Tensor* const> tensors, bool keeps_dtype);
  static Entered enter(std::string_view function, const std::vector<Tensor>& tensors);
  static Entered enter(std::string_view function, std::span<const Operand> operands);
  Entered inside_;
};

}  // namespace naru::autocast
