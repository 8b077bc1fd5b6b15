// Writes over memory that is read, as Python's calls are refused them.
#pragma once

#include <span>
#include <string_view>

#include "object/object.h"

namespace naru::py {

// What a function may read of the memory that it writes: of its out=, or of its first argument where its name ends in _.
enum class Sharing : uint8_t {
  Same,   // all of it, at the same places
  Apart,  // nothing
  Fill,   // as Same; numbers in tensors without dimensions wherever they are
  Any,    // anything: PyTorch has no check, the result is there before it is written
};
Sharing sharing_of(std::string_view function);

// Throws RuntimeError, in PyTorch's words, where `read` shares memory with `written` as it may not. As PyTorch, it compares dense tensors alone;
// operands whose elements lie between those of the target are read before that is written.
void check_sharing(const char* function, Sharing sharing, const Tensor& written, const Tensor& read);
// The same of a call's arguments: tensors, and lists of them.
void check_sharing(const char* function, Sharing sharing, const Tensor& written, std::span<PyObject* const> arguments);
// The same of target[parts] = value.
void check_assignment(const Tensor& target, std::span<const Index> parts, const Tensor& value);

}  // namespace naru::py
