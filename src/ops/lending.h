// Memory of devices in the hands of other libraries.
#pragma once

#include <optional>

#include "naru/dlpack.h"

namespace naru::ops {

// As to_dlpack and to_dlpack_unversioned; stream: the borrower's, as DLPack numbers it (1: the default one; nothing: not known). What it was given until the
// loan ends is done before naru's next work on the memory.
DLManagedTensorVersioned* lend(const Tensor& t, bool copy, std::optional<int64_t> stream);
DLManagedTensor* lend_unversioned(const Tensor& t, bool copy, std::optional<int64_t> stream);

// The address of the first element, for code outside naru that computes there. What is under way there is done. Of the cpu's memory, each later operator is
// done at once from now on; a device's is left to the program: its streams go in order with others' work on the same ones, and synchronize() waits for all.
void* address_for_others(const Tensor& t);

}  // namespace naru::ops
