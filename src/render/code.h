// Code in the making and what becomes of it: the process-wide memory for machine code.
#pragma once

#include <asmjit/x86.h>

#include "render/native.h"

namespace naru::render {

// Remembers whether any instruction was refused, which makes the kernel fall back to the interpreter.
class FirstError : public asmjit::ErrorHandler {
 public:
  void handleError(asmjit::Error error, const char* message, asmjit::BaseEmitter*) override;
  asmjit::Error error() const noexcept { return error_; }

 private:
  asmjit::Error error_ = asmjit::kErrorOk;
};

// One function being written. emit_body receives the compiler and the function's node; it emits all but the end.
class Code {
 public:
  explicit Code(Isa isa);
  asmjit::x86::Compiler& cc() noexcept { return cc_; }
  asmjit::FuncNode* begin(const asmjit::FuncSignature& signature);
  // The address of the finished function, kept until the process ends; nullptr if that could not be.
  void* finish();

 private:
  Isa isa_;
  asmjit::CodeHolder holder_;
  FirstError errors_;
  asmjit::x86::Compiler cc_;
};

// Whether this processor has `isa`.
bool can_run(Isa isa) noexcept;

// What best_isa() says on a processor that has `have`, given the values of NARU_JIT and NARU_ISA (nullptr where unset).
Isa choose_isa(Isa have, const char* jit, const char* wanted) noexcept;

}  // namespace naru::render
