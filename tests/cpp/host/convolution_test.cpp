#include <gtest/gtest.h>

#include <cmath>

#include "host/execute.h"
#include "host/switches.h"
#include "support/arrays.h"

namespace naru::host {
namespace {

using ir::Convolution;
using testing::Array;
using testing::Layout;
using testing::Threads;
using Use = Convolution::Use;

struct Shape {
  int64_t batch, groups, in, out;
  Convolution::Sizes size, kernel, stride, padding, dilation;
};
const Shape kShapes[] = {
    {1, 1, 1, 1, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}},
    {2, 1, 3, 5, {1, 9, 7}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},
    {2, 3, 2, 4, {1, 8, 9}, {1, 3, 2}, {1, 2, 3}, {0, 2, 1}, {1, 1, 2}},
    {1, 6, 1, 1, {1, 20, 33}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},
    {2, 1, 2, 3, {5, 6, 7}, {2, 3, 3}, {2, 1, 1}, {1, 0, 1}, {1, 2, 1}},
    {1, 1, 40, 9, {1, 12, 14}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},
    {1, 1, 4, 3, {1, 1, 300}, {1, 1, 5}, {1, 1, 4}, {0, 0, 3}, {1, 1, 1}},
    {2, 1, 2, 2, {1, 4, 4}, {1, 2, 2}, {1, 5, 5}, {0, 0, 0}, {1, 1, 1}},
};

Dims dims(const std::array<int64_t, 5>& a) { return Dims(std::span<const int64_t>(a)); }

// The operands of a shape; whichever the use writes is written.
struct Operands {
  Convolution q;
  Array x, w, y, bias;

