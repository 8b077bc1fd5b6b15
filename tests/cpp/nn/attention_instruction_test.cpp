// The cpu's attention, compared with attention composed of products in float64.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "backends/cpu/exec/execute.h"
#include "cpu/switches.h"
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

struct AttentionShape {
  int64_t batch, heads, key_heads, queries, keys, width, value_width;
};
// Part of a block of queries or keys, several blocks of both, keys shared out, heads that share keys.
constexpr AttentionShape kShapes[] = {{2, 3, 3, 8, 8, 5, 3},      {1, 1, 1, 64, 256, 64, 64}, {1, 2, 1, 9, 31, 32, 33},
                                      {2, 2, 2, 70, 300, 16, 40}, {1, 4, 2, 130, 9, 65, 64},  {1, 1, 1, 200, 1100, 24, 8},
                                      {3, 4, 1, 65, 257, 33, 65}, {1, 1, 1, 1, 700, 8, 8}};

Tensor drawn(const Dims& sizes, DType type, bool turned) {
  Dims as = sizes;
  if (turned) std::swap(as[1], as[2]);
  Tensor t = randn(as, Options(DType::F32)).to(type);
  return turned ? t.transpose(1, 2) : t;
}

// need: which gradients are asked for.
void check_attention(const AttentionShape& s, DType type, bool causal, const Tensor& mask, std::array<bool, 3> need, double tolerance) {
  const bool turned = s.queries % 2 == 0;
  const Tensor q = drawn({s.batch, s.heads, s.queries, s.width}, type, turned),
               k = drawn({s.batch, s.key_heads, s.keys, s.width}, type, !turned),
               v = drawn({s.batch, s.key_heads, s.keys, s.value_width}, type, turned);
  std::vector<Tensor> wide{q.to(DType::F64), k.to(DType::F64), v.to(DType::F64)};
  for (Tensor& t : wide) t = t.detach(), t.requires_grad_();
  const Tensor bias = mask.defined() ? mask.to(DType::F64) : mask;
  const Tensor wanted = functional::scaled_dot_product_attention(wide[0], wide[1], wide[2], bias, 0, causal, 0.7, s.heads != s.key_heads),
               g = randn(wanted.sizes(), Options(DType::F32)).to(type);
  const std::vector<Tensor> gradients = grad({wanted}, wide, {g.to(DType::F64)});
  const Options narrow(type);
  const Tensor out = zeros(wanted.sizes(), narrow), stats = zeros({s.batch, s.heads, s.queries, 1}, Options(DType::F32));
  Attention a;
  a.dtype = type, a.bias_type = mask.defined() ? mask.dtype() : type, a.scale = 0.7, a.causal = causal, a.biased = mask.defined();
  a.batch = s.batch, a.heads = s.heads, a.key_heads = s.key_heads, a.queries = s.queries, a.keys = s.keys, a.width = s.width,
  a.value_width = s.value_width;
  a.q = array_of_tensor(q), a.k = array_of_tensor(k), a.v = array_of_tensor(v), a.out = array_of_tensor(out),
  a.stats = array_of_tensor(stats);
  if (mask.defined()) a.bias = array_of_tensor(mask.expand({s.batch, s.heads, s.queries, s.keys}));
  cpu::execute(a);
  const auto near = [&](const Tensor& got, const Tensor& right) {
    return greatest_difference(got.to(DType::F64), right) <= tolerance * (1 + right.abs().max().item<double>());
  };
  EXPECT_TRUE(near(out, wanted.detach()));
  const Tensor made[] = {zeros(q.sizes(), narrow), zeros(k.sizes(), narrow), zeros(v.sizes(), narrow)};
  Attention::Array* const places[] = {&a.dq, &a.dk, &a.dv};
  a.use = Attention::Use::Backward, a.dout = array_of_tensor(g);
  for (size_t i = 0; i < 3; ++i)
    if (need[i]) *places[i] = array_of_tensor(made[i]);
  std::vector<Tensor> first;
  for (const int threads : {1, 2, 3}) {  // the same bits
    const naru::testing::Threads some(threads);
    cpu::execute(a);
    for (size_t i = 0; i < 3; ++i) {
      if (threads == 1) first.push_back(made[i].clone());
      EXPECT_TRUE(equal(made[i], first[i]));
    }
  }
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(near(made[i], need[i] ? gradients[i] : zeros_like(gradients[i]))) << i;
}

TEST(HostAttention, is_that_of_products) {
  const std::pair<DType, double> types[] = {{DType::F32, 1e-5}, {DType::F16, 2e-3}, {DType::BF16, 1.5e-2}};
  int count = 0;
  for (const auto& [type, tolerance] : types)
    for (const AttentionShape& s : kShapes) {
      SCOPED_TRACE(fmt::format("{} {}x{}", name_of(type), s.queries, s.keys));
      const Tensor masks[] = {Tensor(), randn({s.queries, s.keys}, Options(DType::F32)),
                              randn({s.batch, 1, 1, s.keys}, Options(DType::F32)).to(type)};
      for (const Tensor& mask : masks)
        for (const bool causal : {false, true}) {
          if (causal && mask.defined()) continue;
          ++count;
          const bool some = count % 4 == 0;
          check_attention(s, type, causal, mask, {!some || count % 3 == 0, !some || count % 3 == 1, !some || count % 3 == 2}, tolerance);
        }
    }
}

// Scores beyond what exponentials hold, and rows that see nothing.
TEST(HostAttention, is_finite_where_the_softmax_is) {
  Tensor q = full({1, 1, 8, 4}, 200.0), k = full({1, 1, 300, 4}, 1.0), v = randn({1, 1, 300, 4}, Options(DType::F32));
  k.narrow(2, 290, 10).fill_(-1.0);
  const Tensor wanted = functional::scaled_dot_product_attention(q.to(DType::F64), k.to(DType::F64), v.to(DType::F64));
  EXPECT_LT(greatest_difference(functional::scaled_dot_product_attention(q, k, v).to(DType::F64), wanted), 1e-5);
  Tensor mask = ones({8, 300}, Options(DType::Bool));
  mask.narrow(0, 3, 1).fill_(0);
  const Tensor out = functional::scaled_dot_product_attention(q, k, v, mask);
  EXPECT_EQ(out.narrow(2, 3, 1).abs().max().item<double>(), 0);
  EXPECT_GT(out.narrow(2, 4, 1).abs().max().item<double>(), 0);
  q.narrow(2, 5, 1).fill_(std::numeric_limits<double>::quiet_NaN());
  const Tensor lost = functional::scaled_dot_product_attention(q, k, v).isnan();
  EXPECT_TRUE(all(lost.narrow(2, 5, 1)).item<bool>());
  EXPECT_EQ(lost.sum().item<int64_t>(), 4);
}

}  // namespace
}  // namespace naru::nn
