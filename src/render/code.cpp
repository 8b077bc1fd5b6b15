#include "render/code.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace naru::render {
namespace {

// Never destroyed: code may run until the very end of the process.
asmjit::JitRuntime& runtime() {
  static asmjit::JitRuntime* const shared = new asmjit::JitRuntime();
  return *shared;
}

Isa isa_of_processor() noexcept {
#if defined(__x86_64__)
  const asmjit::CpuFeatures::X86& has = asmjit::CpuInfo::host().features().x86();
  if (!(has.hasAVX2() && has.hasFMA() && has.hasF16C() && has.hasBMI2())) return Isa::None;
  const bool wide = has.hasAVX512_F() && has.hasAVX512_BW() && has.hasAVX512_DQ() && has.hasAVX512_VL();
  return wide ? Isa::Avx512 : Isa::Avx2;
#else
  return Isa::None;
#endif
}

}  // namespace

bool can_run(Isa isa) noexcept {
  static const Isa best = isa_of_processor();
  return isa != Isa::None && isa <= best;
}

Isa best_isa() noexcept {
  static const Isa best = [] {
    const char* jit = std::getenv("NARU_JIT");
    const char* wanted = std::getenv("NARU_ISA");
    const std::string_view isa = wanted != nullptr ? wanted : "";
    if ((jit != nullptr && std::string_view(jit) == "0") || isa == "none") return Isa::None;
    const Isa have = isa_of_processor();
    return isa == "avx2" ? std::min(have, Isa::Avx2) : have;
  }();
  return best;
}

void FirstError::handleError(asmjit::Error error, const char* message, asmjit::BaseEmitter*) {
  if (error_ == asmjit::kErrorOk) error_ = error;
#ifndef NDEBUG
  std::fprintf(stderr, "naru: code generation: %s\n", message);
#else
  static_cast<void>(message);
#endif
}

Code::Code(Isa isa) : isa_(isa) {
  holder_.init(runtime().environment());
  holder_.setErrorHandler(&errors_);
  holder_.attach(&cc_);
#ifndef NDEBUG
  cc_.addDiagnosticOptions(asmjit::DiagnosticOptions::kValidateAssembler |
                           asmjit::DiagnosticOptions::kValidateIntermediate);
#endif
}

asmjit::FuncNode* Code::begin(const asmjit::FuncSignature& signature) {
  asmjit::FuncNode* function = cc_.addFunc(signature);
  if (function == nullptr) return nullptr;
  function->frame().setAvxEnabled();
  function->frame().setAvxCleanup();
  if (isa_ == Isa::Avx512) function->frame().setAvx512Enabled();
  return function;
}

void* Code::finish() {
  cc_.endFunc();
  if (cc_.finalize() != asmjit::kErrorOk || errors_.error() != asmjit::kErrorOk) return nullptr;
  void* address = nullptr;
  if (runtime().add(&address, &holder_) != asmjit::kErrorOk) return nullptr;
  return address;
}

}  // namespace naru::render
