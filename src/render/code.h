// A function being assembled, and the process-wide memory for machine code.
#pragma once

#include <initializer_list>

#include "render/isa.h"

namespace naru::render {

// Remembers whether asmjit rejected any instruction; the kernel then falls back to the interpreter.
class FirstError : public asmjit::ErrorHandler {
 public:
  void handleError(asmjit::Error error, const char* message, asmjit::BaseEmitter*) override;
  asmjit::Error error() const noexcept { return error_; }

 private:
  asmjit::Error error_ = asmjit::kErrorOk;
};

// A function being assembled: begin(), then everything but the end through the assembler and the lane machine, then finish().
class Code {
 public:
  // `isa` must not be None.
  explicit Code(Isa isa);
  Assembler& assembler() noexcept { return *machine_.assembler; }
  LaneMachine& lanes() noexcept { return *machine_.lanes; }
  // Assigns registers to the arguments, in order. Returns false on failure.
  bool begin(const asmjit::FuncSignature& signature, std::initializer_list<Register*> arguments);
  // Returns the address of the finished function, valid until the process ends, or nullptr on failure.
  void* finish();

 private:
  asmjit::CodeHolder holder_;
  FirstError errors_;
  Machine machine_;
};

}  // namespace naru::render
