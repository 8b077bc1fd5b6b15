// Reductions and normalisations that leave out the elements whose mask is False, as torch.masked has them.
//
//   masked::sum(x, mask, 1);   masked::softmax(x, mask, -1);
//
// A mask is a bool tensor that broadcasts to the input's shape (IndexError for one of more dimensions); an undefined one leaves nothing out. What is left out
// counts as what does not change the result (0 of a sum, the least number of a maximum), so that a part of which nothing is left gives that. No dims: all of
// them. Results are of the input's dtype unless another is named. Gradients are 0 where the mask is False.
#pragma once

#include <optional>

#include "naru/ops.h"

namespace naru::masked {

// Whole numbers of at most 32 bits add up, and multiply, in int64 unless a dtype is named.
Tensor sum(const Tensor& t, const Tensor& mask, const OptionalDims& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
Tensor prod(const Tensor& t, const Tensor& mask, const OptionalDims& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
Tensor cumsum(const Tensor& t, const Tensor& mask, int64_t dim, std::optional<DType> dtype = {});
Tensor cumprod(const Tensor& t, const Tensor& mask, int64_t dim, std::optional<DType> dtype = {});
// The dtype's least (greatest) number, an infinity where it has one, of nothing.
Tensor amax(const Tensor& t, const Tensor& mask, const OptionalDims& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
Tensor amin(const Tensor& t, const Tensor& mask, const OptionalDims& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
// The places, as numbers of the input's dtype (as PyTorch has it).
Tensor argmax(const Tensor& t, const Tensor& mask, std::optional<int64_t> dim = {}, bool keepdim = false, std::optional<DType> dtype = {});
Tensor argmin(const Tensor& t, const Tensor& mask, std::optional<int64_t> dim = {}, bool keepdim = false, std::optional<DType> dtype = {});
// NaN of nothing.
Tensor mean(const Tensor& t, const Tensor& mask, const OptionalDims& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
// The lower median along a dimension, NaN of nothing. ValueError for whole numbers of which nothing is left.
Tensor median(const Tensor& t, const Tensor& mask, int64_t dim = -1, bool keepdim = false, std::optional<DType> dtype = {});
Tensor logsumexp(const Tensor& t, const Tensor& mask, const OptionalDims& dims = {}, bool keepdim = false, std::optional<DType> dtype = {});
// log(exp(a) + exp(b)); what a mask leaves out adds nothing.
Tensor logaddexp(const Tensor& a, const Tensor& b, const Tensor& a_mask, const Tensor& b_mask = {}, std::optional<DType> dtype = {});
// linalg::vector_norm; 0 of nothing, inf where ord is -inf.
Tensor norm(const Tensor& t, const Tensor& mask, double ord = 2, const OptionalDims& dims = {}, bool keepdim = false,
            std::optional<DType> dtype = {});
// Over n - correction; of whole numbers in float32 unless a dtype is named. NaN of nothing.
Tensor var(const Tensor& t, const Tensor& mask, const OptionalDims& dims = {}, double correction = 1, bool keepdim = false,
           std::optional<DType> dtype = {});
Tensor std(const Tensor& t, const Tensor& mask, const OptionalDims& dims = {}, double correction = 1, bool keepdim = false,
           std::optional<DType> dtype = {});
// 0 (log_softmax: -inf) where the mask is False, NaN where it leaves nothing of a row.
Tensor softmax(const Tensor& t, const Tensor& mask, int64_t dim, std::optional<DType> dtype = {});
Tensor log_softmax(const Tensor& t, const Tensor& mask, int64_t dim, std::optional<DType> dtype = {});
Tensor softmin(const Tensor& t, const Tensor& mask, int64_t dim, std::optional<DType> dtype = {});
// Divided by the norm along a dimension, which counts as at least eps; 0 where the mask is False.
Tensor normalize(const Tensor& t, const Tensor& mask, double ord, int64_t dim, double eps = 1e-12, std::optional<DType> dtype = {});

}  // namespace naru::masked
