// Checks of Python calls that write to memory that they also read (PyTorch's assert_no_overlap and assert_no_partial_overlap).
#pragma once

#include <span>
#include <string_view>

#include "core/operators.h"
#include "object/object.h"

namespace naru::py {

using operators::Sharing;
// What a function may read of the memory that it writes: its out=, or its first argument if its name ends in _.
Sharing sharing_of(std::string_view function);

// Throws RuntimeError, with PyTorch's text, if `read` overlaps `written` in a way that `sharing` does not allow. Like PyTorch it compares dense
// tensors only; other operands are read before the target is written.
void check_sharing(const char* function, Sharing sharing, const Tensor& written, const Tensor& read);
// The same for a call's arguments: tensors and lists of tensors.
void check_sharing(const char* function, Sharing sharing, const Tensor& written, std::span<PyObject* const> arguments);
// The same for target[parts] = value.
void check_assignment(const Tensor& target, std::span<const Index> parts, const Tensor& value);

}  // namespace naru::py
