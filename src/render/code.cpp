#include "render/code.h"

#include <cstdio>

namespace naru::render {
namespace {

// Never destroyed: code may run until the very end of the process.
asmjit::JitRuntime& runtime() {
  static asmjit::JitRuntime* const shared = new asmjit::JitRuntime();
  return *shared;
}

}  // namespace

void FirstError::handleError(asmjit::Error error, const char* message, asmjit::BaseEmitter*) {
  if (error_ == asmjit::kErrorOk) error_ = error;
#ifndef NDEBUG
  std::fprintf(stderr, "naru: code generation: %s\n", message);
#else
  static_cast<void>(message);
#endif
}

Code::Code(Isa isa) {
  holder_.init(runtime().environment());
  holder_.setErrorHandler(&errors_);
  const InstructionSet& set = instruction_set(isa);
  machine_ = set.make(holder_);
#ifndef NDEBUG
  machine_.compiler->addDiagnosticOptions(asmjit::DiagnosticOptions::kValidateAssembler | asmjit::DiagnosticOptions::kValidateIntermediate);
#endif
}

bool Code::begin(const asmjit::FuncSignature& signature, std::initializer_list<Register*> arguments) {
  asmjit::FuncNode* function = machine_.compiler->addFunc(signature);
  if (function == nullptr) return false;
  machine_.assembler->set_frame(function->frame());
  size_t i = 0;
  for (Register* r : arguments) {
    *r = machine_.assembler->new_register();
    function->setArg(i++, *r);
  }
  return true;
}

void* Code::finish() {
  machine_.assembler->end_function();
  machine_.compiler->endFunc();
  if (machine_.compiler->finalize() != asmjit::kErrorOk || errors_.error() != asmjit::kErrorOk) return nullptr;
  void* address = nullptr;
  if (runtime().add(&address, &holder_) != asmjit::kErrorOk) return nullptr;
  return address;
}

}  // namespace naru::render
