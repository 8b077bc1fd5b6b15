// Undefined tensors raise errors that name the operator; scalars alone give 0-d tensors.
#include "naru/ops/functions.h"
#include "ops/checks.h"

namespace naru {
namespace {

using namespace naru::testing;

template <class F>
void expect_error(const char* what, F f) {
  SCOPED_TRACE(what);
  EXPECT_NE(text_of<Error>(f), "");
}

TEST(Undefined, EveryOperatorOfTheTableRefusesIt) {
  const Tensor none, one = ones({2}, DType::I64);
#define NARU_OP1(name, ...)                             \
  expect_error(#name, [&] { (void)naru::name(none); }); \
  expect_error(#name "_", [&] { none.name##_(); });
#define NARU_OP2(name, ...)                                  \
  expect_error(#name, [&] { (void)naru::name(none, one); }); \
  expect_error(#name, [&] { (void)naru::name(one, none); }); \
  expect_error(#name, [&] { (void)naru::name(2, none); });   \
  expect_error(#name "_", [&] { one.name##_(none); });
#define NARU_OP3(name, ...)                                       \
  expect_error(#name, [&] { (void)naru::name(none, one, one); }); \
  expect_error(#name, [&] { (void)naru::name(one, one, none); }); \
  expect_error(#name "_", [&] { none.name##_(1, 2); });
#include "naru/elementwise.inc"
#undef NARU_OP1
#undef NARU_OP2
#undef NARU_OP3
}

TEST(Undefined, MethodsRefuseIt) {
  const Tensor none, one = ones({2});
  expect_error("detach", [&] { (void)none.detach(); });
  expect_error("detach_", [&] { none.detach_(); });
  expect_error("data", [&] { (void)none.data(); });
  expect_error("is_pinned", [&] { (void)none.is_pinned(); });
  expect_error("to_doubles", [&] { (void)none.to_doubles(); });
  expect_error("to_ints", [&] { (void)none.to_ints(); });
  expect_error("item", [&] { (void)none.item<float>(); });
  expect_error("data<T>", [&] { (void)none.data<float>(); });
  expect_error("accessor", [&] { (void)none.accessor<float, 1>(); });
  expect_error("span", [&] { (void)none.span<float>(); });
  expect_error("fill_", [&] { one.fill_(none); });
  expect_error("fill", [&] { (void)one.fill(none); });
  expect_error("histc", [&] { (void)none.histc(); });
  expect_error("normal", [&] { (void)normal(none, one); });
  expect_error("normal", [&] { (void)normal(1, none); });
  expect_error("backward", [&] { none.backward(); });
  expect_error("to", [&] { (void)none.to(DType::F64); });
  expect_error("[]", [&] { (void)none[0]; });
  EXPECT_EQ(one.to_doubles(), (Doubles{1, 1}));
}

TEST(NumbersOnly, GiveATensorWithoutDimensions) {
  EXPECT_EQ(naru::sin(0.0).item<double>(), 0);
  EXPECT_EQ(naru::abs(-3).item<int>(), 3);
  EXPECT_EQ(naru::add(1, 2).item<int>(), 3);
  EXPECT_EQ(naru::pow(2, 3).sizes(), Dims{});
  EXPECT_EQ(naru::where(true, 1, 0).item<int>(), 1);
  EXPECT_EQ(naru::maximum(1, 2.5).item<double>(), 2.5);
}

}  // namespace
}  // namespace naru
