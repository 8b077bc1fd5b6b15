#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <thread>
#include <tuple>

#include "backends/cpu/exec/execute.h"
#include "backends/cpu/exec/simd.h"
#include "backends/cpu/libraries/onednn_convolution.h"
#include "cpu/switches.h"
#include "support/arrays.h"

namespace naru::cpu {
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
    {70, 1, 3, 2, {1, 4, 3}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},  // images of few positions, in several rounds
};

Dims dims(const std::array<int64_t, 5>& a) { return Dims(std::span<const int64_t>(a)); }

// The operands of a shape; the one that the use computes is written.
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

// By definition: calls f(element of x, of w, of y) for each product, in the order that all three uses specify.
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

// each_product visits the products of every element in the order of ir::Convolution, except for Input: there the channels of y come first, then
// the kernel's positions, as here.
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

// Large enough for oneDNN: windows of every kind; one, two and three dimensions; groups; a remainder that no window reaches; different padding at
// start and end; channel counts that are not multiples of a vector.
const Shape kLarge[] = {
    {1, 1, 32, 64, {1, 6, 7}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},
    {3, 1, 16, 24, {1, 7, 8}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},
    {1, 1, 64, 96, {1, 7, 7}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}},
    {2, 1, 3, 24, {1, 15, 16}, {1, 7, 7}, {1, 2, 2}, {0, 3, 3}, {1, 1, 1}},
    {1, 4, 16, 16, {1, 9, 9}, {1, 3, 3}, {1, 2, 1}, {0, 0, 1}, {1, 1, 2}},
    {2, 1, 18, 20, {1, 9, 8}, {1, 2, 5}, {1, 3, 1}, {0, 1, 2}, {1, 1, 1}},
    {2, 1, 16, 24, {1, 1, 80}, {1, 1, 5}, {1, 1, 2}, {0, 0, 4}, {1, 1, 1}},
    {1, 1, 16, 16, {4, 5, 6}, {3, 3, 3}, {1, 1, 1}, {1, 1, 0}, {1, 1, 1}},
    {2, 32, 1, 1, {1, 16, 17}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},
    {5, 1, 64, 96, {1, 2, 2}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},  // more weights than images, few positions
    {9, 1, 32, 64, {1, 5, 3}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}},
    {8, 1, 16, 32, {1, 12, 11}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},  // gradients of the weights by parts of the images
    {6, 1, 20, 24, {1, 12, 11}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},
    {7, 1, 3, 48, {1, 12, 11}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}},
    {2, 1, 19, 70, {1, 23, 24}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}},  // products of whole images
    {2, 37, 1, 1, {1, 13, 14}, {1, 3, 5}, {1, 2, 1}, {0, 1, 2}, {1, 1, 1}},
    {1, 64, 1, 1, {1, 9, 12}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}},
    {2, 16, 1, 1, {3, 5, 6}, {2, 3, 3}, {1, 1, 2}, {1, 2, 4}, {1, 2, 2}},
};
constexpr Use kUses[] = {Use::Forward, Use::Input, Use::Weight};

// Sets channels_last strides.
void put_channels_last(Convolution::Array& a, const std::array<int64_t, 5>& sizes) {
  a.strides = {sizes[1] * sizes[2] * sizes[3] * sizes[4], 1, sizes[1] * sizes[3] * sizes[4], sizes[1] * sizes[4], sizes[1]};
}

TEST(ConvolutionByLibrary, every_use_is_right_in_every_layout_and_type) {
  for (const Shape& s : kLarge)
    for (const Use use : kUses)
      for (const auto& [layout, type, epsilon] : {std::tuple{Layout::Contiguous, DType::F32, 1e-6},
                                                  {Layout::Offset, DType::F32, 1e-6},
                                                  {Layout::Transposed, DType::F32, 1e-6},
                                                  {Layout::Contiguous, DType::BF16, 1e-2}}) {
        SCOPED_TRACE(::testing::Message() << &s - kLarge << ' ' << static_cast<int>(use) << ' ' << name_of(layout) << ' ' << name_of(type));
        Operands o(s, use, type, layout, use != Use::Weight);
        o.bias = Array(o.bias.shape(), type, Layout::Contiguous, 4);
        if (o.q.bias) o.q.bias = o.bias.at(0);
        execute(o.q);
        expect_right(o, epsilon);
        if (::testing::Test::HasFatalFailure()) return;
      }
}

