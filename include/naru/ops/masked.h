// Reductions and normalizations that ignore elements whose mask is False, after torch.masked.
//
//   masked::sum(x, mask, 1);   masked::softmax(x, mask, -1);
//
// A mask is a bool tensor that broadcasts to the input's shape (IndexError if it has more dimensions); an undefined mask ignores nothing.
// Ignored elements are replaced by the operation's identity (0 for a sum, the least value for a maximum), which is also the result of a
// fully masked slice. Without dims: over all dimensions. Results have the input's dtype unless one is given. Gradients are 0 where the mask
// is False.
#pragma once

#include <optional>

#include "naru/ops.h"

namespace naru::masked {

// Integers of at most 32 bits are summed and multiplied in int64 unless a dtype is given.
Tensor sum(const Tensor& t, const Tensor& mask, const OptionalDims& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
Tensor prod(const Tensor& t, const Tensor& mask, const OptionalDims& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
Tensor cumsum(const Tensor& t, const Tensor& mask, int64_t dim, std::optional<DType> dtype = {});
Tensor cumprod(const Tensor& t, const Tensor& mask, int64_t dim, std::optional<DType> dtype = {});
// A fully masked slice gives the dtype's least (greatest) value, an infinity if it has one.
Tensor amax(const Tensor& t, const Tensor& mask, const OptionalDims& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
Tensor amin(const Tensor& t, const Tensor& mask, const OptionalDims& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
// The indices, converted to the input's dtype (as in PyTorch).
Tensor argmax(const Tensor& t, const Tensor& mask, std::optional<int64_t> dim = {}, bool keepdim = false, std::optional<DType> dtype = {});
Tensor argmin(const Tensor& t, const Tensor& mask, std::optional<int64_t> dim = {}, bool keepdim = false, std::optional<DType> dtype = {});
// NaN if fully masked.
Tensor mean(const Tensor& t, const Tensor& mask, const OptionalDims& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
// The lower median along a dimension; NaN if fully masked. Throws ValueError for integers if a slice is fully masked.
Tensor median(const Tensor& t, const Tensor& mask, int64_t dim = -1, bool keepdim = false, std::optional<DType> dtype = {});
Tensor logsumexp(const Tensor& t, const Tensor& mask, const OptionalDims& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
// log(exp(a) + exp(b)); masked elements contribute nothing.
Tensor logaddexp(const Tensor& a, const Tensor& b, const Tensor& a_mask, const Tensor& b_mask = {}, std::optional<DType> dtype = {});
// linalg::vector_norm; 0 if fully masked, inf if ord is -inf.
Tensor norm(const Tensor& t, const Tensor& mask, double ord = 2, const OptionalDims& dims = {}, bool keepdim = false,
            std::optional<DType> dtype = {});
// Divided by n - correction; computed in float32 for integers unless a dtype is given. NaN if fully masked.
Tensor var(const Tensor& t, const Tensor& mask, const OptionalDims& dims = {}, double correction = 1, bool keepdim = false,
           std::optional<DType> dtype = {});
Tensor std(const Tensor& t, const Tensor& mask, const OptionalDims& dims = {}, double correction = 1, bool keepdim = false,
           std::optional<DType> dtype = {});
// 0 (log_softmax: -inf) where the mask is False, NaN for fully masked slices.
Tensor softmax(const Tensor& t, const Tensor& mask, int64_t dim, std::optional<DType> dtype = {});
Tensor log_softmax(const Tensor& t, const Tensor& mask, int64_t dim, std::optional<DType> dtype = {});
Tensor softmin(const Tensor& t, const Tensor& mask, int64_t dim, std::optional<DType> dtype = {});
// Divides by the norm along a dimension, which is at least eps; 0 where the mask is False.
Tensor normalize(const Tensor& t, const Tensor& mask, double ord, int64_t dim, double eps = 1e-12, std::optional<DType> dtype = {});

}  // namespace naru::masked
