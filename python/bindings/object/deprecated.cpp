// Deprecated signatures that PyTorch still accepts: a positional factor before the tensor that it scales.
#include "naru/ops/functions.h"
#include "object/tensor_object.h"

namespace naru::py {
namespace {

void define_sums() {
  def(kBoth | kDeprecated, "add", "input, alpha, other, *, out=None", "input + alpha * other.",
      [](const Tensor& a, const Scalar& alpha, const Tensor& b) { return add(a, b, alpha); });
  def(kBoth | kDeprecated, "sub", "input, alpha, other, *, out=None", "input - alpha * other.",
      [](const Tensor& a, const Scalar& alpha, const Tensor& b) { return sub(a, b, alpha); });
  def(kMethod | kDeprecated, "add_", "input, alpha, other", "input += alpha * other.",
      [](const Tensor& a, const Scalar& alpha, const Tensor& b) {
        add_(a, b, alpha);
        return Self();
      });
  def(kMethod | kDeprecated, "sub_", "input, alpha, other", "input -= alpha * other.",
      [](const Tensor& a, const Scalar& alpha, const Tensor& b) {
        sub_(a, b, alpha);
        return Self();
      });
  const auto define = [](const char* name, const char* in_place, const char* doc, auto f, auto f_in_place) {
    def(kBoth | kDeprecated, name, "input, value, tensor1, tensor2, *, out=None", doc,
        [f](const Tensor& a, const Scalar& value, const Tensor& b, const Tensor& c) { return f(a, b, c, value); });
    def(kMethod | kDeprecated, in_place, "input, value, tensor1, tensor2", doc,
        [f_in_place](const Tensor& a, const Scalar& value, const Tensor& b, const Tensor& c) {
          f_in_place(a, b, c, value);
          return Self();
        });
  };
  define("addcmul", "addcmul_", "input + value * tensor1 * tensor2.", &addcmul, &addcmul_);
  define("addcdiv", "addcdiv_", "input + value * tensor1 / tensor2.", &addcdiv, &addcdiv_);
}

void define_old_products() {
  const auto define = [](const char* name, const char* with_alpha, const char* without, const char* doc, auto f) {
    def(kFunction | kDeprecated, name, with_alpha, doc,
        [f](const Scalar& beta, const Tensor& c, const Scalar& alpha, const Tensor& a, const Tensor& b) {
          return f(c, a, b, beta, alpha);
        });
    def(kFunction | kDeprecated, name, without, doc,
        [f](const Scalar& beta, const Tensor& c, const Tensor& a, const Tensor& b) { return f(c, a, b, beta, 1); });
  };
  define("addmm", "beta, input, alpha, mat1, mat2, *, out=None", "beta, input, mat1, mat2, *, out=None",
         "beta * input + alpha * mat1 mat2.", &addmm);
  define("addmv", "beta, input, alpha, mat, vec, *, out=None", "beta, input, mat, vec, *, out=None", "beta * input + alpha * mat vec.",
         &addmv);
  define("baddbmm", "beta, input, alpha, batch1, batch2, *, out=None", "beta, input, batch1, batch2, *, out=None",
         "beta * input + alpha * batch1 batch2.", &baddbmm);
  define("addbmm", "beta, input, alpha, batch1, batch2, *, out=None", "beta, input, batch1, batch2, *, out=None",
         "beta * input + alpha * the sum of batch1 batch2.", &addbmm);
  const auto define_method = [](const char* name, const char* with_alpha, const char* without, const char* doc, auto f) {
    def(kMethod | kDeprecated, name, with_alpha, doc,
        [f](const Tensor& c, const Scalar& beta, const Scalar& alpha, const Tensor& a, const Tensor& b) {
          return f(c, a, b, beta, alpha);
        });
    def(kMethod | kDeprecated, name, without, doc,
        [f](const Tensor& c, const Scalar& beta, const Tensor& a, const Tensor& b) { return f(c, a, b, beta, 1); });
    add_in_place(name);
  };
  define_method("addmm", "input, beta, alpha, mat1, mat2", "input, beta, mat1, mat2", "beta * input + alpha * mat1 mat2.", &addmm);
  define_method("addmv", "input, beta, alpha, mat, vec", "input, beta, mat, vec", "beta * input + alpha * mat vec.", &addmv);
  define_method("addbmm", "input, beta, alpha, batch1, batch2", "input, beta, batch1, batch2",
                "beta * input + alpha * the sum of batch1 batch2.", &addbmm);
  define_method("baddbmm", "input, beta, alpha, batch1, batch2", "input, beta, batch1, batch2", "beta * input + alpha * batch1 batch2.",
                &baddbmm);
}

}  // namespace

void define_deprecated() {
  define_sums();
  define_old_products();
}

}  // namespace naru::py
