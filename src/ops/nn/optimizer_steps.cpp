// The steps of SGD, Adam and AdamW. Each parameter's update is one program over the parameter, its gradient and its state: one kernel, or, where the
// device can do that, one for many parameters. The arithmetic is in PyTorch's order.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "autograd/history/history.h"
#include "core/small_vector.h"
#include "ir/program_builder.h"
#include "naru/autograd.h"
#include "naru/device/graph.h"
#include "naru/ops.h"
#include "naru/ops/functions.h"
#include "ops/elementwise/half.h"
#include "ops/nn/update_batch.h"
#include "ops/sparse/sparse.h"
#include "ops/tensor/common.h"
#include "runtime/queue/capture.h"
#include "runtime/queue/host_work.h"

namespace naru {
namespace {

// A program that is written down like the arithmetic it stands for. Operators compute in one type (float32 for 16-bit ones, where eps is not 0); what a
// tensor is given last is rounded to its own.
class Update {
 public:
  // A tensor, a value on the way, or a number.
  struct Value {
    int cell = -1;
    double number = 0;
    Value(double n) : number(n) {}
    static Value at(int cell) {
      Value v(0.0);
      v.cell = cell;
      return v;
    }
  };
  Update(DType type, ops::UpdateBatch& batch) : type_(ops::is_half(type) ? DType::F32 : type), batch_(batch) {}
  Update(const Update&) = delete;

  // All tensors come before the first operator.
  Value tensor(const Tensor& t, bool scalar = false) {
    const ir::Program::Arg arg = builder_.input(t.dtype(), type_, scalar);
    tensors_[arg.index] = &t;
    return add_cell(arg);
  }
  // A tensor of one element that stands beside tensors of any shape.
  Value single(const Tensor& t) { return tensor(t, tensors_[0]->numel() > 1 || batch_.takes(*tensors_[0])); }
  Value make(ir::OpId id, std::initializer_list<Value> operands) { return add_cell(add_node(id, operands, type_)); }
  // `target` was given by tensor().
  void write(ir::OpId id, Value target, std::initializer_list<Value> operands) {
    cells_[target.cell] = add_node(id, operands, type_);
    written_ |= 1u << target.cell;
  }

  // Does it, or adds it to the batch (variant: see there), and counts the writes.
  void run(const char* op, int variant = 0);

 private:
  static constexpr int kTensors = 8;
  Value add_cell(ir::Program::Arg where) {
    cells_.push_back(where);
    return Value::at(static_cast<int>(cells_.size()) - 1);
  }
  ir::Program::Arg add_node(ir::OpId id, std::initializer_list<Value> operands, DType out) {
    ir::Program::Node& node = builder_.begin_node(id, out);
    for (const Value& v : operands) {
      if (v.cell < 0) params_[program_.params_count] = ops::param_bits(v.number, type_);
      node.args[node.args_count++] = v.cell < 0 ? builder_.param(type_) : cells_[v.cell];
    }
    return builder_.result(program_.nodes_count - 1, type_);
  }
  bool run_immediate();