  Operands(const Shape& s, Use use, DType type, Layout layout, bool with_bias)
      : q(geometry(s, use, type)),
        x(dims(q.sizes_of_x()), type, layout, 1),
        w(dims(q.sizes_of_w()), type, layout, 2),
        y(dims(q.sizes_of_y()), type, layout, 3),
        bias({q.groups * (use == Use::Forward ? q.out : q.in)}, type, Layout::Contiguous, 4) {
    const auto set = [](Convolution::Array& a, Array& from) {
      a.data = from.at(0);
      std::copy_n(from.strides().begin(), 5, a.strides.begin());
    };
    set(q.x, x), set(q.w, w), set(q.y, y);
    if (with_bias) q.bias = bias.at(0);
  }
  static Convolution geometry(const Shape& s, Use use, DType type) {
    Convolution q;
    q.use = use, q.dtype = type;
    q.batch = s.batch, q.groups = s.groups, q.in = s.in, q.out = s.out;
    q.size = s.size, q.kernel = s.kernel, q.stride = s.stride, q.padding = s.padding, q.dilation = s.dilation;
    for (size_t d = 0; d < 3; ++d) q.result[d] = (s.size[d] + 2 * s.padding[d] - s.dilation[d] * (s.kernel[d] - 1) - 1) / s.stride[d] + 1;
    return q;
  }
  Array& result() { return q.use == Use::Forward ? y : q.use == Use::Input ? x : w; }
};

int64_t at(const std::array<int64_t, 5>& sizes, int64_t a, int64_t b, int64_t c, int64_t d, int64_t e) {
  return (((a * sizes[1] + b) * sizes[2] + c) * sizes[3] + d) * sizes[4] + e;
}

// By the definition: f(elements of x, w, y) for each product, in the order that the uses name for all three.
template <class F>
void each_product(const Convolution& q, F f) {
  const auto sx = q.sizes_of_x(), sw = q.sizes_of_w(), sy = q.sizes_of_y();
  for (int64_t b = 0; b < q.batch; ++b)
    for (int64_t o = 0; o < q.groups * q.out; ++o)
      for (int64_t c = 0; c < q.in; ++c)
        for (int64_t kd = 0; kd < q.kernel[0]; ++kd)
          for (int64_t kh = 0; kh < q.kernel[1]; ++kh)
            for (int64_t kw = 0; kw < q.kernel[2]; ++kw)
              for (int64_t pd = 0; pd < q.result[0]; ++pd)
                for (int64_t ph = 0; ph < q.result[1]; ++ph)
                  for (int64_t pw = 0; pw < q.result[2]; ++pw) {
                    const int64_t d = pd * q.stride[0] - q.padding[0] + kd * q.dilation[0],
                                  h = ph * q.stride[1] - q.padding[1] + kh * q.dilation[1],
                                  w = pw * q.stride[2] - q.padding[2] + kw * q.dilation[2];
                    if (d < 0 || d >= q.size[0] || h < 0 || h >= q.size[1] || w < 0 || w >= q.size[2]) continue;
                    f(at(sx, b, o / q.out * q.in + c, d, h, w), at(sw, o, c, kd, kh, kw), at(sy, b, o, pd, ph, pw));
                  }
}

void expect_right(Operands& o, double epsilon) {
  Array& result = o.result();
  std::vector<double> sums(static_cast<size_t>(result.numel())), sizes(sums.size(), 1);
  const bool chain = o.q.precision.deterministic && o.q.dtype == DType::F32;
  each_product(o.q, [&](int64_t x, int64_t w, int64_t y) {
    const int64_t i = o.q.use == Use::Forward ? y : o.q.use == Use::Input ? x : w;
    const double a = o.q.use == Use::Input ? o.y.value(y) : o.x.value(x), b = o.q.use == Use::Weight ? o.y.value(y) : o.w.value(w);
    double& sum = sums[static_cast<size_t>(i)];
    sum = chain ? std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(sum)) : sum + a * b;
    sizes[static_cast<size_t>(i)] += std::abs(a * b);
  });
  const int64_t plane = o.q.use == Use::Forward ? o.q.result[0] * o.q.result[1] * o.q.result[2] : o.q.size[0] * o.q.size[1] * o.q.size[2];
  for (int64_t i = 0; i < result.numel(); ++i) {
    double wanted = sums[static_cast<size_t>(i)];
    if (o.q.bias) {
      wanted += o.bias.value(i / plane % o.bias.numel());
      if (chain) wanted = static_cast<float>(wanted);
    }
    if (chain)
      ASSERT_EQ(result.value(i), wanted) << "at " << i;
    else
      ASSERT_NEAR(result.value(i), wanted, epsilon * 2 * sizes[static_cast<size_t>(i)]) << "at " << i;
  }
}

TEST(Convolution, every_use_is_right_in_every_layout_and_type) {
  for (const Shape& s : kShapes)
    for (const Use use : {Use::Forward, Use::Input, Use::Weight})
      for (const Layout layout : {Layout::Contiguous, Layout::Transposed, Layout::Stepped, Layout::Offset})
        for (const auto& [type, epsilon] :
             {std::pair{DType::F32, 1e-6}, {DType::F64, 1e-15}, {DType::BF16, 1e-2}, {DType::I32, 0.0}, {DType::I64, 0.0}}) {
          Operands o(s, use, type, layout, use != Use::Weight);
          execute(o.q);
          expect_right(o, epsilon);
        }
}

// The order of ir::Convolution, in which each_product meets the products of every element but for those of Input: there the channels of y come first,
// then the kernel's positions, as here.
TEST(Convolution, deterministic_elements_are_one_chain_of_fma_and_their_bits_do_not_depend_on_threads) {
  for (const Shape& s : kShapes)
    for (const Use use : {Use::Forward, Use::Input, Use::Weight}) {
      Operands one(s, use, DType::F32, Layout::Contiguous, false), many(s, use, DType::F32, Layout::Contiguous, false);
      one.q.precision.deterministic = many.q.precision.deterministic = true;
      {
        const Threads threads(1);
        execute(one.q);
      }
      expect_right(one, 0);
      const Threads threads(3);
      execute(many.q);
      ASSERT_EQ(one.result().memory(), many.result().memory());
    }
}

}  // namespace
}  // namespace naru::host
