// The steps of SGD, Adam and AdamW. Each parameter's update is a chain of elementwise steps, which the queue fuses into one kernel. The
// arithmetic is in PyTorch's order.
#include <cmath>

#include "naru/autograd.h"
#include "naru/ops.h"
#include "ops/common.h"

namespace naru {

using ops::StepOperand;

namespace {

// Elementwise steps in one parameter's type.
class Chain {
 public:
  Chain(DType type, const char* op) : type_(type), op_(op) {}
  StepOperand in(const Tensor& t) const { return {&t, {}, type_}; }
  StepOperand in(double number) const { return {nullptr, number, type_}; }
  // A new tensor, which is never written to memory if nothing else reads it.
  Tensor make(ir::RowId row, std::initializer_list<StepOperand> operands) const { return ops::step(row, operands, type_, op_); }
  void write(ir::RowId row, const Tensor& target, std::initializer_list<StepOperand> operands) const {
    ops::run_step(row, {operands.begin(), operands.size()}, target);
    ops::bump_version(target);
  }

 private:
  DType type_;
  const char* op_;
};

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

}  // namespace

// Formula: g += weight_decay p; b = momentum b + (1 - dampening) g (b = g at first); p -= lr (g + momentum b if nesterov, else b).
// Parameters whose gradient is undefined are left alone.
void sgd_step(const std::vector<Tensor>& params, const std::vector<Tensor>& grads, std::vector<Tensor>& momenta, const SgdOptions& o) {
  const char* op = "SGD";
  check_count(grads.size(), params.size(), "gradients", op);
  if (o.momentum != 0) momenta.resize(params.size());
  NoGrad guard;
  ops::FuseScope fuse;
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& p = params[i];
    if (!grads[i].defined()) continue;
    check(p, grads[i], i, op);
    const Chain chain(p.dtype(), op);
    Tensor g = grads[i];
    if (o.maximize) g = chain.make(ir::row::neg, {chain.in(g)});
    if (o.weight_decay != 0) g = chain.make(ir::row::add_scaled, {chain.in(g), chain.in(p), chain.in(o.weight_decay)});
    if (o.momentum != 0) {
      Tensor& b = momenta[i];
      if (!b.defined()) {
        b = ops::make_result(p.sizes(), p.dtype(), p.device(), op, true);
        chain.write(ir::row::copy, b, {chain.in(g)});
      } else {
        check_state(b, p, "momentum_buffer", i, op);
        chain.write(ir::row::mul, b, {chain.in(b), chain.in(o.momentum)});
        chain.write(ir::row::add_scaled, b, {chain.in(b), chain.in(g), chain.in(1 - o.dampening)});
      }
      g = o.nesterov ? chain.make(ir::row::add_scaled, {chain.in(g), chain.in(b), chain.in(o.momentum)}) : b;
    }
    chain.write(ir::row::add_scaled, p, {chain.in(p), chain.in(g), chain.in(-o.lr)});
  }
}

// Formula (Kingma and Ba, 2015; decoupled: Loshchilov and Hutter, 2019): m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
// p -= lr / (1 - beta1^step) m / (sqrt(v) / sqrt(1 - beta2^step) + eps). `step` counts from 1.
void adam_step(const std::vector<Tensor>& params, const std::vector<Tensor>& grads, const std::vector<Tensor>& exp_avg,
               const std::vector<Tensor>& exp_avg_sq, const std::vector<Tensor>& max_exp_avg_sq, int64_t step, const AdamOptions& o) {
  const char* op = o.decoupled ? "AdamW" : "Adam";
  check_count(grads.size(), params.size(), "gradients", op);
  check_count(exp_avg.size(), params.size(), "exp_avg", op);
  check_count(exp_avg_sq.size(), params.size(), "exp_avg_sq", op);
  if (o.amsgrad) check_count(max_exp_avg_sq.size(), params.size(), "max_exp_avg_sq", op);
  if (step < 1) throw ValueError("{}: step counts from 1, got {}", op, step);
  const auto t = static_cast<double>(step);
  const double step_size = o.lr / (1 - std::pow(o.beta1, t)), root = std::sqrt(1 - std::pow(o.beta2, t));
  NoGrad guard;
  ops::FuseScope fuse;
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& p = params[i];
    if (!grads[i].defined()) continue;
    check(p, grads[i], i, op);
    const Tensor &m = exp_avg[i], &v = exp_avg_sq[i];
    check_state(m, p, "exp_avg", i, op);
    check_state(v, p, "exp_avg_sq", i, op);
    const Chain chain(p.dtype(), op);
    Tensor g = grads[i];
    if (o.maximize) g = chain.make(ir::row::neg, {chain.in(g)});
    if (o.weight_decay != 0 && o.decoupled) chain.write(ir::row::mul, p, {chain.in(p), chain.in(1 - o.lr * o.weight_decay)});
    else if (o.weight_decay != 0) g = chain.make(ir::row::add_scaled, {chain.in(g), chain.in(p), chain.in(o.weight_decay)});
    chain.write(ir::row::lerp, m, {chain.in(m), chain.in(g), chain.in(1 - o.beta1)});
    chain.write(ir::row::mul, v, {chain.in(v), chain.in(o.beta2)});
    chain.write(ir::row::addcmul, v, {chain.in(v), chain.in(g), chain.in(g), chain.in(1 - o.beta2)});
    if (o.amsgrad) {
      check_state(max_exp_avg_sq[i], p, "max_exp_avg_sq", i, op);
      chain.write(ir::row::maximum, max_exp_avg_sq[i], {chain.in(max_exp_avg_sq[i]), chain.in(v)});
    }
    Tensor d = chain.make(ir::row::sqrt, {chain.in(o.amsgrad ? max_exp_avg_sq[i] : v)});
    d = chain.make(ir::row::div, {chain.in(d), chain.in(root)});
    d = chain.make(ir::row::add, {chain.in(d), chain.in(o.eps)});
    chain.write(ir::row::addcdiv, p, {chain.in(p), chain.in(m), chain.in(d), chain.in(-step_size)});
  }
}

}  // namespace naru
