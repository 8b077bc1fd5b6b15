// Places in a C++ program, which errors, holders of memory and synchronizations name: what Python reads off its stack.
//
//   x.to(device);                        // calls that are seldom, or wait anyway, know where they stand: "... (at train.cpp:12)"
//   const Here here;                     // all else in a scope has the place of this line: operators, which nothing may cost
#pragma once

#include <string>

namespace naru {

// As std::source_location, which clang 14 has not. Line 0: none.
struct Place {
  const char* file = nullptr;
  unsigned line = 0;
  static constexpr Place here(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) noexcept { return {file, line}; }
  std::string str() const;  // "train.cpp:12", "" of none
};

// The default of a parameter that says where the caller stands. naru's own calls have no place, so that the program's is told.
#ifdef NARU_LIBRARY
#define NARU_CALLER ::naru::Place()
#else
#define NARU_CALLER ::naru::Place::here()
#endif

// Until the end of its scope, on the calling thread: errors say where it stands, and so do OutOfMemoryErrors and the memory's history of tensors made
// meanwhile, the list of synchronizations, and errors that a device finds later. The innermost one counts. In Python programs the line is Python's.
class Here {
 public:
  explicit Here(Place where = NARU_CALLER) noexcept;
  Here(const Here&) = delete;
  Here& operator=(const Here&) = delete;
  ~Here();

 private:
  Place place_;
  const Here* outer_;
  friend Place current_place() noexcept;
};
// Of the innermost Here of the calling thread.
Place current_place() noexcept;

}  // namespace naru
