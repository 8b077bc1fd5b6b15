// What optimizers that go parameter by parameter share.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "naru/ops.h"
#include "ops/elementwise/half.h"
#include "optim/checks.h"

namespace naru::optim {

inline Tensor widened(const Tensor& t) { return t.defined() && ops::is_half(t.dtype()) ? t.to(DType::F32) : t; }

// A step of 16-bit parameters is computed in float32, in which eps is not 0 and squares of gradients are not lost, and rounded once: the parameter and its
// state, `handles`, stand for copies in float32 until store().
class Widened {
 public:
  explicit Widened(std::initializer_list<Tensor*> handles) {
    for (Tensor* t : handles)
      if (t->defined() && ops::is_half(t->dtype())) given_.emplace_back(*t, t), *t = widened(*t);
  }
  void store() {
    for (auto& [given, wide] : given_) given.copy_(*wide);
  }

 private:
  std::vector<std::pair<Tensor, Tensor*>> given_;
};

// A parameter's gradient with its sign and, if `decay`, its weight decay.
template <class O>
Tensor gradient_of(const Tensor& p, const O& o, bool decay) {
  Tensor g = p.grad();
  if (o.maximize) g = -g;
  if constexpr (requires { o.weight_decay; })
    if (decay && o.weight_decay != 0) return widened(g) + widened(p) * o.weight_decay;
  return g;
}

}  // namespace naru::optim
