// ctc_loss: forward and backward variables over all alignments, one time step for all samples at once.
#include <algorithm>
#include <limits>
#include <numeric>

#include "autograd/history/history.h"
#include "naru/autograd.h"
#include "naru/ops/functions.h"
#include "naru/ops/losses.h"
#include "ops/call/wrapped.h"
#include "ops/elementwise/host_loop.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru {
namespace {

using Tensors = std::vector<Tensor>;
using Lengths = std::vector<int64_t>;

constexpr double kNever = -std::numeric_limits<double>::infinity();  // log(0)
constexpr const char* kChecking = "(while checking arguments for ctc_loss_allocate_outputs)";

Tensor of_lengths(const Lengths& lengths, Device device) {
  return from_data(lengths.data(), {static_cast<int64_t>(lengths.size())}, DType::I64, Options(device));
}

void check_lengths(const Lengths& lengths, const char* name, int64_t most) {
  for (const int64_t n : lengths) {
    if (n < 0) throw RuntimeError("Expected {} to have value at least 0, but got value {} {}", name, n, kChecking);
    if (n > most) throw RuntimeError("Expected {} to have value at most {}, but got value {} {}", name, most, n, kChecking);
  }
}

void check_sizes(const Tensor& log_probs, const Tensor& targets, const Lengths& inputs, const Lengths& labels, int64_t blank) {
  if (log_probs.numel() == 0) throw RuntimeError("log_probs tensor must not be empty");
  if (log_probs.dim() != 3)
    throw RuntimeError("Expected 3-dimensional tensor, but got {}-dimensional tensor for argument #1 'log_probs' {}", log_probs.dim(),
                       kChecking);
  const int64_t batch = log_probs.size(1);
  if (blank < 0 || blank >= log_probs.size(2)) throw RuntimeError("blank must be in label range");
  if (static_cast<int64_t>(inputs.size()) != batch) throw RuntimeError("input_lengths must be of size batch_size");
  if (static_cast<int64_t>(labels.size()) != batch) throw RuntimeError("target_lengths must be of size batch_size");
  check_lengths(labels, "target_lengths", std::numeric_limits<int64_t>::max());
  check_lengths(inputs, "input_lengths", log_probs.size(0));
  const auto wrong = [](std::string_view wanted, int64_t dim, int64_t got) {
    throw RuntimeError("Expected tensor to have size {} at dimension {}, but got size {} for argument #2 'targets' {}", wanted, dim, got,
                       kChecking);
  };
  if (targets.dim() == 1) {
    if (const int64_t all = std::reduce(labels.begin(), labels.end()); targets.size(0) != all)
      wrong(std::to_string(all), 0, targets.size(0));
  } else if (targets.dim() == 2) {
    if (targets.size(0) != batch) wrong(std::to_string(batch), 0, targets.size(0));
    if (const int64_t most = *std::max_element(labels.begin(), labels.end()); targets.size(1) < most)
      wrong("at least " + std::to_string(most), 1, targets.size(1));
  } else {
    throw RuntimeError("Expected 1 to 2 dimensions, but got {}-dimensional tensor for argument #2 'targets' {}", targets.dim(), kChecking);
  }
}

// The labels as (N, S), padded with blanks after their ends.
Tensor padded_labels(const Tensor& targets, const Lengths& lengths, const Tensor& count, int64_t blank) {
  const auto batch = static_cast<int64_t>(lengths.size());
  const int64_t most = *std::max_element(lengths.begin(), lengths.end());
  const Tensor used = arange(0, most, 1, Options(DType::I64, targets.device())) < count.unsqueeze(1);
  Tensor labels = targets.detach().to(DType::I64);
  if (labels.dim() == 1) {
    if (labels.numel() == 0) return full({batch, most}, blank, Options(DType::I64, targets.device()));
    Lengths first(lengths.size(), 0);
    std::partial_sum(lengths.begin(), lengths.end() - 1, first.begin() + 1);
    const Tensor places = of_lengths(first, labels.device()).unsqueeze(1) + arange(0, most, 1, Options(DType::I64, labels.device()));
    labels = index_select(labels, 0, where(used, places, zeros_like(places)).reshape({-1})).reshape({batch, most});
  }
  return where(used, labels.narrow(1, 0, most), full_like(used, blank, Options(DType::I64)));
}

// A sample's states: its labels with blanks between and around them. Two more states come before the first. No alignment visits them, except that
// before the first time step the state is -1.
struct States {
  Tensor labels;  // (N, L), L = 2 S + 1
  Tensor skips;   // (N, L): 0 if a state may be reached from two states before it, else -infinity
};

States states_of(const Tensor& labels, int64_t blank, DType type) {
  const int64_t batch = labels.size(0), length = 2 * labels.size(1) + 1;
  const Tensor all = full({batch, length}, blank, Options(DType::I64, labels.device()));
  const Tensor skips = full({batch, length}, kNever, Options(type, labels.device()));
  if (length > 1) {
    all.slice(1, 1, std::nullopt, 2).copy_(labels);
    skips.narrow(1, 1, 1).zero_();
  }
  if (length > 3) {
    const Tensor same = labels.narrow(1, 1, labels.size(1) - 1) == labels.narrow(1, 0, labels.size(1) - 1);
    skips.slice(1, 3, std::nullopt, 2).copy_(where(same, full_like(same, kNever, Options(type)), zeros_like(same, Options(type))));
  }
  return {all, skips};
}

// The same, for targets that are ready on the host.
template <class T>
void write_states(const Tensor& targets, const Lengths& lengths, int64_t blank, const States& to) {
  const auto batch = static_cast<int64_t>(lengths.size()), length = to.labels.size(1);
  const int64_t row = targets.dim() == 2 ? targets.size(1) : 0;
  const int64_t* from = targets.numel() ? targets.data<int64_t>() : nullptr;
  auto* label = to.labels.data<int64_t>();
  auto* skip = to.skips.data<T>();
  for (int64_t n = 0; n < batch; ++n, label += length, skip += length) {
    std::fill_n(label, length, blank);
    std::fill_n(skip, length, static_cast<T>(kNever));
    for (int64_t s = 0; s < lengths[static_cast<size_t>(n)]; ++s) label[2 * s + 1] = from[s];
    from += row ? row : lengths[static_cast<size_t>(n)];
    for (int64_t s = 1; s < length; s += 2)
      if (s == 1 || label[s] != label[s - 2]) skip[s] = 0;
  }
}
States states_at_once(const Tensor& targets, const Lengths& lengths, int64_t blank, DType type) {
  const Dims shape{static_cast<int64_t>(lengths.size()), 2 * *std::max_element(lengths.begin(), lengths.end()) + 1};
  const States states{empty(shape, Options(DType::I64, targets.device())), empty(shape, Options(type, targets.device()))};
  const Tensor labels = targets.detach().to(DType::I64).contiguous();
  type == DType::F64 ? write_states<double>(labels, lengths, blank, states) : write_states<float>(labels, lengths, blank, states);
  return states;
}

Tensor at_states(const Tensor& log_probs, const Tensor& labels) {
  return gather(log_probs, 2, labels.unsqueeze(0).expand({log_probs.size(0), -1, -1}));
}

// (T + 1, N, L + 2): log probability of all alignment prefixes that end in a state, before the first step and after each step.
Tensor forward_variables(const Tensor& emitted, const Tensor& skips) {
  const int64_t steps = emitted.size(0), length = emitted.size(2);
  const Tensor all = full({steps + 1, emitted.size(1), length + 2}, kNever, Options(emitted.dtype(), emitted.device()));
  all[0].narrow(1, 1, 1).zero_();
  if (ops::can_use_host_loop({&emitted, &skips})) {
    const Tensor made = emitted.contiguous(), may_skip = skips.contiguous();
    ops::run_host_loop(ir::HostLoop::Kind::CtcForward, {&made, &may_skip}, {&all});
    return all;
  }
  for (int64_t t = 0; t < steps; ++t) {
    const Tensor before = all[t];
    const Tensor near = logaddexp(before.narrow(1, 2, length), before.narrow(1, 1, length));
    all[t + 1].narrow(1, 2, length).copy_(logaddexp(near, before.narrow(1, 0, length) + skips) + emitted[t]);
  }
  return all;
}

// (T, N, L): log probability of all alignment suffixes that follow a state.
Tensor backward_variables(const Tensor& emitted, const Tensor& skips, const Tensor& inputs, const Tensor& counts) {
  const int64_t steps = emitted.size(0), batch = emitted.size(1), length = emitted.size(2);
  const Options options(emitted.dtype(), emitted.device());
  const Tensor all = empty({steps, batch, length}, options);
  // Backward variable plus emission of each state at the next step. Two states that are never reached follow the last one.
  const Tensor next = full({batch, length + 2}, kNever, options);
  const Tensor onward = full({batch, length}, kNever, options);  // 0 if the state after the next may be reached directly
  if (length > 2) onward.narrow(1, 0, length - 2).copy_(skips.narrow(1, 2, length - 2));
  const Tensor places = arange(0, length, 1, Options(DType::I64, emitted.device())), ends = 2 * counts.unsqueeze(1);
  const Tensor is_last = logical_or(places == ends, places == ends - 1);
  const Tensor last = where(is_last, zeros_like(skips), full_like(skips, kNever));
  for (int64_t t = steps - 1; t >= 0; --t) {
    const Tensor near = logaddexp(next.narrow(1, 0, length), next.narrow(1, 1, length));
    const Tensor here = where((inputs == t + 1).unsqueeze(1), last, logaddexp(near, next.narrow(1, 2, length) + onward));
    all[t].copy_(here);
    next.narrow(1, 0, length).copy_(here + emitted[t]);
  }
  return all;
}

// The gradient of the losses (N), weighted by g, with respect to log_probs.
Tensor gradient(const Tensor& g, const Tensors& saved, bool zero_infinity) {
  const NoGrad guard;
  const Tensor &log_probs = saved[0], &labels = saved[1], &skips = saved[2], &inputs = saved[3], &counts = saved[4], &forward = saved[5],
               &losses = saved[6];
  const Tensor emitted = at_states(log_probs, labels);
  const Tensor backward = backward_variables(emitted, skips, inputs, counts);
  const int64_t steps = log_probs.size(0), length = labels.size(1);
  const Tensor shares = exp(forward.narrow(0, 1, steps).narrow(2, 2, length) + backward + losses.unsqueeze(1));
  const Tensor occupied = scatter_add(zeros_like(log_probs), 2, labels.unsqueeze(0).expand({steps, -1, -1}), shares);
  Tensor out = (exp(log_probs) - occupied) * g.unsqueeze(1);
  out = masked_fill(out, isinf(losses).unsqueeze(1), zero_infinity ? 0.0 : std::numeric_limits<double>::quiet_NaN());
  const Tensor time = arange(0, steps, 1, Options(DType::I64, log_probs.device())).reshape({steps, 1});
  return masked_fill(out, (time >= inputs).unsqueeze(2), 0.0);
}

}  // namespace

