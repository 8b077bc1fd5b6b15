// AtEnd: runs a function at the end of a scope, however the scope is left.
#pragma once

#include <utility>

namespace naru {

template <class F>
class AtEnd {
 public:
  explicit AtEnd(F f) : f_(std::move(f)) {}
  AtEnd(const AtEnd&) = delete;
  ~AtEnd() { f_(); }

 private:
  F f_;
};

}  // namespace naru
