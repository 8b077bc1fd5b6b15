// Device memory that other libraries use.
#pragma once

#include <optional>

#include "naru/interop/dlpack.h"

namespace naru::ops {

// As to_dlpack and to_dlpack_unversioned. stream: the consumer's stream, as DLPack numbers it (1: the default one; none: unknown). After the loan
// ends, naru's next work on the memory waits for the default stream's work up to then; for any other stream, for the whole device.
DLManagedTensorVersioned* lend(const Tensor& t, bool copy, std::optional<int64_t> stream);
DLManagedTensor* lend_unversioned(const Tensor& t, bool copy, std::optional<int64_t> stream);

// The address of the first element, for code outside naru. Waits for pending uses of the storage. Cpu memory: all later operators on it run
// immediately. Device memory: the program orders accesses; naru's streams are ordered with others' work on the same ones, and synchronize() waits for
// everything.
void* address_for_others(const Tensor& t);

// A cpu tensor over the same memory, where the host may use the device's; undefined otherwise. Waits for the device. Later work of the device on the memory is
// not ordered with the host's: synchronize() first.
Tensor seen_by_host(const Tensor& t);

}  // namespace naru::ops
