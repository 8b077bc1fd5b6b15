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

Isa choose_isa(Isa have, const char* jit, const char* wanted) noexcept {
  if (jit != nullptr && std::string_view(jit) == "0") return Isa::None;
  const std::string_view isa = wanted != nullptr ? wanted : "";
  if (isa == "none") return Isa::None;
  if (isa == "avx2") return std::min(have, Isa::Avx2);
  if (!isa.empty() && isa != "avx512")
    std::fprintf(stderr, "naru: NARU_ISA=%s is unknown and has no effect; it may be avx512, avx2 or none\n", wanted);
  return have;
}

Isa best_isa() noexcept {
  static const Isa best = choose_isa(isa_of_processor(), std::getenv("NARU_JIT"), std::getenv("NARU_ISA"));
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
  cc_.addDiagnosticOptions(asmjit::DiagnosticOptions::kValidateAssembler | asmjit::DiagnosticOptions::kValidateIntermediate);
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
