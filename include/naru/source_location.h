// Source locations in a C++ program, for errors, memory profiles and synchronization reports. In Python programs they come from the stack.
//
//   x.to(device);                        // rare or blocking calls record their location: "... (at train.cpp:12)"
//   const SourceLocationScope here;                     // other calls in this scope report this line; recording it per operator would cost time
#pragma once

#include <string>

namespace naru {

// Like std::source_location, which clang 14 lacks. Line 0: no location.
struct SourceLocation {
  const char* file = nullptr;
  unsigned line = 0;
  static constexpr SourceLocation here(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) noexcept {
    return {file, line};
  }
  std::string str() const;  // "train.cpp:12"; "" if there is none
};

// Default argument for the caller's source location. Calls from within naru pass none, so that the user's location is reported.
#ifdef NARU_LIBRARY
#define NARU_CURRENT_LOCATION ::naru::SourceLocation()
#else
#define NARU_CURRENT_LOCATION ::naru::SourceLocation::here()
#endif

// Within its scope, on the calling thread: errors report this location, and so do OutOfMemoryErrors, the memory history of tensors created
// here, the list of synchronizations, and errors that a device reports later. The innermost scope wins. In Python programs, the Python line
// wins.
class SourceLocationScope {
 public:
  explicit SourceLocationScope(SourceLocation where = NARU_CURRENT_LOCATION) noexcept;
  SourceLocationScope(const SourceLocationScope&) = delete;
  SourceLocationScope& operator=(const SourceLocationScope&) = delete;
  ~SourceLocationScope();

 private:
  SourceLocation place_;
  const SourceLocationScope* outer_;
  friend SourceLocation current_location() noexcept;
};
// The location of the calling thread's innermost SourceLocationScope.
SourceLocation current_location() noexcept;

}  // namespace naru