TEST(ConvolutionByLibrary, images_may_lie_channels_last) {
  for (const Shape& s : kLarge)
    for (const Use use : kUses) {
      SCOPED_TRACE(::testing::Message() << &s - kLarge << ' ' << static_cast<int>(use));
      Operands o(s, use, DType::F32, Layout::Contiguous, false);
      std::vector<float> x(static_cast<size_t>(o.x.numel())), y(static_cast<size_t>(o.y.numel()));
      // Calls f(element of the array, element of its channels-last copy) for each element.
      const auto each = [](Array& rows, std::vector<float>& last, const std::array<int64_t, 5>& sizes, auto f) {
        const int64_t plane = sizes[2] * sizes[3] * sizes[4];
        for (int64_t i = 0; i < rows.numel(); ++i)
          f(*static_cast<float*>(rows.at(i)),
            last[static_cast<size_t>((i / plane / sizes[1] * plane + i % plane) * sizes[1] + i / plane % sizes[1])]);
      };
      const auto lay = [&](Convolution::Array& a, Array& rows, std::vector<float>& last, const std::array<int64_t, 5>& sizes) {
        put_channels_last(a, sizes);
        a.data = last.data();
        each(rows, last, sizes, [](float from, float& to) { to = from; });
      };
      lay(o.q.x, o.x, x, o.q.sizes_of_x()), lay(o.q.y, o.y, y, o.q.sizes_of_y());
      execute(o.q);
      const auto back = [](float& to, float from) { to = from; };
      if (use == Use::Forward) each(o.y, y, o.q.sizes_of_y(), back);
      if (use == Use::Input) each(o.x, x, o.q.sizes_of_x(), back);
      expect_right(o, 1e-6);
      if (::testing::Test::HasFatalFailure()) return;
    }
}

TEST(Convolution, channels_last_ones_in_deterministic_mode_have_the_bits_of_the_chain) {
  for (const Shape& s : kLarge)
    for (const Use use : {Use::Forward, Use::Input}) {
      if (s.groups == 1) continue;
      SCOPED_TRACE(::testing::Message() << &s - kLarge << ' ' << static_cast<int>(use));
      Operands rows(s, use, DType::F32, Layout::Contiguous, true), last(s, use, DType::F32, Layout::Contiguous, true);
      rows.q.precision.deterministic = last.q.precision.deterministic = true;
      execute(rows.q);
      expect_right(rows, 0);
      std::vector<float> x(static_cast<size_t>(last.x.numel())), y(static_cast<size_t>(last.y.numel()));
      const auto turn = [](Array& from, std::vector<float>& to, const std::array<int64_t, 5>& sizes, bool back) {
        const int64_t plane = sizes[2] * sizes[3] * sizes[4];
        for (int64_t i = 0; i < from.numel(); ++i) {
          float& a = *static_cast<float*>(from.at(i));
          float& b = to[static_cast<size_t>((i / plane / sizes[1] * plane + i % plane) * sizes[1] + i / plane % sizes[1])];
          back ? a = b : b = a;
        }
      };
      turn(last.x, x, last.q.sizes_of_x(), false), turn(last.y, y, last.q.sizes_of_y(), false);
      put_channels_last(last.q.x, last.q.sizes_of_x()), put_channels_last(last.q.y, last.q.sizes_of_y());
      last.q.x.data = x.data(), last.q.y.data = y.data();
      execute(last.q);
      turn(last.x, x, last.q.sizes_of_x(), true), turn(last.y, y, last.q.sizes_of_y(), true);
      ASSERT_EQ(last.result().memory(), rows.result().memory());
    }
}

