// Three functions of asmjit, defined here so that its archive can be linked into a shared library.
//
// Debian's libasmjit.a is compiled only for position-independent executables. One of its objects, globals.cpp.o, refers to `stderr` in a way that
// is not allowed in a shared library. A linker includes that object only if one of these three functions is undefined, so defining all of them
// excludes it. They are only asmjit's diagnostics.
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
      // asmjit's own table has a name for each error code; look the number up in <asmjit/core/globals.h>.
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
