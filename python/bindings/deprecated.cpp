// Signatures of PyTorch's past that it still takes: a factor by position, in front of the tensor it scales.
#include "ops/rules.h"
#include "tensor_object.h"

namespace naru::py {
namespace {

Operand negative(const Scalar& s) { return s.is_float() ? Operand(-s.to_double()) : Operand(-s.to_int()); }
Tensor scaled(const Tensor& product, const Scalar& alpha) { return alpha.to_double() == 1 ? product : mul(product, Operand(alpha)); }

// beta * c + alpha * product
Tensor joined(const Tensor& c, const Tensor& product, const Scalar& beta, const Scalar& alpha) {
  return add(scaled(c, beta), scaled(product, alpha));
}

void define_sums() {
  def(kBoth | kDeprecated, "add", "input, alpha, other, *, out=None", "input + alpha * other.",
      [](const Tensor& a, const Scalar& alpha, const Tensor& b) { return add_scaled(a, b, Operand(alpha)); });
  def(kBoth | kDeprecated, "sub", "input, alpha, other, *, out=None", "input - alpha * other.",
      [](const Tensor& a, const Scalar& alpha, const Tensor& b) { return add_scaled(a, b, negative(alpha)); });
  def(kMethod | kDeprecated, "add_", "input, alpha, other", "input += alpha * other.",
      [](const Tensor& a, const Scalar& alpha, const Tensor& b) {
        Tensor(a).add_scaled_(b, Operand(alpha));
        return Self();
      });
  def(kMethod | kDeprecated, "sub_", "input, alpha, other", "input -= alpha * other.",
      [](const Tensor& a, const Scalar& alpha, const Tensor& b) {
        Tensor(a).add_scaled_(b, negative(alpha));
        return Self();
      });
  const auto define = [](const char* name, const char* in_place, const char* doc, auto combine) {
    def(kBoth | kDeprecated, name, "input, value, tensor1, tensor2, *, out=None", doc,
        [combine](const Tensor& a, const Scalar& value, const Tensor& b, const Tensor& c) {
          return add_scaled(a, combine(b, c), Operand(value));
        });
    def(kMethod | kDeprecated, in_place, "input, value, tensor1, tensor2", doc,
        [combine](const Tensor& a, const Scalar& value, const Tensor& b, const Tensor& c) {
          Tensor(a).add_scaled_(combine(b, c), Operand(value));
          return Self();
        });
  };
  define("addcmul", "addcmul_", "input + value * tensor1 * tensor2.", [](const Tensor& b, const Tensor& c) { return mul(b, c); });
  define("addcdiv", "addcdiv_", "input + value * tensor1 / tensor2.", [](const Tensor& b, const Tensor& c) { return div(b, c); });
}

void define_products() {
  const auto define = [](const char* name, const char* with_alpha, const char* without, const char* doc, auto multiply) {
    def(kFunction | kDeprecated, name, with_alpha, doc,
        [multiply](const Scalar& beta, const Tensor& c, const Scalar& alpha, const Tensor& a, const Tensor& b) {
          return joined(c, multiply(a, b), beta, alpha);
        });
    def(kFunction | kDeprecated, name, without, doc, [multiply](const Scalar& beta, const Tensor& c, const Tensor& a, const Tensor& b) {
      return joined(c, multiply(a, b), beta, Scalar(1));
    });
  };
  define("addmm", "beta, input, alpha, mat1, mat2, *, out=None", "beta, input, mat1, mat2, *, out=None",
         "beta * input + alpha * mat1 mat2.", [](const Tensor& a, const Tensor& b) { return mm(a, b); });
  define("addmv", "beta, input, alpha, mat, vec, *, out=None", "beta, input, mat, vec, *, out=None", "beta * input + alpha * mat vec.",
         [](const Tensor& a, const Tensor& b) { return mv(a, b); });
  define("baddbmm", "beta, input, alpha, batch1, batch2, *, out=None", "beta, input, batch1, batch2, *, out=None",
         "beta * input + alpha * batch1 batch2.", [](const Tensor& a, const Tensor& b) { return bmm(a, b); });
}

}  // namespace

void define_deprecated() {
  define_sums();
  define_products();
}

}  // namespace naru::py
