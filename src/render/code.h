// Code in the making and what becomes of it: the process-wide memory for machine code.
#pragma once

#include <initializer_list>

#include "render/isa.h"

namespace naru::render {

// Remembers whether any instruction was refused, which makes the kernel fall back to the interpreter.
class FirstError : public asmjit::ErrorHandler {
 public:
  void handleError(asmjit::Error error, const char* message, asmjit::BaseEmitter*) override;
  asmjit::Error error() const noexcept { return error_; }

 private:
  asmjit::Error error_ = asmjit::kErrorOk;
};

// One function being written: begin(), all but the end by the assembler and the lane machine, finish().
class Code {
 public:
  // Not for None.
  explicit Code(Isa isa);
  Assembler& assembler() noexcept { return *machine_.assembler; }
  LaneMachine& lanes() noexcept { return *machine_.lanes; }
  // Makes registers of the arguments, in order. False: that could not be.
  bool begin(const asmjit::FuncSignature& signature, std::initializer_list<Register*> arguments);
  // The address of the finished function, kept until the process ends; nullptr if that could not be.
  void* finish();

 private:
  asmjit::CodeHolder holder_;
  FirstError errors_;
  Machine machine_;
};

}  // namespace naru::render
