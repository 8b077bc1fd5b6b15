#include "ops/shape/strides.h"

#include <algorithm>
#include <numeric>

#include "core/sizes.h"
#include "core/small_vector.h"
#include "core/tensor_impl.h"
#include "ops/tensor/common.h"
#include "runtime/queue/queue.h"

namespace naru::ops {
namespace {

using Order = SmallVector<size_t, 8>;  // dimensions, smallest stride first

Dims strides_in(const Dims& sizes, const Order& order) {
  Dims strides;
  strides.resize(sizes.size());
  int64_t next = 1;
  bool overflow = false;
  for (const size_t d : order) {
    if (overflow) throw RuntimeError("Stride calculation overflowed (sizes {})", sizes.str());
    strides[d] = next;
    overflow = __builtin_mul_overflow(next, std::max<int64_t>(sizes[d], 1), &next);
  }
  return strides;
}

// Whether dimension a belongs outside b (with the greater stride): 1 yes, -1 no, 0 undecided. Strides of 0 do not count.
int further_out(size_t a, size_t b, const Dims& sizes, std::span<const Dims> operands) {
  for (const Dims& strides : operands) {
    if (strides[a] == 0 || strides[b] == 0) continue;
    if (strides[a] != strides[b]) return strides[a] < strides[b] ? -1 : 1;
    if (sizes[a] > sizes[b]) return 1;
  }
  return 0;
}

}  // namespace

bool is_dense(const Dims& sizes, const Dims& strides) {
  SmallVector<std::pair<int64_t, int64_t>, 8> dims;  // (stride, size)
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return true;
    if (sizes[d] != 1) dims.push_back({strides[d], sizes[d]});
  }
  std::sort(dims.begin(), dims.end());
  int64_t next = 1;
  for (const auto& [stride, size] : dims) {
    if (stride != next) return false;
    next *= size;
  }
  return true;
}

bool is_expanded(const Dims& sizes, const Dims& strides) noexcept {
  for (size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 1 && strides[d] == 0) return true;
  return false;
}

Dims strides_after(const Dims& sizes, std::span<const Dims> operands) {
  Order order;
  for (size_t d = sizes.size(); d-- > 0;) order.push_back(d);
  // Insertion sort, as in PyTorch: the comparison is not transitive.
  for (size_t i = 1; i < order.size(); ++i) {
    size_t at = i;
    for (size_t k = i; k-- > 0;) {
      const int says = further_out(order[k], order[at], sizes, operands);
      if (says < 0) break;
      if (says == 0) continue;
      std::swap(order[k], order[at]);
      at = k;
    }
  }
  return strides_in(sizes, order);
}

Dims elementwise_strides(const Dims& sizes, std::span<const Operand> operands) {
  const TensorImpl* first = nullptr;
  bool alike = true, row_major = true;
  for (const Operand& o : operands) {
    if (!o.is_tensor()) continue;
    const TensorImpl& t = *o.tensor().impl();
    row_major = row_major && t.contiguous;
    if (t.sizes.empty()) continue;
    alike = alike && t.sizes == sizes && (!first || t.strides == first->strides);
    if (!first) first = &t;
  }
  if (row_major || !first) return contiguous_strides(sizes);
  if (alike && is_dense(sizes, first->strides)) return first->strides;
  SmallVector<Dims, 3> spread;
  for (const Operand& o : operands)
    if (o.is_tensor()) {
      const TensorImpl& t = *o.tensor().impl();
      Dims strides;
      strides.resize(sizes.size());
      const size_t shift = sizes.size() - t.sizes.size();
      for (size_t d = 0; d < t.sizes.size(); ++d) strides[shift + d] = t.sizes[d] == 1 && sizes[shift + d] != 1 ? 0 : t.strides[d];
      spread.push_back(strides);
    }
  return strides_after(sizes, {spread.begin(), spread.size()});
}

Dims format_strides(const Dims& sizes, MemoryFormat format) {
  if (format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve) return contiguous_strides(sizes);
  const size_t rank = format == MemoryFormat::ChannelsLast ? 4 : 5;
  if (sizes.size() != rank)
    throw RuntimeError("required rank {} tensor to use {} format (got shape {})", rank, rank == 4 ? "channels_last" : "channels_last_3d",
                       sizes.str());
  Order order;
  order.push_back(1);
  for (size_t d = rank; d-- > 2;) order.push_back(d);
  order.push_back(0);
  return strides_in(sizes, order);
}

MemoryFormat suggested_format(const Tensor& t) {
  const Dims &sizes = t.sizes(), &strides = t.strides();
  const size_t rank = sizes.size();
  if (rank != 4 && rank != 5) return MemoryFormat::Contiguous;
  if (strides[1] == 0) return MemoryFormat::Contiguous;
  // Channels have the smallest stride, then the last spatial dimension ... then the batch; each stride must be at least the extent of the inner
  // dimensions. Sizes of 1 are ambiguous: strides that are also row-major count as row-major.
  int64_t least = 0;
  const auto fits = [&](size_t d) {
    if (sizes[d] == 0 || strides[d] < least) return false;
    if (d == 0 && least == strides[1]) return false;
    least = moved_by(0, std::max<int64_t>(sizes[d], 1), strides[d]);
    return true;
  };
  bool all = fits(1);
  for (size_t d = rank; all && d-- > 2;) all = fits(d);
  if (!all || !fits(0)) return MemoryFormat::Contiguous;
  return rank == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}

Dims gradient_strides(const Tensor& g, std::span<const OpOperand> operands) {
  std::vector<Operand> all{Operand(g)};
  for (const OpOperand& o : operands)
    if (o.tensor && o.tensor != &g) all.emplace_back(*o.tensor);
  return elementwise_strides(g.sizes(), all);
}

Dims strides_like(const Dims& sizes, const Dims& strides, MemoryFormat format) {
  if (format != MemoryFormat::Preserve) return format_strides(sizes, format);
  if (strides == contiguous_strides(sizes) || is_dense(sizes, strides)) return strides;
  const Dims one[] = {strides};
  return strides_after(sizes, one);
}

}  // namespace naru::ops
