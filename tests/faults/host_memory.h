// The host's memory as this program gets it (operator new, in all its forms), which fails where it is told to.
#pragma once

#include <cstdint>

namespace naru::faults {

enum class Callers : uint8_t {
  Program,             // naru's own code
  AndStandardLibrary,  // and what the standard library asks for on anybody's behalf
};

// The n-th request from here on, of any thread, fails; n = 0: none.
void fail_request(uint64_t n, Callers callers = Callers::AndStandardLibrary) noexcept;
// No more from here on. Whether one has failed.
bool stop_failing() noexcept;

}  // namespace naru::faults
