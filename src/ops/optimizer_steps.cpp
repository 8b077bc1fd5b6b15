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

// Formula: g += weight_decay p; b = momentum b + (1 - dampening) g (b = g at first); p -= lr (g + momentum b if nesterov, else b).
void sgd_one(const Tensor& p, Tensor g, Tensor& b, const SgdOptions& o) {
  const Chain chain(p.dtype(), "SGD");
  if (o.maximize) g = chain.make(ir::row::neg, {chain.in(g)});
  if (o.weight_decay != 0) g = chain.make(ir::row::add_scaled, {chain.in(g), chain.in(p), chain.in(o.weight_decay)});
  if (o.momentum != 0) {
    if (!b.defined()) {
      b = ops::make_result(p.sizes(), p.dtype(), p.device(), "SGD", true);
      chain.write(ir::row::copy, b, {chain.in(g)});
    } else {
      chain.write(ir::row::mul, b, {chain.in(b), chain.in(o.momentum)});
      chain.write(ir::row::add_scaled, b, {chain.in(b), chain.in(g), chain.in(1 - o.dampening)});
    }
    g = o.nesterov ? chain.make(ir::row::add_scaled, {chain.in(g), chain.in(b), chain.in(o.momentum)}) : b;
  }
  chain.write(ir::row::add_scaled, p, {chain.in(p), chain.in(g), chain.in(-o.lr)});
}

struct AdamState {
  const Tensor &m, &v, &greatest;
};

// Formula (Kingma and Ba, 2015; decoupled: Loshchilov and Hutter, 2019): m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
// p -= lr / (1 - beta1^step) m / (sqrt(v) / sqrt(1 - beta2^step) + eps).
void adam_one(const Tensor& p, Tensor g, const AdamState& s, double step_size, double root, const AdamOptions& o) {
  const Chain chain(p.dtype(), "Adam");
  if (o.maximize) g = chain.make(ir::row::neg, {chain.in(g)});
  if (o.weight_decay != 0 && o.decoupled) chain.write(ir::row::mul, p, {chain.in(p), chain.in(1 - o.lr * o.weight_decay)});
  else if (o.weight_decay != 0) g = chain.make(ir::row::add_scaled, {chain.in(g), chain.in(p), chain.in(o.weight_decay)});
  chain.write(ir::row::lerp, s.m, {chain.in(s.m), chain.in(g), chain.in(1 - o.beta1)});
  chain.write(ir::row::mul, s.v, {chain.in(s.v), chain.in(o.beta2)});
  chain.write(ir::row::addcmul, s.v, {chain.in(s.v), chain.in(g), chain.in(g), chain.in(1 - o.beta2)});
  if (o.amsgrad) chain.write(ir::row::maximum, s.greatest, {chain.in(s.greatest), chain.in(s.v)});
  Tensor d = chain.make(ir::row::sqrt, {chain.in(o.amsgrad ? s.greatest : s.v)});
  d = chain.make(ir::row::div, {chain.in(d), chain.in(root)});
  d = chain.make(ir::row::add, {chain.in(d), chain.in(o.eps)});
  chain.write(ir::row::addcdiv, p, {chain.in(p), chain.in(s.m), chain.in(d), chain.in(-step_size)});
}

// The update of one parameter is one kernel, whatever its neighbours' shapes are.
void run_held_back(const Tensor& p) { runtime::queue_of(p.impl()->storage->device).flush(); }

}  // namespace

// Parameters whose gradient is undefined are left alone.
void sgd_step(const std::vector<Tensor>& params, const std::vector<Tensor>& grads, std::vector<Tensor>& momenta, const SgdOptions& o) {
  check_count(grads.size(), params.size(), "gradients", "SGD");
  momenta.resize(params.size());
  NoGrad guard;
  ops::FuseScope fuse;
  for (size_t i = 0; i < params.size(); ++i) {
    if (!grads[i].defined()) continue;
    check(params[i], grads[i], i, "SGD");
    if (momenta[i].defined()) check_state(momenta[i], params[i], "momentum_buffer", i, "SGD");
    sgd_one(params[i], grads[i], momenta[i], o);
    run_held_back(params[i]);
  }
}

// `step` counts from 1. Parameters whose gradient is undefined are left alone.
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
  const Tensor none;
  NoGrad guard;
  ops::FuseScope fuse;
  for (size_t i = 0; i < params.size(); ++i) {
    if (!grads[i].defined()) continue;
    check(params[i], grads[i], i, op);
    check_state(exp_avg[i], params[i], "exp_avg", i, op);
    check_state(exp_avg_sq[i], params[i], "exp_avg_sq", i, op);
    if (o.amsgrad) check_state(max_exp_avg_sq[i], params[i], "max_exp_avg_sq", i, op);
    adam_one(params[i], grads[i], {exp_avg[i], exp_avg_sq[i], o.amsgrad ? max_exp_avg_sq[i] : none}, step_size, root, o);
    run_held_back(params[i]);
  }
}

}  // namespace naru