  DType type_;
  ops::UpdateBatch& batch_;
  ir::Program program_;
  ir::ProgramBuilder builder_{program_};
  std::array<const Tensor*, kTensors> tensors_{};
  std::array<uint64_t, ir::kMaxParams> params_;
  SmallVector<ir::Program::Arg, 16> cells_;  // where each value is now
  unsigned written_ = 0;
};

// Small, dense, idle tensors on the cpu: by a kernel that the thread remembers.
bool Update::run_immediate() {
  const TensorImpl& first = *tensors_[0]->impl();
  if (first.numel > ops::kSmall) return false;
  std::array<void*, 2 * kTensors> addresses;
  int n = 0;
  for (int i = 0; i < program_.inputs_count; ++i) {
    const TensorImpl& t = *tensors_[i]->impl();
    if (!ops::is_host_ready(t)) return false;
    addresses[n++] = t.address();
  }
  for (int i = 0; i < program_.inputs_count; ++i)
    if (written_ >> i & 1) addresses[n++] = tensors_[i]->impl()->address();
  static thread_local ir::Program known;
  static thread_local const runtime::DirectKernel* kernel = nullptr;
  if (!kernel || !known.same(program_)) {
    kernel = &runtime::host_work().kernel(program_);
    known = program_;
  }
  kernel->run(addresses.data(), params_.data(), first.numel);
  return true;
}

void Update::run(const char* op, int variant) {
  const Tensor& first = *tensors_[0];
  if (first.numel() == 0) return;
  const auto given = std::span(tensors_).first(program_.inputs_count);
  for (int i = 0; i < program_.inputs_count; ++i)
    if (written_ >> i & 1) {
      const DType type = tensors_[i]->dtype();
      builder_.output(type == type_ ? cells_[i].index : add_node(ir::op::copy, {Value::at(i)}, type).index);
    }
  if (batch_.add(program_, std::span(params_).first(program_.params_count), given, written_, variant)) return;
  batch_.finish();
  // What a program reads it may write, but only in the same places.
  std::array<Tensor, kTensors> apart;
  for (int i = 1; i < program_.inputs_count; ++i)
    for (int k = 0; k < i; ++k)
      if (const TensorImpl& a = *tensors_[i]->impl(), &b = *tensors_[k]->impl();
          a.storage.get() == b.storage.get() && (a.offset != b.offset || a.dtype != b.dtype || !(a.strides == b.strides))) {
        if (written_ >> i & 1)
          throw RuntimeError("{}: a parameter and its state, or two states, lie in the same memory; clone() one of them", op);
        apart[i] = tensors_[i]->detach().clone();
        tensors_[i] = &apart[i];
        break;
      }
  for (int i = 0; i < program_.inputs_count; ++i)
    if (written_ >> i & 1) autograd::before_write(*tensors_[i]);
  if (!run_immediate()) {
    ir::Map map;
    map.shape = first.sizes();
    map.params.assign(params_.begin(), params_.begin() + program_.params_count);
    std::vector<const Tensor*> writes;
    for (int i = 0; i < program_.inputs_count; ++i) {
      map.inputs.push_back(ops::view_of(*tensors_[i], map.shape));
      if (!(written_ >> i & 1)) continue;
      map.outputs.push_back(map.inputs.back());
      writes.push_back(tensors_[i]);
    }
    map.program = program_;
    ops::submit(std::move(map), given, writes);
  }
  for (int i = 0; i < program_.inputs_count; ++i)
    if (written_ >> i & 1) ops::bump_version(*tensors_[i]);
}

void check(const Tensor& p, const Tensor& g, size_t i, const char* op) {
  ops::require_defined(p, op, "a parameter");
  const Tensor* tensors[] = {&p, &g};
  const char* roles[] = {"parameter", "gradient"};
  ops::common_device(tensors, roles, op);
  if (!is_floating(p.dtype())) throw RuntimeError("{}: parameter {} must be of a floating point type, got {}", op, i, name_of(p.dtype()));
  if (!(p.sizes() == g.sizes()))
    throw RuntimeError("{}: the gradient of parameter {} has shape {}, the parameter {}", op, i, g.sizes().str(), p.sizes().str());
}

void check_state(const Tensor& state, const Tensor& p, const char* name, size_t i, const char* op) {
  ops::require_defined(state, op, name);
  if (!(state.sizes() == p.sizes()) || !(state.device() == p.device()))
    throw RuntimeError("{}: the state {} of parameter {} is of shape {} on {}, the parameter of {} on {}", op, name, i, state.sizes().str(),
                       state.device().str(), p.sizes().str(), p.device().str());
}

void check_count(size_t got, size_t wanted, const char* name, const char* op) {
  if (got != wanted) throw RuntimeError("{}: got {} of {} for {} parameters", op, got, name, wanted);
}

using Value = Update::Value;

// The first step differs from those behind it.
[[noreturn]] void refuse_first(const char* op) {
  runtime::Capture::current()->refuse(
      fmt::format("the first step of {} makes its state, which each replay would make anew; do one step before the capture", op));
}

// Formula: g += weight_decay p; b = momentum b + (1 - dampening) g (b = g at first); p -= lr (g + momentum b if nesterov, else b).
void sgd_one(const Tensor& parameter, const Tensor& gradient, Tensor& momentum, const SgdOptions& o, ops::UpdateBatch& batch) {
  const bool first = !momentum.defined();
  if (first && o.momentum != 0 && is_capturing(parameter.device())) refuse_first("SGD");
  if (o.momentum != 0 && first) momentum = ops::make_result(parameter.sizes(), parameter.dtype(), parameter.device(), "SGD");
  const Tensor* const tensors[] = {&parameter, &gradient, &momentum};
  if (batch.add_like_others({tensors, o.momentum != 0 ? 3u : 2u}, first)) return;
  Update u(parameter.dtype(), batch);
  const Value p = u.tensor(parameter);
  Value g = u.tensor(gradient);
  const Value b = o.momentum != 0 ? u.tensor(momentum) : g;
  if (o.maximize) g = u.make(ir::op::neg, {g});
  if (o.weight_decay != 0) g = u.make(ir::op::add_scaled, {g, p, o.weight_decay});
  if (o.momentum != 0) {
    if (first) {
      u.write(ir::op::copy, b, {g});
    } else {
      u.write(ir::op::mul, b, {b, o.momentum});
      u.write(ir::op::add_scaled, b, {b, g, 1 - o.dampening});
    }
    g = o.nesterov ? u.make(ir::op::add_scaled, {g, b, o.momentum}) : b;
  }
  u.write(ir::op::add_scaled, p, {p, g, -o.lr});
  u.run("SGD", first);
}

struct AdamState {
  const Tensor &m, &v, &greatest;
};
// - lr / (1 - beta1^step), sqrt(1 - beta2^step) and (decoupled) 1 - lr weight_decay, as numbers, or made on the device.
struct AdamScale {
  double size = 0, root = 0, kept = 1;
  Tensor size_made, root_made, kept_made;
};

// Formula (Kingma and Ba, 2015; decoupled: Loshchilov and Hutter, 2019): m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
// p -= lr / (1 - beta1^step) m / (sqrt(v) / sqrt(1 - beta2^step) + eps).
void adam_one(const Tensor& parameter, const Tensor& gradient, const AdamState& s, const AdamScale& scale, const AdamOptions& o,
              ops::UpdateBatch& batch) {
  SmallVector<const Tensor*, 8> tensors{&parameter, &gradient, &s.m, &s.v};
  if (o.amsgrad) tensors.push_back(&s.greatest);
  for (const Tensor* t : {&scale.size_made, &scale.root_made, &scale.kept_made})
    if (t->defined()) tensors.push_back(t);
  if (batch.add_like_others({tensors.begin(), tensors.size()}, 0)) return;
  Update u(parameter.dtype(), batch);
  const Value p = u.tensor(parameter);
  Value g = u.tensor(gradient);
  const Value m = u.tensor(s.m), v = u.tensor(s.v), greatest = o.amsgrad ? u.tensor(s.greatest) : v;
  const bool made = scale.size_made.defined();
  const Value size = made ? u.single(scale.size_made) : Value(scale.size), root = made ? u.single(scale.root_made) : Value(scale.root);
  const Value kept = scale.kept_made.defined() ? u.single(scale.kept_made) : Value(scale.kept);
  if (o.maximize) g = u.make(ir::op::neg, {g});
  if (o.weight_decay != 0 && o.decoupled)
    u.write(ir::op::mul, p, {p, kept});
  else if (o.weight_decay != 0)
    g = u.make(ir::op::add_scaled, {g, p, o.weight_decay});
  u.write(ir::op::lerp, m, {m, g, 1 - o.beta1});
  u.write(ir::op::mul, v, {v, o.beta2});
  u.write(ir::op::addcmul, v, {v, g, g, 1 - o.beta2});
  if (o.amsgrad) u.write(ir::op::maximum, greatest, {greatest, v});
  Value d = u.make(ir::op::sqrt, {greatest});
  d = u.make(ir::op::div, {d, root});
  d = u.make(ir::op::add, {d, o.eps});
  u.write(ir::op::addcdiv, p, {p, m, d, size});
  u.run(o.decoupled ? "AdamW" : "Adam");
}

}  // namespace

namespace {
// The momentum of sparse gradients is sparse.
void sparse_sgd(const Tensor& p, const Tensor& grad, Tensor& momentum, const SgdOptions& o) {
  Tensor g = o.maximize ? -grad : grad;
  if (o.weight_decay != 0) g = add(g, p, o.weight_decay);  // throws: the sum would be dense
  if (o.momentum != 0) {
    momentum = momentum.defined() ? add(momentum * o.momentum, g, 1 - o.dampening) : g.clone();
    g = o.nesterov ? add(g, momentum, o.momentum) : momentum;
  }
  add_(p, g, -o.lr);
}
}  // namespace

// Parameters whose gradient is undefined are left alone.
void sgd_step(const std::vector<Tensor>& params, const std::vector<Tensor>& grads, std::vector<Tensor>& momenta, const SgdOptions& o) {
  check_count(grads.size(), params.size(), "gradients", "SGD");
  momenta.resize(params.size());
  NoGrad guard;
  ops::UpdateBatch batch;
  for (size_t i = 0; i < params.size(); ++i) {
    if (!grads[i].defined()) continue;
    check(params[i], grads[i], i, "SGD");
    if (ops::has_sparse_form(grads[i])) {
      batch.finish();
      sparse_sgd(params[i], grads[i], momenta[i], o);
      continue;
    }
    if (momenta[i].defined()) check_state(momenta[i], params[i], "momentum_buffer", i, "SGD");
    sgd_one(params[i], grads[i], momenta[i], o, batch);
  }
  batch.finish();
}

namespace {

void adam_steps(const std::vector<Tensor>& params, const std::vector<Tensor>& grads, const std::vector<Tensor>& exp_avg,
                const std::vector<Tensor>& exp_avg_sq, const std::vector<Tensor>& max_exp_avg_sq, const AdamScale& scale,
                const AdamOptions& o) {
  const char* op = o.decoupled ? "AdamW" : "Adam";
  check_count(grads.size(), params.size(), "gradients", op);
  check_count(exp_avg.size(), params.size(), "exp_avg", op);
  check_count(exp_avg_sq.size(), params.size(), "exp_avg_sq", op);
  if (o.amsgrad) check_count(max_exp_avg_sq.size(), params.size(), "max_exp_avg_sq", op);
  const Tensor none;
  ops::UpdateBatch batch;
  for (size_t i = 0; i < params.size(); ++i) {
    if (!grads[i].defined()) continue;
    check(params[i], grads[i], i, op);
    if (ops::has_sparse_form(grads[i]))
      throw RuntimeError("{} does not support sparse gradients{}", op, o.decoupled ? "" : ", please consider SparseAdam instead");
    check_state(exp_avg[i], params[i], "exp_avg", i, op);
    check_state(exp_avg_sq[i], params[i], "exp_avg_sq", i, op);
    if (o.amsgrad) check_state(max_exp_avg_sq[i], params[i], "max_exp_avg_sq", i, op);
    adam_one(params[i], grads[i], {exp_avg[i], exp_avg_sq[i], o.amsgrad ? max_exp_avg_sq[i] : none}, scale, o, batch);
  }
  batch.finish();
}

}  // namespace

// `step` counts from 1. Parameters whose gradient is undefined are left alone.
void adam_step(const std::vector<Tensor>& params, const std::vector<Tensor>& grads, const std::vector<Tensor>& exp_avg,
               const std::vector<Tensor>& exp_avg_sq, const std::vector<Tensor>& max_exp_avg_sq, int64_t step, const AdamOptions& o) {
  const char* op = o.decoupled ? "AdamW" : "Adam";
  if (step < 1) throw ValueError("{}: step counts from 1, got {}", op, step);
  if (!params.empty() && params[0].defined() && is_capturing(params[0].device()))
    runtime::Capture::current()->refuse(
        fmt::format("Attempting CUDA graph capture of step() for an instance of {} but param_groups' capturable is False.", op));
  const auto t = static_cast<double>(step);
  NoGrad guard;
  adam_steps(params, grads, exp_avg, exp_avg_sq, max_exp_avg_sq,
             {-o.lr / (1 - std::pow(o.beta1, t)), std::sqrt(1 - std::pow(o.beta2, t)), 1 - o.lr * o.weight_decay, {}, {}, {}}, o);
}

void adam_step(const std::vector<Tensor>& params, const std::vector<Tensor>& grads, const std::vector<Tensor>& exp_avg,
               const std::vector<Tensor>& exp_avg_sq, const std::vector<Tensor>& max_exp_avg_sq, Tensor& step, const Operand& lr,
               const AdamOptions& o) {
  NoGrad guard;
  AdamScale scale;
  {
    ops::ForceFusion fuse;
    step.add_(1);
    scale.size_made = div(lr, sub(pow(Operand(o.beta1), Operand(step)), 1));
    scale.root_made = sqrt(sub(1, pow(Operand(o.beta2), Operand(step))));
    if (!lr.is_tensor())
      scale.kept = 1 - lr.scalar().to_double() * o.weight_decay;
    else if (o.decoupled && o.weight_decay != 0)
      scale.kept_made = sub(1, mul(lr, o.weight_decay));
  }
  adam_steps(params, grads, exp_avg, exp_avg_sq, max_exp_avg_sq, scale, o);
}

}  // namespace naru
