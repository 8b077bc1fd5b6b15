// DLPack: tensors handed to other libraries, and taken from them, without a copy. The structures are those of <dlpack/dlpack.h>, which need not
// be there.
//
//   DLManagedTensorVersioned* m = naru::to_dlpack(t);   // whoever takes it calls m->deleter(m) at the end
//   Tensor t = naru::from_dlpack(m);                    // calls it when the last tensor over the memory is gone
#pragma once

#include "naru/standard.h"
#include "naru/tensor.h"

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace naru {

// The kind of device and its number, as DLPack has them: (1, 0) for the host, (2, i) for NVIDIA's devices; (12, i) where other libraries have no use
// for the memory's addresses, as those of virtual devices.
std::pair<int32_t, int32_t> dlpack_device(const Tensor& t);
// The device that other libraries call so; nothing where there is none, or none whose memory can be shared.
std::optional<Device> device_of_dlpack(int32_t kind, int32_t number);

// The memory of a tensor, which stays alive as long as it is lent; with `copy` that of a copy. Of a device's memory the values are there: all work of
// the device is waited for. Throws BufferError for tensors whose device is of kind 12 (see above) and such that require grad.
DLManagedTensorVersioned* to_dlpack(const Tensor& t, bool copy = false);
// As libraries before DLPack 1.0 take it.
DLManagedTensor* to_dlpack_unversioned(const Tensor& t, bool copy = false);

// A tensor over memory that another library lends, of any strides that are not negative. `release` is called at the end in place of the
// deleter, where it is given. What others have given a device is waited for. Throws BufferError, and `m` stays the caller's, for memory of devices that
// are not there, or that naru shares with nobody, and for types that no dtype has.
Tensor from_dlpack(DLManagedTensorVersioned* m, std::function<void()> release = {});
Tensor from_dlpack(DLManagedTensor* m, std::function<void()> release = {});

// Calls the deleter, where there is one.
void end_dlpack(DLManagedTensorVersioned* m);
void end_dlpack(DLManagedTensor* m);

}  // namespace naru
