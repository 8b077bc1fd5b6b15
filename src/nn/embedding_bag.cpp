// embedding_bag: rows of a table, reduced (sum, mean, max) within bags.
#include <algorithm>
#include <limits>

#include "autograd/history/constant.h"
#include "naru/autograd.h"
#include "naru/nn/functional.h"
#include "ops/elementwise/host_loop.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru::nn::functional {
namespace {

// 16-bit types are accumulated in float32.
Tensor wide(const Tensor& t) { return t.element_size() == 2 ? t.to(DType::F32) : t; }

void check_types(const Tensor& index, const Tensor& weight, const EmbeddingBagOptions& o) {
  const auto wrong = [](const char* what, const char* wanted, DType got) {
    throw RuntimeError(
        "Expected tensor for argument #1 '{}' to have one of the following scalar types: {}; but got torch.{}Tensor instead (while "
        "checking "
        "arguments for embedding_bag)",
        what, wanted, ops::torch_name(got));
  };
  for (const auto& [t, name] : {std::pair(&index, "indices"), std::pair(&o.offsets, "offsets")})
    if (t->defined() && t->dtype() != DType::I64 && t->dtype() != DType::I32) wrong(name, "Long, Int", t->dtype());
  if (!is_floating(weight.dtype())) wrong("weight", "Half, BFloat16, Float, Double", weight.dtype());
  if (const Tensor& w = o.per_sample_weights; w.defined() && w.dtype() != weight.dtype())
    throw RuntimeError(
        "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 'per_sample_weights'; but type "
        "torch.{}Tensor does not equal torch.{}Tensor (while checking arguments for embedding_bag)",
        ops::torch_name(weight.dtype()), ops::torch_name(w.dtype()));
}

void check_shapes(const Tensor& index, const Tensor& weight, const EmbeddingBagOptions& o) {
  const Tensor& w = o.per_sample_weights;
  if (w.defined() && !(w.sizes() == index.sizes()))
    throw ValueError(
        "embedding_bag: If per_sample_weights (torch.Size({})) is not None, then it must have the same shape as the input (torch.Size({}))",
        w.sizes().str(), index.sizes().str());
  if (weight.dim() != 2) throw ValueError("weight has to be a 2D Tensor, but got Tensor of dimension {}", weight.dim());
  if (index.dim() != 1 && index.dim() != 2)
    throw ValueError("input has to be 1D or 2D Tensor, but got Tensor of dimension {}", index.dim());
  if (index.dim() == 2 && o.offsets.defined())
    throw ValueError(
        "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. However, found "
        "offsets "
        "of type <class 'torch.Tensor'>");
  if (index.dim() == 1 && !o.offsets.defined()) throw ValueError("offsets has to be a 1D Tensor but got None");
  if (index.dim() == 1 && o.offsets.dim() != 1) throw ValueError("offsets has to be a 1D Tensor");
  if (o.mode != "sum" && o.mode != "mean" && o.mode != "max") throw ValueError("mode has to be one of sum, mean or max");
  if (o.mode == "max" && o.scale_grad_by_freq) throw ValueError("max mode does not support scaling the gradient by the frequency");
  if (w.defined() && o.mode != "sum")
    throw NotImplementedError(
        "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got mode='{}'). Please open "
        "a "
        "feature request on GitHub.",
        o.mode);
}

// On cpu, offsets must begin at 0, not decrease, and not exceed `count`.
void check_offsets(const Tensor& offsets, int64_t count, bool with_last) {
  if (with_last && offsets.numel() == 0) throw RuntimeError("include_last_offset: number of offset should be at least 1");
  if (!offsets.device().is_cpu() || offsets.numel() == 0) return;
  const std::vector<int64_t> places = offsets.to_ints();
  if (places.front() != 0)
    throw RuntimeError("offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got {}",
                       places.front());
  if (places.back() > count)
    throw RuntimeError("offsets[-1] can not be greater than input's length {} but got offsets[-1] of {}", count, places.back());
  if (!std::is_sorted(places.begin(), places.end())) throw RuntimeError("embedding_bag: offsets have to be in ascending order");
}

// Reduces rows (N, L, D) to (N, D). counts (N, L): which rows count; undefined: all.
Tensor of_rows(const Tensor& rows, const Tensor& counts, std::string_view mode) {
  if (mode == "max") {
    if (rows.size(1) == 0) return sum(rows, Dims{1});
    if (!counts.defined()) return max(rows, 1).first;
    const Tensor seen = counts.unsqueeze(-1), none = logical_not(any(counts, Dims{1}, true));
    return masked_fill(max(masked_fill(rows, logical_not(seen), -std::numeric_limits<double>::infinity()), 1).first, none, 0.0);
  }
  const Tensor sums = sum(counts.defined() ? masked_fill(rows, logical_not(counts).unsqueeze(-1), 0.0) : rows, Dims{1});
  if (mode == "sum") return sums;
  if (!counts.defined()) return sums / std::max<int64_t>(rows.size(1), 1);
  return sums / clamp_min(sum(counts, Dims{1}, true), 1);
}

// Max of each bag for 1-D indices: pads the bags to the length of the longest.
Tensor greatest(const Tensor& index, const Tensor& weight, const Tensor& begins, const Tensor& ends, int64_t padding) {
  const int64_t bags = begins.numel(), longest = bags ? static_cast<int64_t>(ops::number_or(max(ends - begins), 1)) : 0;
  const Tensor places = begins.unsqueeze(1) + arange(0, longest, 1, Options(DType::I64, index.device()));
  Tensor counts = places < ends.unsqueeze(1);
  const Tensor seen = index_select(index, 0, where(counts, places, zeros_like(places)).reshape({bags * longest})).reshape({bags, longest});
  if (padding >= 0) counts = logical_and(counts, seen != padding);
  return of_rows(naru::embedding(weight, seen, padding), counts, "max");
}

// Sums (or means) of bags of rows: each row is added to the bag that contains its position.
Tensor added_up(const Tensor& rows, const Tensor& counts, const Tensor& offsets, int64_t bags, bool means) {
  const int64_t n = rows.size(0);
  const Options places(DType::I64, rows.device());
  // With include_last_offset, rows after the last offset go to an extra bag, which is dropped.
  const Tensor bag = searchsorted(offsets, arange(0, n, 1, places), false, true) - 1;
  const Tensor kept = wide(counts.defined() ? masked_fill(rows, logical_not(counts).unsqueeze(-1), 0.0) : rows);
  const Tensor sums = index_add(zeros({bags + 1, rows.size(1)}, Options(kept.dtype(), kept.device())), 0, bag, kept).narrow(0, 0, bags);
  if (!means) return sums.to(rows.dtype());
  const Tensor ones_of = counts.defined() ? counts.to(DType::I64) : ones({n}, places);
  const Tensor sizes = index_add(zeros({bags + 1}, places), 0, bag, ones_of).narrow(0, 0, bags);
  return (sums / clamp_min(sizes, 1).unsqueeze(-1)).to(rows.dtype());
}

Tensor bags_of(const Tensor& index, const Tensor& weight, const EmbeddingBagOptions& o) {
  check_shapes(index, weight, o);
  check_types(index, weight, o);
  const int64_t table = weight.size(0);
  int64_t padding = -1;
  if (o.padding_idx) {
    if (*o.padding_idx < -table || *o.padding_idx >= table)
      throw RuntimeError("padding_idx must be within the number of embeddings, -{} through {}, but got {}", table, table - 1,
                         *o.padding_idx);
    padding = *o.padding_idx < 0 ? *o.padding_idx + table : *o.padding_idx;
  }
  const auto none = padding < 0 ? std::nullopt : std::optional(padding);
  const auto rows_of = [&] {
    const Tensor rows = functional::embedding(index, weight, none, o.max_norm, o.norm_type, o.scale_grad_by_freq, o.sparse);
    return o.per_sample_weights.defined() ? rows * o.per_sample_weights.unsqueeze(-1) : rows;
  };
  const Tensor counts = padding < 0 ? Tensor() : index != padding;
  // Fast path: rows of at least two elements are added in order, within one chunk (ir/reduce.h), so a host loop gives the same bits.
  if (index.dim() == 2 && padding < 0 && !o.max_norm && o.mode != "max" && !o.per_sample_weights.defined() && index.dtype() == DType::I64 &&
      weight.size(1) > 1 && index.size(1) <= ir::kStridedChunk && size_of(weight.dtype()) >= 4 &&
      ops::can_use_host_loop({&index, &weight})) {
    const Tensor rows = weight.contiguous(), places = index.contiguous();
    const Tensor out = ops::make_result({index.size(0), weight.size(1)}, weight.dtype(), weight.device(), "embedding_bag");
    ops::run_host_loop(ir::HostLoop::Kind::BagSums, {&places, &rows}, {&out}, {o.mode == "mean" ? index.size(1) : 1});
    return out;
  }
  if (index.dim() == 2) return of_rows(rows_of(), counts, o.mode);
  check_offsets(o.offsets, index.numel(), o.include_last_offset);
  const Tensor offsets = o.offsets.to(DType::I64);
  const int64_t bags = offsets.numel() - (o.include_last_offset ? 1 : 0);
  if (o.mode != "max" || index.numel() == 0) return added_up(rows_of(), counts, offsets, bags, o.mode == "mean");
  if (o.max_norm) rows_of();  // renormalises the rows of the table
  const Tensor end = full({1}, index.numel(), Options(DType::I64, index.device()));
  const Tensor ends = o.include_last_offset ? offsets.narrow(0, 1, bags) : cat({offsets.narrow(0, 1, bags - 1), end});
  return greatest(index, weight, offsets.narrow(0, 0, bags), ends, padding);
}

}  // namespace

Tensor embedding_bag(const Tensor& index, const Tensor& weight, const EmbeddingBagOptions& o) {
  try {
    return autograd::refusing_second(bags_of(index, weight, o), "_embedding_bag_backward");
  } catch (const IndexError& error) {  // an index out of bounds; PyTorch's error type differs from embedding's
    throw RuntimeError("embedding_bag: Expected idx >= 0 && idx < num_embeddings: {}", error.what());
  }
}

}  // namespace naru::nn::functional
