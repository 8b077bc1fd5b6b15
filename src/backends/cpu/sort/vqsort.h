// Highway's vectorised quicksort, for the current processor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace naru::cpu {

// A 128-bit integer.
struct alignas(16) Wide {
  uint64_t low, high;
};

// Sorts in ascending order, in place. Not stable: use it where no two numbers are equal, or equal ones are interchangeable.
void vector_sort(uint64_t* numbers, size_t n) noexcept;
void vector_sort(Wide* numbers, size_t n) noexcept;

}  // namespace naru::cpu
