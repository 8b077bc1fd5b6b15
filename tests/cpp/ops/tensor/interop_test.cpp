// External memory as tensors, and tensors exported to other libraries.
#include "naru/interop/interop.h"
#include "naru/device/virtual.h"
#include "naru/interop/dlpack.h"
#include "ops/checks.h"

#if __has_include(<Eigen/Core>)
#include "naru/interop/eigen.h"
#endif
#if __has_include(<xtensor/xadapt.hpp>)
#include "naru/interop/xtensor.h"
#endif

namespace naru {
namespace {

using namespace naru::testing;

TEST(FromBlob, SharesTheMemoryAndKnowsItsType) {
  std::vector<float> v{0, 1, 2, 3, 4, 5};
  Tensor t = from_blob(v.data(), {2, 3});
  EXPECT_EQ(t.dtype(), DType::F32);
  t[1] = 9;
  EXPECT_EQ(v, (std::vector<float>{0, 1, 2, 9, 9, 9}));
  v[0] = 7;
  EXPECT_EQ(t[0][0].item<float>(), 7);
  std::vector<int64_t> i{1, 2, 3, 4};
  EXPECT_EQ(from_blob(i.data(), {2, 2}, {1, 2}).to_ints(), (Ints{1, 3, 2, 4}));
  EXPECT_EQ(from_blob(static_cast<void*>(i.data()), {4}, DType::I64).to_ints(), (Ints{1, 2, 3, 4}));
  EXPECT_TRUE(from_blob(v.data(), {6}, Options().with_grad()).requires_grad());
}

TEST(FromBlob, CallsTheDeleterOnceWhenTheLastViewIsGone) {
  int calls = 0;
  float memory[4] = {1, 2, 3, 4};
  Tensor view;
  {
    const Tensor t = from_blob(memory, {4}, [&](void* p) { calls += p == memory ? 1 : 100; });
    view = t[Slice(1, 3)];
  }
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(view.to_doubles(), (Doubles{2, 3}));
  view = {};
  EXPECT_EQ(calls, 1);
}

TEST(FromBlob, RefusesWhatTheMemoryIsNot) {
  int64_t memory[2] = {1, 2};
  expect_starts(text_of<RuntimeError>([&] { from_blob(memory, {2}, DType::F32); }), "expected scalar type Long but found Float");
  expect_starts(text_of<RuntimeError>([&] { from_blob(memory, {2}, Device("cuda")); }), "from_blob: wanted memory of the host");
  EXPECT_THROW(from_blob(memory, {-2}), RuntimeError);
  EXPECT_THROW(from_blob(memory, {2}, Dims{1, 1}), RuntimeError);
  EXPECT_THROW(from_blob(memory, {2}, Dims{-1}), ValueError);
}

TEST(DLPack, LentTensorsComeBackWithTheirMemory) {
  const Tensor x = counted({2, 3}).t();
  {
    Tensor y = from_dlpack(to_dlpack(x));
    EXPECT_EQ(y.sizes(), x.sizes());
    EXPECT_EQ(y.strides(), x.strides());
    y[0] = -1;
    EXPECT_EQ(x.to_doubles(), (Doubles{-1, -1, 1, 4, 2, 5}));
  }
  for (const DType t : {DType::Bool, DType::U8, DType::I16, DType::I64, DType::BF16, DType::F16, DType::F64})
    EXPECT_EQ(from_dlpack(to_dlpack_unversioned(ones({2}, t))).dtype(), t);
  const Tensor copy = from_dlpack(to_dlpack(x, true));
  copy.fill_(0);
  EXPECT_EQ(x[0][0].item<double>(), -1);
  int released = 0;
  DLManagedTensor* const m = to_dlpack_unversioned(x);
  (void)from_dlpack(m, [&] { ++released; });
  EXPECT_EQ(released, 1);
  end_dlpack(m);
}

TEST(DLPack, WhatCannotBeLentIsABufferError) {
  EXPECT_THROW(to_dlpack(ones({2}).requires_grad_()), BufferError);
  EXPECT_THROW(to_dlpack(Tensor()), RuntimeError);
  EXPECT_THROW(from_dlpack(static_cast<DLManagedTensor*>(nullptr)), BufferError);
  const VirtualDevices devices(DeviceType::Cuda, {});
  EXPECT_THROW(to_dlpack(ones({2}, Device("cuda"))), BufferError);
}

#if __has_include(<xtensor/xadapt.hpp>)
TEST(XTensor, MapsOfTensorsReadAndWriteThemAndExpressionsBecomeTensors) {
  Tensor x = counted({2, 3});
  auto m = xtensor_map<double>(x.t());
  EXPECT_EQ(m.shape()[0], 3u);
  EXPECT_EQ(m(2, 1), 5);
  m(0, 1) = -3;
  EXPECT_EQ(x.to_doubles(), (Doubles{0, 1, 2, -3, 4, 5}));
  EXPECT_TRUE(equal(from_xtensor(2.0 * m + 1.0), x.t() * 2.0 + 1.0));
  EXPECT_TRUE(equal(from_xtensor(xtensor_map<double>(x[{Slice(), Slice(1, 2)}])), x[{Slice(), Slice(1, 2)}]));
  EXPECT_EQ(from_xtensor(xtensor_map<double>(ones({0, 2}, "float64"))).sizes(), (Dims{0, 2}));
  EXPECT_THROW(xtensor_map<float>(x), RuntimeError);
}
#endif

#if __has_include(<Eigen/Core>)
TEST(Eigen, MapsOfTensorsReadAndWriteThemAndMatricesBecomeTensors) {
  Tensor x = counted({2, 3});
  auto m = eigen_map<double>(x.t());
  EXPECT_EQ(m.rows(), 3);
  EXPECT_EQ(m(2, 1), 5);
  m(0, 1) = -3;
  EXPECT_EQ(x.to_doubles(), (Doubles{0, 1, 2, -3, 4, 5}));
  const Tensor square = from_eigen(m * m.transpose());
  EXPECT_EQ(square.sizes(), (Dims{3, 3}));
  EXPECT_TRUE(equal(square, x.t().matmul(x)));
  EXPECT_EQ(from_eigen(Eigen::VectorXf::Ones(4)).sizes(), (Dims{4}));
  EXPECT_THROW(eigen_map<float>(x), RuntimeError);
}
#endif

}  // namespace
}  // namespace naru