Tensor ctc_loss(const Tensor& given, const Tensor& targets, const Lengths& input_lengths, const Lengths& target_lengths, int64_t blank,
                Reduction reduction, bool zero_infinity) {
  const auto again = [](const auto&... a) { return ctc_loss(a...); };
  if (auto y = ops::wrapped("ctc_loss", again, given, targets, input_lengths, target_lengths, blank, reduction, zero_infinity))
    return *std::move(y);
  ops::require_defined(given, "ctc_loss", "log_probs");
  ops::require_defined(targets, "ctc_loss", "targets");
  const Tensor* tensors[] = {&given, &targets};
  const char* roles[] = {"log_probs", "targets"};
  const Device device = ops::common_device(tensors, roles, "ctc_loss");
  const Tensor log_probs = given.dim() == 3 ? given : given.unsqueeze(1);
  check_sizes(log_probs, targets, input_lengths, target_lengths, blank);
  if (log_probs.dtype() != DType::F32 && log_probs.dtype() != DType::F64) ops::throw_not_implemented("ctc_loss_cpu", log_probs.dtype());
  Tensor losses, inputs, counts, forward;
  States states;
  {
    const NoGrad guard;
    inputs = of_lengths(input_lengths, device), counts = of_lengths(target_lengths, device);
    states = device.is_cpu() && !ops::recording_host()
                 ? states_at_once(targets, target_lengths, blank, log_probs.dtype())
                 : states_of(padded_labels(targets, target_lengths, counts, blank), blank, log_probs.dtype());
    forward = forward_variables(at_states(log_probs, states.labels), states.skips);
    // Each alignment ends in one of the last two states. Without labels there is only one; the other index is then a padding state before the first.
    const int64_t batch = log_probs.size(1), length = forward.size(2);
    Lengths ends;
    for (const int64_t back : {2, 1})
      for (int64_t n = 0; n < batch; ++n) {
        const auto i = static_cast<size_t>(n);
        ends.push_back((input_lengths[i] * batch + n) * length + 2 * target_lengths[i] + back);
      }
    const Tensor last = take(forward, of_lengths(ends, device)).view({2, batch});
    losses = -logaddexp(last[0], last[1]);
  }
  Tensor out = zero_infinity ? masked_fill(losses, isinf(losses), 0.0) : losses.clone();
  out = autograd::record(std::move(out), "CtcLossBackward0", {&log_probs},
                         {&log_probs, &states.labels, &states.skips, &inputs, &counts, &forward, &losses},
                         [zero_infinity](const Tensors& g, const Tensors& saved) -> Tensors {
                           return {autograd::record(gradient(g[0], saved, zero_infinity), "CtcLossBackwardBackward0", {&g[0], &saved[0]},
                                                    {}, [](const Tensors&, const Tensors&) -> Tensors {
                                                      throw RuntimeError("derivative for aten::_ctc_loss_backward is not implemented");
                                                    })};
                         });
  if (reduction == Reduction::Mean) return mean(out / clamp_min(counts, 1));
  if (reduction == Reduction::Sum) return sum(out);
  return given.dim() == 3 ? out : out.squeeze(0);
}

Tensor ctc_loss(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths, const Tensor& target_lengths, int64_t blank,
                Reduction reduction, bool zero_infinity) {
  const auto read = [](const Tensor& t, const char* name) {
    ops::require_defined(t, "ctc_loss", name);
    if (is_inexact(t.dtype()) || t.dtype() == DType::Bool) throw RuntimeError("{} must be integral", name);
    return t.to_ints();
  };
  return ctc_loss(log_probs, targets, read(input_lengths, "input_lengths"), read(target_lengths, "target_lengths"), blank, reduction,
                  zero_infinity);
}

}  // namespace naru
