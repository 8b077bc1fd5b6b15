// multinomial: samples category indices by weight.
#include "naru/autograd.h"
#include "naru/ops.h"
#include "ops/random/host_draws.h"
#include "ops/reduce/reduction.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {

namespace {

bool all_weights_fit(const Tensor& w) {
  const DType type = w.dtype();
  ops::FusedProducer fits(ir::op::ge, DType::Bool, {ops::FusedProducer::of(w, type), ops::FusedProducer::of(0.0, type)});
  fits.then(ir::op::isfinite, DType::Bool, {ops::FusedProducer::of(w, type)});
  fits.then(ir::op::logical_and, DType::Bool, {ops::FusedProducer::node(0, DType::Bool), ops::FusedProducer::node(1, DType::Bool)});
  return ops::holds(
      ops::reduce(ir::ReduceOp::All, fits, w.sizes(), ops::dim_set(std::nullopt, w.dim()), false, DType::Bool, "multinomial"));
}

}  // namespace

// With replacement: each sample is the first category whose running sum of weights exceeds u times the total. Without: draw exponential arrival times
// with the weights as rates; the earliest arrivals are the samples, in order.
Tensor multinomial(const Tensor& weights, int64_t samples, bool replacement, Generator* generator) {
  const char* op = "multinomial";
  ops::require_defined(weights, op, "input");
  NoGrad guard;
  if (weights.dim() != 1 && weights.dim() != 2)
    throw RuntimeError("prob_dist must be 1 or 2 dim (multinomial: got shape {})", weights.sizes().str());
  if (!is_floating(weights.dtype()))
    throw RuntimeError("multinomial only supports floating-point dtypes for input, got: {}", ops::torch_name(weights.dtype()));
  if (samples <= 0) throw RuntimeError("cannot sample n_sample <= 0 samples (got {})", samples);
  const int64_t categories = weights.size(-1);
  if (!replacement && samples > categories)
    throw RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement (got {} of {})", samples, categories);
  if (categories > (int64_t{1} << 24)) throw RuntimeError("number of categories cannot exceed 2^24 (got {})", categories);
  const bool flat = weights.dim() == 1;
  const Tensor w = (flat ? weights.detach().unsqueeze(0) : weights.detach()).to(weights.dtype() == DType::F64 ? DType::F64 : DType::F32);
  const int64_t rows = w.size(0);
  if (rows == 0) return empty({0, samples}, Options(DType::I64, w.device()));
  if (!all_weights_fit(w)) throw RuntimeError("probability tensor contains either `inf`, `nan` or element < 0");
  if (ops::number_or(amin(sum(w, Dims{1})), 1) <= 0) throw RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)");
  Tensor chosen;
  const bool as_pytorch = ops::draws_as_pytorch();
  if (as_pytorch && replacement && samples > 1) {
    chosen = ops::host_categories(w, samples, generator);
  } else if (replacement && !as_pytorch) {
    const Tensor running = cumsum(w, 1);
    const Tensor u = rand({rows, samples}, Options(w.dtype(), w.device()), generator) * running.narrow(1, categories - 1, 1);
    const Tensor lines = running.unsqueeze(1), at = u.unsqueeze(2);
    chosen = ops::reduce(
        ir::ReduceOp::Sum,
        ops::FusedProducer(ir::op::le, DType::I64, {ops::FusedProducer::of(lines, w.dtype()), ops::FusedProducer::of(at, w.dtype())}),
        {rows, samples, categories}, ops::dim_set(2, 3), false, DType::I64, op);
  } else {
    Tensor times = empty(w.sizes(), Options(w.dtype(), w.device()));
    exponential_(times, 1, generator);
    // Keep times above 0: a weight of 0 must give an infinite time, not 0 / 0.
    if (as_pytorch) {
      const Tensor rates = w / times;
      chosen = samples == 1 ? argmax(rates, 1, true) : topk(rates, samples, 1, true, true).second;
      return flat ? chosen.squeeze(0) : chosen;
    }
    times = clamp_min(times, 1e-30) / w;
    chosen = samples == 1 ? argmin(times, 1, true) : topk(times, samples, 1, false, true).second;
  }
  return flat ? chosen.squeeze(0) : chosen;
}

}  // namespace naru
