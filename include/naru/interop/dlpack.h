// DLPack: exchange of tensors with other libraries without a copy. The structures are those of <dlpack/dlpack.h>, which need not be
// installed.
//
//   DLManagedTensorVersioned* m = naru::to_dlpack(t);   // the consumer calls m->deleter(m) when it is done
//   Tensor t = naru::from_dlpack(m);                    // calls it when the last tensor that uses the memory is destroyed
#pragma once

#include "naru/standard.h"
#include "naru/tensor.h"

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace naru {

// DLPack's device type and id: (1, 0) for the host, (2, i) for NVIDIA devices; (12, i) if other libraries can't use the memory's addresses,
// as with virtual devices.
std::pair<int32_t, int32_t> dlpack_device(const Tensor& t);
// The inverse; empty if there is no such device, or its memory can't be shared.
std::optional<Device> device_of_dlpack(int32_t kind, int32_t number);

// Exports the tensor's memory, or with `copy` that of a copy. The memory stays alive until the consumer releases it. Waits for all of the
// device's work, so the values are ready. Throws BufferError if the device type is 12 (see above) or the tensor requires grad.
DLManagedTensorVersioned* to_dlpack(const Tensor& t, bool copy = false);
// The structure from before DLPack 1.0.
DLManagedTensor* to_dlpack_unversioned(const Tensor& t, bool copy = false);

// Imports another library's memory; strides must not be negative. At the end calls `release` if given, else the deleter. Waits for the
// producer's work on the device. Throws BufferError, leaving `m` to the caller, if the device does not exist or can't share memory, or if
// no dtype matches.
Tensor from_dlpack(DLManagedTensorVersioned* m, std::function<void()> release = {});
Tensor from_dlpack(DLManagedTensor* m, std::function<void()> release = {});

// Calls the deleter, if there is one.
void end_dlpack(DLManagedTensorVersioned* m);
void end_dlpack(DLManagedTensor* m);

}  // namespace naru
