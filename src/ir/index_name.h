// The names of operators that gather and scatter.
#pragma once

#include <iterator>
#include <string_view>

namespace naru::ir {

inline constexpr const char* kIndexNames[] = {"index", "index_put_", "gather", "scatter",       "scatter_add", "index_select", "index_add_",
                                              "take",  "embedding",  "flip",   "masked_select", "nll_loss",    "cross_entropy"};

// One of kIndexNames. Any other name fails to compile, so the list is complete.
class IndexName {
 public:
  consteval IndexName(const char* name) : text_(nullptr) {
    for (const char* known : kIndexNames)
      if (std::string_view(known) == name) text_ = known;
    if (!text_) throw "this name is missing in kIndexNames";
  }
  constexpr operator const char*() const noexcept { return text_; }

 private:
  const char* text_;
};

}  // namespace naru::ir
