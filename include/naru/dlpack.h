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

// The memory of a tensor on cpu, which stays alive as long as it is lent; with `copy` that of a copy. Throws BufferError for tensors on devices and
// such that require grad.
DLManagedTensorVersioned* to_dlpack(const Tensor& t, bool copy = false);
// As libraries before DLPack 1.0 take it.
DLManagedTensor* to_dlpack_unversioned(const Tensor& t, bool copy = false);

// A tensor over memory of the host that another library lends, of any strides that are not negative. `release` is called at the end in place of the
// deleter, where it is given. Throws BufferError, and `m` stays the caller's, for memory of devices and types that no dtype has.
Tensor from_dlpack(DLManagedTensorVersioned* m, std::function<void()> release = {});
Tensor from_dlpack(DLManagedTensor* m, std::function<void()> release = {});

// Calls the deleter, where there is one.
void end_dlpack(DLManagedTensorVersioned* m);
void end_dlpack(DLManagedTensor* m);

}  // namespace naru
