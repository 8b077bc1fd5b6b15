// Three functions of asmjit, defined here so that its archive can be linked into a shared library.
//
// Debian's libasmjit.a is compiled for position-independent executables only. One of its objects, globals.cpp.o, refers
// to `stderr` in a way that a shared library may not; a linker takes that object from the archive only while one of
// these three is undefined, so defining all of them keeps it out. They are asmjit's diagnostics and of no other use.
#include <asmjit/core.h>

#include <cstdio>
#include <cstdlib>

extern "C" void naru_asmjit_globals() {}

namespace asmjit {

const char* DebugUtils::errorAsString(Error error) noexcept {
  switch (error) {
    case kErrorOk:
      return "no error";
    case kErrorOutOfMemory:
      return "out of memory";
    case kErrorInvalidInstruction:
      return "invalid instruction";
    case kErrorInvalidImmediate:
      return "invalid immediate operand";
    case kErrorFeatureNotEnabled:
      return "the system does not allow memory to be both written and executed";
    default: {
      // asmjit's own table has a name for each number; the number finds it in <asmjit/core/globals.h>.
      thread_local char text[32];
      std::snprintf(text, sizeof text, "asmjit error %u", static_cast<unsigned>(error));
      return text;
    }
  }
}

void DebugUtils::debugOutput(const char* text) noexcept { std::fputs(text, stderr); }

void DebugUtils::assertionFailed(const char* file, int line, const char* message) noexcept {
  std::fprintf(stderr, "asmjit: assertion failed at %s:%d: %s\n", file, line, message);
  std::abort();
}

}  // namespace asmjit
