// Highway's vectorised quicksort, for the kind of processor at hand.
#pragma once

#include <cstddef>
#include <cstdint>

namespace naru::host {

// A 128-bit number.
struct alignas(16) Wide {
  uint64_t low, high;
};

// Ascending order, in place. Not stable: meant for numbers of which no two are equal, or equal ones are the same.
void vector_sort(uint64_t* numbers, size_t n) noexcept;
void vector_sort(Wide* numbers, size_t n) noexcept;

}  // namespace naru::host
