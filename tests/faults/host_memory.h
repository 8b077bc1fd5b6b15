// operator new, in all its forms, that fails on request.
#pragma once

#include <cstdint>

namespace naru::faults {

enum class Callers : uint8_t {
  Program,             // allocations of naru's own code
  AndStandardLibrary,  // and those of the standard library
};

// The n-th allocation from now on, on any thread, fails; n = 0: none.
void fail_request(uint64_t n, Callers callers = Callers::AndStandardLibrary) noexcept;
// Disarms. Returns true if an allocation has failed.
bool stop_failing() noexcept;

}  // namespace naru::faults
