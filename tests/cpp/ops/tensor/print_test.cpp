// Tensors as text, as Python prints them (tests/python/support/printing_table.py has more).
#include <fmt/format.h>

#include "naru/print.h"

#include <cmath>
#include <sstream>

#include "naru/device/virtual.h"
#include "naru/format.h"
#include "ops/checks.h"

namespace naru {
namespace {

using namespace naru::testing;

template <class T>
std::string streamed(const T& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

TEST(Printing, TensorsAreWrittenAsPyTorchWritesThem) {
  EXPECT_EQ(streamed(tensor({{1.5, -2.0}, {3.25, 4.0}})), "tensor([[ 1.5000, -2.0000],\n        [ 3.2500,  4.0000]])");
  EXPECT_EQ(streamed(arange(0, 2000)), "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])");
  EXPECT_EQ(streamed(tensor({true, false})), "tensor([ True, False])");
  EXPECT_EQ(streamed(tensor({1, 2}, DType::I8)), "tensor([1, 2], dtype=torch.int8)");
  EXPECT_EQ(streamed(zeros({0, 3})), "tensor([], size=(0, 3))");
  EXPECT_EQ(streamed(tensor({1e-5, 1.0})), "tensor([1.0000e-05, 1.0000e+00])");
  EXPECT_EQ(streamed(tensor({INFINITY, -NAN, 1.0F})), "tensor([inf, nan, 1.])");
  EXPECT_EQ(streamed(tensor(3.5)), "tensor(3.5000)");
  const Tensor x = ones({2}).requires_grad_();
  EXPECT_EQ(x.str(), "tensor([1., 1.], requires_grad=True)");
  EXPECT_EQ((x + 1).str(), "tensor([2., 2.], grad_fn=<AddBackward0>)");
  EXPECT_EQ(Tensor().str(), "tensor(undefined)");
  EXPECT_EQ(streamed(x[{Slice(), None}].detach()), "tensor([[1.],\n        [1.]])");
  EXPECT_EQ(streamed(x.detach()[x.detach() > 0]), "tensor([1., 1.])");
}

TEST(Printing, ATensorOnADeviceIsRead) {
  const VirtualDevices devices(DeviceType::Cuda, {});
  EXPECT_EQ(streamed(tensor({1.0, 2.5}).to("cuda")), "tensor([1.0000, 2.5000], device='cuda:0')");
}

TEST(Printing, OptionsHoldForAScopeOrOneCall) {
  const Tensor x = tensor({1.12345, 2.0});
  PrintOptions o;
  o.precision = 2;
  EXPECT_EQ(str(x, o), "tensor([1.12, 2.00])");
  {
    const WithPrintOptions scope(o);
    EXPECT_EQ(x.str(), "tensor([1.12, 2.00])");
  }
  EXPECT_EQ(x.str(), "tensor([1.1235, 2.0000])");
  o.sci_mode = true;
  EXPECT_EQ(str(x, o), "tensor([1.12e+00, 2.00e+00])");
  EXPECT_EQ(str(arange(0, 1001), PrintOptions::profile("short")), "tensor([   0,    1,  ...,  999, 1000])");
  EXPECT_THROW(PrintOptions::profile("huge"), ValueError);
  o.edgeitems = -1;
  EXPECT_THROW(set_print_options(o), ValueError);
}

TEST(Printing, ShapesTypesAndDevicesHaveOperatorsToo) {
  EXPECT_EQ(streamed(Dims{2, 3}), "[2, 3]");
  EXPECT_EQ(streamed(Device("cuda:1")), "cuda:1");
  EXPECT_EQ(streamed(DType::BF16), "bfloat16");
  EXPECT_EQ(streamed(Scalar(2.5)) + streamed(Scalar(3)) + streamed(Scalar(true)), "2.53true");
}

TEST(Printing, FormattersGiveTheSameText) {
  const Tensor x = tensor({1, 2});
  EXPECT_EQ(fmt::format("{} {} {} {:>10}", x, x.sizes(), x.dtype(), x.device()), "tensor([1, 2]) [2] int64        cpu");
#ifdef __cpp_lib_format
  EXPECT_EQ(std::format("{} {} {} {:>10}", x, x.sizes(), x.dtype(), x.device()), "tensor([1, 2]) [2] int64        cpu");
#endif
}

}  // namespace
}  // namespace naru
