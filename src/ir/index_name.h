// The names of operators that gather and scatter, and the errors that they raise for an index out of bounds.
#pragma once

#include <cstdint>
#include <iterator>
#include <string_view>

namespace naru::ir {

inline constexpr const char* kIndexNames[] = {"index",         "index_put_", "gather",        "scatter",        "scatter_add",
                                              "index_select",  "index_add_", "take",          "embedding",      "flip",
                                              "masked_select", "nll_loss",   "cross_entropy", "scatter_reduce", "index_reduce_"};

// PyTorch's class of error for an index out of bounds differs between operators.
enum class BadIndex : uint8_t { IndexError, RuntimeError };

// One of kIndexNames. Any other name fails to compile, so the list is complete.
class IndexName {
 public:
  consteval IndexName(const char* name) : text_(nullptr) {
    for (const char* known : kIndexNames)
      if (std::string_view(known) == name) text_ = known;
    if (!text_) throw "this name is missing in kIndexNames";
  }
  constexpr operator const char*() const noexcept { return text_; }
  constexpr BadIndex raises() const noexcept {
    const std::string_view name = text_;
    const bool runtime = name == "gather" || name == "scatter" || name == "scatter_add" || name == "scatter_reduce";
    return runtime ? BadIndex::RuntimeError : BadIndex::IndexError;
  }

 private:
  const char* text_;
};

}  // namespace naru::ir
