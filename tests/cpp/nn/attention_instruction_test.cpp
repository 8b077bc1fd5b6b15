// The host's attention instruction, compared with attention composed of products.
#include <gtest/gtest.h>

#include "backends/cpu/exec/execute.h"
#include "naru/autograd.h"
#include "naru/nn/functional.h"
#include "naru/ops.h"
#include "ops/tensor/common.h"

namespace naru::nn {
namespace {

using ir::Attention;

Attention::Array array_of_tensor(const Tensor& t) {
  const ir::View v = ops::view_of(t, t.sizes());
  Attention::Array a{v.data, {}};
  for (size_t d = 0; d < 4; ++d) a.strides[d] = v.strides[d];
  return a;
}
double greatest_difference(const Tensor& a, const Tensor& b) { return (a - b).abs().max().item<double>(); }

// Arguments: heads of q, heads of k, queries, keys.
void check_attention(int64_t heads, int64_t key_heads, int64_t queries, int64_t keys, bool causal, const Tensor& mask) {
  const Options wide(DType::F64);
  Tensor q = randn({2, queries, heads, 5}, wide).transpose(1, 2), k = randn({2, key_heads, keys, 5}, wide),
         v = randn({2, key_heads, keys, 3}, wide);
  for (Tensor* t : {&q, &k, &v}) *t = t->detach(), t->requires_grad_();
  const Tensor wanted = functional::scaled_dot_product_attention(q, k, v, mask, 0, causal, 0.7, heads != key_heads),
               g = randn(wanted.sizes(), wide);
  const std::vector<Tensor> gradients = grad({wanted}, {q, k, v}, {g});
  const Tensor out = zeros(wanted.sizes(), wide), stats = zeros({2, heads, queries, 1}, Options(DType::F32));
  const Tensor dq = zeros(q.sizes(), wide), dk = zeros(k.sizes(), wide), dv = zeros(v.sizes(), wide);
  Attention a;
  a.dtype = a.bias_type = DType::F64, a.scale = 0.7, a.causal = causal, a.biased = mask.defined();
  a.batch = 2, a.heads = heads, a.key_heads = key_heads, a.queries = queries, a.keys = keys, a.width = 5, a.value_width = 3;
  a.q = array_of_tensor(q.detach()), a.k = array_of_tensor(k.detach()), a.v = array_of_tensor(v.detach()), a.out = array_of_tensor(out),
  a.stats = array_of_tensor(stats);
  if (mask.defined()) a.bias = array_of_tensor(mask.expand({2, heads, queries, keys}));
  cpu::execute(a);
  EXPECT_LT(greatest_difference(out, wanted.detach()), 1e-12);
  a.use = Attention::Use::Backward;
  a.dout = array_of_tensor(g), a.dq = array_of_tensor(dq), a.dk = array_of_tensor(dk), a.dv = array_of_tensor(dv);
  cpu::execute(a);
  // The statistics are float32.
  EXPECT_LT(greatest_difference(dq, gradients[0]), 1e-5);
  EXPECT_LT(greatest_difference(dk, gradients[1]), 1e-5);
  EXPECT_LT(greatest_difference(dv, gradients[2]), 1e-5);
}

TEST(HostAttention, is_that_of_products) {
  check_attention(3, 3, 7, 7, false, {});
  check_attention(3, 3, 7, 7, true, {});
  check_attention(2, 2, 4, 9, true, {});
  check_attention(2, 2, 9, 4, true, {});
  check_attention(6, 2, 5, 8, false, {});
  check_attention(2, 2, 5, 8, false, randn({5, 8}, Options(DType::F64)));
  check_attention(4, 1, 5, 8, false, randn({2, 1, 1, 8}, Options(DType::F64)));
}

}  // namespace
}  // namespace naru::nn