TEST(ConvolutionByLibrary, bits_do_not_depend_on_threads_and_in_deterministic_mode_are_those_of_the_chain) {
  bool any = false;
  for (const Shape& s : kLarge)
    for (const Use use : kUses) {
      Operands one(s, use, DType::F32, Layout::Contiguous, false), many(s, use, DType::F32, Layout::Contiguous, false),
          chain(s, use, DType::F32, Layout::Contiguous, false);
      chain.q.precision.deterministic = true;
      {
        const Threads threads(1);
        execute(one.q), execute(chain.q);
      }
      expect_right(chain, 0);
      const Threads threads(3);
      execute(many.q);
      ASSERT_EQ(one.result().memory(), many.result().memory()) << &s - kLarge << ' ' << static_cast<int>(use);
      any |= one.result().memory() != chain.result().memory();
    }
  if (matmul_libraries().find("oneDNN") == std::string::npos)
    GTEST_SKIP() << "no oneDNN on this machine: own kernels were compared with themselves";
  EXPECT_TRUE(any) << "oneDNN computed none of them";
}

TEST(ConvolutionByLibrary, takes_all_but_small_work_and_images_of_few_channels_that_it_would_pad) {
  if (matmul_libraries().find("oneDNN") == std::string::npos) GTEST_SKIP() << "no oneDNN on this machine";
  const auto takes = [](const Shape& s, Use use, bool last = false, bool deterministic = false) {
    Operands o(s, use, DType::F32, Layout::Contiguous, false);
    if (last) put_channels_last(o.q.x, o.q.sizes_of_x()), put_channels_last(o.q.y, o.q.sizes_of_y());
    o.q.precision.deterministic = deterministic;
    return convolve_by_onednn(o.q);
  };
  const Shape taken[] = {
      {2, 1, 64, 3, {1, 16, 16}, {1, 7, 7}, {1, 1, 1}, {0, 3, 3}, {1, 1, 1}},  // few results
      {2, 1, 4, 4, {1, 28, 28}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},
      {2, 16, 4, 4, {1, 28, 28}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}},
      {1, 1, 32, 48, {1, 1, 200}, {1, 1, 5}, {1, 1, 1}, {0, 0, 2}, {1, 1, 1}},
      {1, 1, 64, 64, {1, 14, 14}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}},
  };
  for (const Shape& s : taken)
    for (const bool last : {false, true}) {
      // Of groups with few channels each the library (2.6) has no kernel for AVX2, only its reference.
      if (s.groups == 1 || wide_level() == 2) EXPECT_TRUE(takes(s, Use::Forward, last)) << &s - taken;
      if (s.groups == 1) EXPECT_TRUE(takes(s, Use::Weight, last)) << &s - taken;
      EXPECT_FALSE(takes(s, Use::Forward, last, true)) << &s - taken;
    }
  const Shape small{1, 1, 4, 4, {1, 8, 8}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}};
  for (const Use use : kUses) EXPECT_FALSE(takes(small, use));
  if (wide_level() == 0) return;
  const Shape few{2, 1, 64, 2, {1, 32, 32}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}};
  EXPECT_FALSE(takes(few, Use::Input));  // from blocks of 2 channels and of others that do not exist
  EXPECT_TRUE(takes(few, Use::Input, true));
}

TEST(ConvolutionByLibrary, threads_may_compute_the_same_shape_at_once) {
  constexpr int kThreads = 4;
  std::vector<std::unique_ptr<Operands>> all;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    all.push_back(std::make_unique<Operands>(kLarge[0], Use::Forward, DType::F32, Layout::Contiguous, true));
  for (auto& o : all)
    threads.emplace_back([&o] {
      for (int round = 0; round < 5; ++round) execute(o->q);
    });
  for (std::thread& t : threads) t.join();
  for (auto& o : all) ASSERT_EQ(o->y.memory(), all[0]->y.memory());
}

}  // namespace
}  // namespace naru::cpu
