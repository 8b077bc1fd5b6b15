// The interpreter of PTX (backends/ptx) on kernels written by hand: each group of instructions against values from NVIDIA's description of the language, control
// flow, and what threads do together. No compiler of CUDA is needed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/ptx_support.h"
#include "naru/error.h"

namespace naru::backends::ptx {
namespace {

uint64_t f32(float x) { return std::bit_cast<uint32_t>(x); }
uint64_t f64(double x) { return std::bit_cast<uint64_t>(x); }
constexpr uint64_t s32(int32_t x) { return static_cast<uint32_t>(x); }
constexpr uint64_t s64(int64_t x) { return static_cast<uint64_t>(x); }
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr uint64_t kNaN = 0x7fffffff;

struct Row {
  const char* text;  // d: the result, a, b, c, e: operands, p: a predicate that is true, q: one that is false
  int result;        // bits
  std::vector<std::pair<int, uint64_t>> operands;
  uint64_t expected;
};

uint64_t value(const Row& row) {
  std::string body = ".reg .pred p, q;\nsetp.eq.u32 p, 0, 0;\nsetp.ne.u32 q, 0, 0;\n" + fmt::format(".reg .b{} d;\n", row.result);
  Buffer in = Buffer::zeros<uint64_t>(4, "in"), out = Buffer::zeros<uint64_t>(1, "out");
  for (size_t k = 0; k < row.operands.size(); ++k) {
    const auto& [bits, x] = row.operands[k];
    std::memcpy(in.bytes.data() + 8 * k, &x, 8);
    body += fmt::format(".reg .b{0} {1};\nld.global.b{0} {1}, [%rd1+{2}];\n", bits, "abce"[k], 8 * k);
  }
  body += std::string(row.text) + fmt::format("\nst.global.b{} [%rd2], d;", row.result);
  const Ran r = run(on(2, body), {&in, &out});
  EXPECT_TRUE(r.faults.empty()) << row.text;
  return out.at<uint64_t>(0);
}

class Table : public ::testing::TestWithParam<Row> {};

TEST_P(Table, HasTheValueOfTheDescription) { EXPECT_EQ(value(GetParam()), GetParam().expected) << GetParam().text; }

INSTANTIATE_TEST_SUITE_P(
    Integers, Table,
    ::testing::ValuesIn(std::vector<Row>{
        {"add.u32 d, a, b;", 32, {{32, 0xffffffff}, {32, 3}}, 2},
        {"add.s64 d, a, -5;", 64, {{64, 3}}, s64(-2)},
        {"add.s16 d, a, b;", 16, {{16, 0x7fff}, {16, 1}}, 0x8000},
        {"add.sat.s32 d, a, b;", 32, {{32, 0x7fffffff}, {32, 1}}, 0x7fffffff},
        {"sub.s32 d, a, b;", 32, {{32, 1}, {32, 2}}, s32(-1)},
        {"sub.sat.s32 d, a, b;", 32, {{32, 0x80000000}, {32, 1}}, 0x80000000},
        {"mul.lo.s32 d, a, b;", 32, {{32, s32(-3)}, {32, 7}}, s32(-21)},
        {"mul.lo.u16 d, a, b;", 16, {{16, 0xffff}, {16, 0xffff}}, 1},
        {"mul.hi.u32 d, a, b;", 32, {{32, 0xffffffff}, {32, 0xffffffff}}, 0xfffffffe},
        {"mul.hi.s32 d, a, b;", 32, {{32, s32(-1)}, {32, 1}}, 0xffffffff},
        {"mul.hi.u64 d, a, b;", 64, {{64, ~uint64_t{0}}, {64, 3}}, 2},
        {"mul.hi.s64 d, a, b;", 64, {{64, s64(-1)}, {64, 3}}, s64(-1)},
        {"mul.wide.s32 d, a, b;", 64, {{32, s32(-2)}, {32, 3}}, s64(-6)},
        {"mul.wide.u32 d, a, b;", 64, {{32, 0xfffffffe}, {32, 3}}, 0x2fffffffa},
        {"mul.wide.u16 d, a, b;", 32, {{16, 0xffff}, {16, 0xffff}}, 0xfffe0001},
        {"mul.wide.s16 d, a, b;", 32, {{16, 0xffff}, {16, 2}}, s32(-2)},
        {"mul24.lo.s32 d, a, b;", 32, {{32, 0x00ffffff}, {32, 3}}, s32(-3)},
        {"mad.lo.s32 d, a, b, c;", 32, {{32, 3}, {32, 4}, {32, s32(-5)}}, 7},
        {"mad.hi.u32 d, a, b, c;", 32, {{32, 0x80000000}, {32, 4}, {32, 5}}, 7},
        {"mad.wide.s32 d, a, b, c;", 64, {{32, s32(-3)}, {32, 4}, {64, 5}}, s64(-7)},
        {"mad.wide.u32 d, a, b, c;", 64, {{32, 0xffffffff}, {32, 2}, {64, 2}}, 0x200000000},
        {"mad.lo.s64 d, a, b, c;", 64, {{64, 3}, {64, s64(-4)}, {64, 5}}, s64(-7)},
        {"div.s32 d, a, b;", 32, {{32, s32(-7)}, {32, 2}}, s32(-3)},
        {"div.u32 d, a, b;", 32, {{32, 0xfffffff9}, {32, 2}}, 0x7ffffffc},
        {"div.s64 d, a, b;", 64, {{64, s64(-7)}, {64, s64(-2)}}, 3},
        {"rem.s32 d, a, b;", 32, {{32, s32(-7)}, {32, 2}}, s32(-1)},
        {"rem.u64 d, a, b;", 64, {{64, 7}, {64, 4}}, 3},
        {"div.s32 d, a, b;", 32, {{32, 0x80000000}, {32, s32(-1)}}, 0x80000000},
        {"neg.s32 d, a;", 32, {{32, 5}}, s32(-5)},
        {"abs.s32 d, a;", 32, {{32, s32(-5)}}, 5},
        {"abs.s64 d, a;", 64, {{64, s64(-5)}}, 5},
        {"min.s32 d, a, b;", 32, {{32, s32(-1)}, {32, 1}}, s32(-1)},
        {"min.u32 d, a, b;", 32, {{32, s32(-1)}, {32, 1}}, 1},
        {"max.s64 d, a, b;", 64, {{64, s64(-1)}, {64, 1}}, 1},
        {"max.u16 d, a, b;", 16, {{16, 0xffff}, {16, 1}}, 0xffff},
        {"sad.u32 d, a, b, c;", 32, {{32, 3}, {32, 10}, {32, 1}}, 8},
        {"dp4a.s32.u32 d, a, b, c;", 32, {{32, 0xff020304}, {32, 0x01010101}, {32, 10}}, 18},
        {"add.cc.u32 a, a, b; addc.u32 d, 0, 0;", 32, {{32, 0xffffffff}, {32, 1}}, 1},
        {"sub.cc.u32 a, a, b; subc.u32 d, 5, 0;", 32, {{32, 1}, {32, 2}}, 4},
        {"sub.cc.u32 a, a, b; subc.u32 d, 5, 0;", 32, {{32, 2}, {32, 2}}, 5},
        {"mad.lo.cc.u32 a, a, b, c; madc.hi.u32 d, 0x80000000, 2, 7;", 32, {{32, 0x80000001}, {32, 2}, {32, 0xfffffffe}}, 9},
        {"and.b32 d, a, b;", 32, {{32, 0xf0f0}, {32, 0xff00}}, 0xf000},
        {"or.b64 d, a, b;", 64, {{64, uint64_t{1} << 40}, {64, 1}}, (uint64_t{1} << 40) | 1},
        {"xor.b16 d, a, b;", 16, {{16, 0xff}, {16, 0xf0f}}, 0xff0},
        {"not.b32 d, a;", 32, {{32, 1}}, 0xfffffffe},
        {"cnot.b32 d, a;", 32, {{32, 0}}, 1},
        {"shl.b32 d, a, b;", 32, {{32, 3}, {32, 31}}, 0x80000000},
        {"shl.b32 d, a, b;", 32, {{32, 3}, {32, 32}}, 0},
        {"shl.b64 d, a, b;", 64, {{64, 3}, {32, 40}}, uint64_t{3} << 40},
        {"shr.u32 d, a, b;", 32, {{32, 0x80000000}, {32, 31}}, 1},
        {"shr.s32 d, a, b;", 32, {{32, 0x80000000}, {32, 40}}, 0xffffffff},
        {"shr.s16 d, a, b;", 16, {{16, 0x8000}, {32, 3}}, 0xf000},
        {"shf.l.wrap.b32 d, a, b, c;", 32, {{32, 0xff000000}, {32, 0x12345678}, {32, 40}}, 0x345678ff},
        {"shf.r.wrap.b32 d, a, b, c;", 32, {{32, 0x000000ff}, {32, 0x12345678}, {32, 8}}, 0x78000000},
        {"shf.l.clamp.b32 d, a, b, c;", 32, {{32, 0xaabbccdd}, {32, 1}, {32, 77}}, 0xaabbccdd},
        {"lop3.b32 d, a, b, c, 0xe8;", 32, {{32, 0xf0}, {32, 0xcc}, {32, 0xaa}}, 0xe8},
        {"lop3.b32 d, a, b, c, 0x96;", 32, {{32, 0xf0}, {32, 0xcc}, {32, 0xaa}}, 0x96},
        {"popc.b32 d, a;", 32, {{32, 0xf0f0}}, 8},
        {"popc.b64 d, a;", 32, {{64, ~uint64_t{0}}}, 64},
        {"clz.b32 d, a;", 32, {{32, 1}}, 31},
        {"clz.b64 d, a;", 32, {{64, 0}}, 64},
        {"bfind.u32 d, a;", 32, {{32, 0x100}}, 8},
        {"bfind.s32 d, a;", 32, {{32, s32(-1)}}, 0xffffffff},
        {"bfind.shiftamt.u32 d, a;", 32, {{32, 0x100}}, 23},
        {"brev.b32 d, a;", 32, {{32, 0x6}}, 0x60000000},
        {"bfe.u32 d, a, 4, 8;", 32, {{32, 0xabcd}}, 0xbc},
        {"bfe.s32 d, a, 4, 8;", 32, {{32, 0xabcd}}, 0xffffffbc},
        {"bfe.s32 d, a, 28, 8;", 32, {{32, 0x80000000}}, 0xfffffff8},
        {"bfi.b32 d, a, b, 8, 4;", 32, {{32, 0xf5}, {32, 0xffffffff}}, 0xfffff5ff},
        {"prmt.b32 d, a, b, 0x7531;", 32, {{32, 0x33221100}, {32, 0x77665544}}, 0x77553311},
        {"prmt.b32 d, a, b, 0x000a;", 32, {{32, 0x00800000}, {32, 0}}, 0x000000ff},
        {"selp.b32 d, a, b, p;", 32, {{32, 1}, {32, 2}}, 1},
        {"selp.b64 d, a, b, q;", 64, {{64, 1}, {64, 2}}, 2},
        {"slct.u32.s32 d, a, b, c;", 32, {{32, 1}, {32, 2}, {32, s32(-1)}}, 2},
        {"mov.b64 d, {a, b};", 64, {{32, 1}, {32, 2}}, 0x200000001},
        {"mov.b64 {a, d}, c;", 32, {{32, 0}, {32, 0}, {64, 0x700000005}}, 7},
        {"mov.b32 d, {a, b};", 32, {{16, 0x1234}, {16, 0x5678}}, 0x56781234},
        {"mov.b32 d, %ntid.x;", 32, {}, 1},
        {"mov.u64 d, 0x123456789;", 64, {}, 0x123456789},
        {"set.lt.u32.s32 d, a, b;", 32, {{32, s32(-1)}, {32, 0}}, 0xffffffff},
        {"set.eq.f32.u32 d, a, b;", 32, {{32, 4}, {32, 4}}, f32(1)},
    }));

// setp and the logic of predicates, through selp.
Row comparison(const char* text, int bits, uint64_t a, uint64_t b, bool expected) {
  return {text, 32, {{bits, a}, {bits, b}}, expected ? 1u : 0u};
}
INSTANTIATE_TEST_SUITE_P(Comparisons, Table,
                         ::testing::ValuesIn(std::vector<Row>{
                             comparison("setp.lt.s32 q, a, b; selp.b32 d, 1, 0, q;", 32, s32(-1), 0, true),
                             comparison("setp.lt.u32 q, a, b; selp.b32 d, 1, 0, q;", 32, s32(-1), 0, false),
                             comparison("setp.hi.u32 q, a, b; selp.b32 d, 1, 0, q;", 32, s32(-1), 0, true),
                             comparison("setp.ge.s64 q, a, b; selp.b32 d, 1, 0, q;", 64, 5, 5, true),
                             comparison("setp.gt.u16 q, a, b; selp.b32 d, 1, 0, q;", 16, 0xffff, 1, true),
                             comparison("setp.gt.s16 q, a, b; selp.b32 d, 1, 0, q;", 16, 0xffff, 1, false),
                             comparison("setp.eq.f32 q, a, b; selp.b32 d, 1, 0, q;", 32, f32(0.0f), f32(-0.0f), true),
                             comparison("setp.ne.f32 q, a, b; selp.b32 d, 1, 0, q;", 32, kNaN, f32(1), false),
                             comparison("setp.neu.f32 q, a, b; selp.b32 d, 1, 0, q;", 32, kNaN, f32(1), true),
                             comparison("setp.lt.f32 q, a, b; selp.b32 d, 1, 0, q;", 32, kNaN, f32(1), false),
                             comparison("setp.ltu.f32 q, a, b; selp.b32 d, 1, 0, q;", 32, kNaN, f32(1), true),
                             comparison("setp.geu.f64 q, a, b; selp.b32 d, 1, 0, q;", 64, f64(2), f64(1), true),
                             comparison("setp.num.f32 q, a, b; selp.b32 d, 1, 0, q;", 32, kNaN, f32(1), false),
                             comparison("setp.nan.f32 q, a, b; selp.b32 d, 1, 0, q;", 32, kNaN, f32(1), true),
                             comparison("setp.eq.and.s32 q, a, b, !p; selp.b32 d, 1, 0, q;", 32, 1, 1, false),
                             comparison("setp.eq.or.s32 q, a, b, p; selp.b32 d, 1, 0, q;", 32, 1, 2, true),
                             comparison("setp.eq.s32 p|q, a, b; selp.b32 d, 1, 0, q;", 32, 1, 2, true),
                             comparison("setp.lt.f16 q, a, b; selp.b32 d, 1, 0, q;", 16, 0xbc00, 0x3c00, true),
                             comparison("and.pred q, p, !q; selp.b32 d, 1, 0, q;", 32, 0, 0, true),
                             comparison("xor.pred q, p, p; selp.b32 d, 1, 0, q;", 32, 0, 0, false),
                             comparison("not.pred q, q; selp.b32 d, 1, 0, q;", 32, 0, 0, true),
                             comparison("mov.pred q, p; selp.b32 d, 1, 0, q;", 32, 0, 0, true),
                             comparison("mov.u32 d, 0; @p mov.u32 d, 1;", 32, 0, 0, true),
                             comparison("mov.u32 d, 0; @!p mov.u32 d, 1;", 32, 0, 0, false),
                             comparison("testp.notanumber.f32 q, a; selp.b32 d, 1, 0, q;", 32, kNaN, 0, true),
                         }));

INSTANTIATE_TEST_SUITE_P(
    Floats, Table,
    ::testing::ValuesIn(std::vector<Row>{
        {"add.f32 d, a, b;", 32, {{32, f32(1)}, {32, f32(1e-8f)}}, f32(1)},
        {"add.rp.f32 d, a, b;", 32, {{32, f32(1)}, {32, f32(1e-8f)}}, f32(std::nextafter(1.0f, 2.0f))},
        {"add.rz.f32 d, a, b;", 32, {{32, f32(1)}, {32, f32(-1e-8f)}}, f32(std::nextafter(1.0f, 0.0f))},
        {"add.sat.f32 d, a, b;", 32, {{32, f32(0.75f)}, {32, f32(0.75f)}}, f32(1)},
        {"add.f32 d, a, b;", 32, {{32, f32(kInf)}, {32, f32(-kInf)}}, kNaN},
        {"sub.f32 d, a, 0f3F800000;", 32, {{32, f32(3)}}, f32(2)},
        {"sub.f64 d, a, 0d3FF0000000000000;", 64, {{64, f64(3)}}, f64(2)},
        {"mul.f32 d, a, b;", 32, {{32, 1}, {32, f32(0.5f)}}, 0},  // of the least denormal: to even
        {"mul.f64 d, a, b;", 64, {{64, f64(1e200)}, {64, f64(1e200)}}, f64(std::numeric_limits<double>::infinity())},
        {"mul.rm.f64 d, a, b;", 64, {{64, f64(1.0 / 3)}, {64, f64(3)}}, f64(std::nextafter(1.0, 0.0))},
        {"fma.rn.f32 d, a, b, c;", 32, {{32, f32(1 + 0x1p-12f)}, {32, f32(1 + 0x1p-12f)}, {32, f32(-1)}}, f32(0x1p-11f + 0x1p-24f)},
        {"fma.rn.f64 d, a, b, c;", 64, {{64, f64(1 + 0x1p-30)}, {64, f64(1 - 0x1p-30)}, {64, f64(-1)}}, f64(-0x1p-60)},
        {"div.rn.f32 d, a, b;", 32, {{32, f32(1)}, {32, f32(3)}}, f32(1.0f / 3)},
        {"div.rn.f64 d, a, b;", 64, {{64, f64(1)}, {64, f64(0)}}, f64(std::numeric_limits<double>::infinity())},
        {"div.full.f32 d, a, b;", 32, {{32, f32(6)}, {32, f32(3)}}, f32(2)},
        {"rcp.rn.f32 d, a;", 32, {{32, f32(4)}}, f32(0.25f)},
        {"rcp.rn.f64 d, a;", 64, {{64, f64(-0.0)}}, f64(-std::numeric_limits<double>::infinity())},
        {"sqrt.rn.f32 d, a;", 32, {{32, f32(2)}}, f32(std::sqrt(2.0f))},
        {"sqrt.rn.f32 d, a;", 32, {{32, f32(-1)}}, kNaN},
        {"sqrt.rn.f64 d, a;", 64, {{64, f64(2)}}, f64(std::sqrt(2.0))},
        {"rsqrt.approx.f32 d, a;", 32, {{32, f32(16)}}, f32(0.25f)},
        {"ex2.approx.ftz.f32 d, a;", 32, {{32, f32(10)}}, f32(1024)},
        {"ex2.approx.ftz.f32 d, a;", 32, {{32, f32(-140)}}, 0},
        {"lg2.approx.f32 d, a;", 32, {{32, f32(1024)}}, f32(10)},
        {"sin.approx.f32 d, a;", 32, {{32, 0}}, 0},
        {"cos.approx.f32 d, a;", 32, {{32, 0}}, f32(1)},
        {"neg.f32 d, a;", 32, {{32, 0}}, f32(-0.0f)},
        {"abs.f64 d, a;", 64, {{64, f64(-3)}}, f64(3)},
        {"min.f32 d, a, b;", 32, {{32, kNaN}, {32, f32(2)}}, f32(2)},
        {"min.NaN.f32 d, a, b;", 32, {{32, kNaN}, {32, f32(2)}}, kNaN},
        {"min.f32 d, a, b;", 32, {{32, f32(0.0f)}, {32, f32(-0.0f)}}, f32(-0.0f)},
        {"max.f32 d, a, b;", 32, {{32, f32(-0.0f)}, {32, f32(0.0f)}}, f32(0.0f)},
        {"max.f64 d, a, b;", 64, {{64, f64(-1)}, {64, f64(2)}}, f64(2)},
        {"copysign.f32 d, a, b;", 32, {{32, f32(-1)}, {32, f32(2)}}, f32(-2)},
        {"add.f16 d, a, b;", 16, {{16, 0x3c00}, {16, 0x3c00}}, 0x4000},
        {"fma.rn.f16 d, a, b, c;", 16, {{16, 0x4000}, {16, 0x4200}, {16, 0xbc00}}, 0x4500},  // 2 * 3 - 1
        {"mul.bf16 d, a, b;", 16, {{16, 0x4000}, {16, 0x4040}}, 0x40c0},                     // 2 * 3
        {"add.f16x2 d, a, b;", 32, {{32, 0x3c004000}, {32, 0x3c003c00}}, 0x40004200},
        {"neg.f16 d, a;", 16, {{16, 0x3c00}}, 0xbc00},
    }));

INSTANTIATE_TEST_SUITE_P(Conversions, Table,
                         ::testing::ValuesIn(std::vector<Row>{
                             {"cvt.s64.s32 d, a;", 64, {{32, s32(-2)}}, s64(-2)},
                             {"cvt.u64.u32 d, a;", 64, {{32, s32(-2)}}, 0xfffffffe},
                             {"cvt.u32.u64 d, a;", 32, {{64, 0x123456789}}, 0x23456789},
                             {"cvt.s32.s8 d, a;", 32, {{32, 0x1ff}}, s32(-1)},
                             {"cvt.u16.u8 d, a;", 16, {{16, 0x1ff}}, 0xff},
                             {"cvt.u32.u16 d, a;", 32, {{16, 0xffff}}, 0xffff},
                             {"cvt.s32.s16 d, a;", 32, {{16, 0xffff}}, s32(-1)},
                             {"cvt.sat.u8.s32 d, a;", 32, {{32, 300}}, 255},
                             {"cvt.sat.s16.s32 d, a;", 32, {{32, s32(-70000)}}, s32(-32768)},
                             {"cvt.rn.f32.s32 d, a;", 32, {{32, 16777217}}, f32(16777216)},
                             {"cvt.rp.f32.s32 d, a;", 32, {{32, 16777217}}, f32(16777218)},
                             {"cvt.rn.f32.u64 d, a;", 32, {{64, ~uint64_t{0}}}, f32(18446744073709551616.0f)},
                             {"cvt.rn.f64.s64 d, a;", 64, {{64, s64(-3)}}, f64(-3)},
                             {"cvt.rzi.s32.f32 d, a;", 32, {{32, f32(-2.7f)}}, s32(-2)},
                             {"cvt.rni.s32.f32 d, a;", 32, {{32, f32(2.5f)}}, 2},
                             {"cvt.rmi.s32.f32 d, a;", 32, {{32, f32(-2.1f)}}, s32(-3)},
                             {"cvt.rpi.s64.f64 d, a;", 64, {{64, f64(2.1)}}, 3},
                             {"cvt.rzi.s32.f32 d, a;", 32, {{32, f32(3e9f)}}, 0x7fffffff},
                             {"cvt.rzi.u32.f32 d, a;", 32, {{32, f32(-1)}}, 0},
                             {"cvt.rzi.s32.f32 d, a;", 32, {{32, kNaN}}, 0},
                             {"cvt.rzi.s64.f64 d, a;", 64, {{64, f64(std::nan(""))}}, uint64_t{1} << 63},
                             {"cvt.rzi.u64.f32 d, a;", 64, {{32, f32(1.8e19f)}}, static_cast<uint64_t>(1.8e19f)},
                             {"cvt.rni.f32.f32 d, a;", 32, {{32, f32(2.5f)}}, f32(2)},
                             {"cvt.rmi.f32.f32 d, a;", 32, {{32, f32(0.3f)}}, 0},
                             {"cvt.rpi.f32.f32 d, a;", 32, {{32, f32(-0.3f)}}, f32(-0.0f)},
                             {"cvt.rzi.f64.f64 d, a;", 64, {{64, f64(-2.5)}}, f64(-2)},
                             {"cvt.f64.f32 d, a;", 64, {{32, f32(1.5f)}}, f64(1.5)},
                             {"cvt.rn.f32.f64 d, a;", 32, {{64, f64(1 + 0x1p-24)}}, f32(1)},
                             {"cvt.rp.f32.f64 d, a;", 32, {{64, f64(1 + 0x1p-40)}}, f32(1 + 0x1p-23f)},
                             {"cvt.sat.f32.f32 d, a;", 32, {{32, f32(-3)}}, 0},
                             {"cvt.rn.f16.f32 d, a;", 16, {{32, f32(1 + 0x1p-11f)}}, 0x3c00},
                             {"cvt.rn.f16.f32 d, a;", 16, {{32, f32(65520)}}, 0x7c00},
                             {"cvt.rz.f16.f32 d, a;", 16, {{32, f32(65520)}}, 0x7bff},
                             {"cvt.rn.f16.f32 d, a;", 16, {{32, f32(0x1p-25f)}}, 0},
                             {"cvt.rn.f16.f32 d, a;", 16, {{32, f32(0x1.8p-25f)}}, 1},
                             {"cvt.f32.f16 d, a;", 32, {{16, 1}}, f32(0x1p-24f)},
                             {"cvt.f32.f16 d, a;", 32, {{16, 0xfc00}}, f32(-kInf)},
                             {"cvt.rn.bf16.f32 d, a;", 16, {{32, f32(1 + 0x1p-8f)}}, 0x3f80},
                             {"cvt.f32.bf16 d, a;", 32, {{16, 0x4049}}, f32(3.140625f)},
                             {"cvt.rn.f16x2.f32 d, a, b;", 32, {{32, f32(1)}, {32, f32(2)}}, 0x3c004000},
                         }));

TEST(Ptx, MemoryIsReadAndWrittenInEachSizeAndInVectors) {
  Buffer in = Buffer::of<uint8_t>({0xfe, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}), out = Buffer::zeros<uint32_t>(12);
  const Ran r = run(on(2, R"(
ld.global.s8 %r5, [%rd1];
ld.global.nc.u8 %r6, [%rd1];
ld.global.s16 %r7, [%rd1];
ld.volatile.global.u16 %h1, [%rd1+2];
ld.global.v4.u32 {%r8, %r9, %r10, %r11}, [%rd1];
ld.global.v2.u64 {%rd3, %rd4}, [%rd1];
st.global.u32 [%rd2], %r5;
st.global.u32 [%rd2+4], %r6;
st.global.u32 [%rd2+8], %r7;
st.global.u8 [%rd2+12], %h1;
st.global.v2.u32 [%rd2+16], {%r9, %r11};
st.global.b64 [%rd2+24], %rd4;
st.global.v4.u32 [%rd2+32], {%r8, 7, %r8, 9};)"),
                    {&in, &out});
  EXPECT_TRUE(r.faults.empty());
  EXPECT_EQ(out.at<uint32_t>(0), 0xfffffffe);
  EXPECT_EQ(out.at<uint32_t>(1), 0xfeu);
  EXPECT_EQ(out.at<uint32_t>(2), 0x1feu);
  EXPECT_EQ(out.at<uint32_t>(3), 2u);
  EXPECT_EQ(out.at<uint32_t>(4), 0x07060504u);
  EXPECT_EQ(out.at<uint32_t>(5), 0x0f0e0d0cu);
  EXPECT_EQ(out.at<uint64_t>(3), 0x0f0e0d0c0b0a0908u);
  EXPECT_EQ(out.at<uint32_t>(8), 0x030201feu);
  EXPECT_EQ(out.at<uint32_t>(11), 9u);
}

TEST(Ptx, SharedLocalConstantAndModuleMemoryAndGenericAddresses) {
  Buffer out = Buffer::zeros<uint32_t>(8);
  const Ran r =
      run(on(1, R"(
.local .align 4 .b8 own[16];
.reg .b64 l, s, c, g;
mov.u64 l, own;
st.local.u32 [l+4], %r1;
cvta.local.u64 l, l;
ld.u32 %r5, [l+4];
st.global.u32 [%rd1], %r5;
st.shared.u32 [tile+4], 11;
mov.u64 s, tile;
cvta.shared.u64 s, s;
ld.u32 %r6, [s+4];
st.global.u32 [%rd1+4], %r6;
ld.const.u32 %r7, [table+4];
st.global.u32 [%rd1+8], %r7;
mov.u64 c, table;
ld.const.u32 %r7, [c+8];
st.global.u32 [%rd1+12], %r7;
ld.global.u32 %r8, [counter];
add.u32 %r8, %r8, 1;
st.global.u32 [counter], %r8;
ld.global.u64 g, [where];
ld.global.u32 %r9, [g];
st.global.u32 [%rd1+16], %r9;
st.shared.u32 [open+8], 21;
ld.shared.u32 %r9, [open+8];
st.global.u32 [%rd1+20], %r9;
mov.u32 %r9, %dynamic_smem_size;
st.global.u32 [%rd1+24], %r9;
isspacep.shared %p1, s;
selp.b32 %r9, 1, 0, %p1;
st.global.u32 [%rd1+28], %r9;)",
             ".shared .align 4 .b8 tile[16];\n.extern .shared .align 16 .b8 open[];\n.const .align 4 .u32 table[3] = {5, 6, 0x7};\n"
             ".global .align 4 .u32 counter = 41;\n.global .align 8 .u64 where = generic(counter);\n"),
          {&out}, {}, {}, 12);
  for (const Fault& f : r.faults) ADD_FAILURE() << words_of(f.kind) << " " << f.text;
  for (const auto& [at, expected] : {std::pair{0, 0u}, {1, 11u}, {2, 6u}, {3, 7u}, {4, 42u}, {5, 21u}, {6, 12u}, {7, 1u}})
    EXPECT_EQ(out.at<uint32_t>(static_cast<size_t>(at)), expected) << at;
}

TEST(Ptx, AStructIsAParameterReadAtAnyPlace) {
  Buffer out = Buffer::zeros<uint32_t>(2);
  const std::string text = std::string(kHead) + R"(
.visible .entry k(.param .u64 a, .param .align 8 .b8 s[4])
{
.reg .b64 %rd<4>; .reg .b32 %r<4>;
ld.param.u64 %rd1, [a];
mov.b64 %rd2, s;
ld.param.u32 %r1, [%rd2];
ld.param.u8 %r2, [s+1];
st.global.u32 [%rd1], %r1;
st.global.u32 [%rd1+4], %r2;
ret;
})";
  EXPECT_TRUE(run(text, {&out}, {}, {}, 0, {0x01020304}).faults.empty());
  EXPECT_EQ(out.at<uint32_t>(0), 0x01020304u);
  EXPECT_EQ(out.at<uint32_t>(1), 3u);
}

TEST(Ptx, ThreadsThatPartMeetAgain) {
  // Each thread loops as often as its number says, odd ones twice as far; then all count the threads beside them.
  Buffer out = Buffer::zeros<uint32_t>(64), meets = Buffer::zeros<uint32_t>(64);
  const Ran r = run(on(2, R"(
mov.u32 %r5, 0;
mov.u32 %r6, %r1;
and.b32 %r7, %r1, 1;
setp.eq.u32 %p1, %r7, 0;
@%p1 bra EVEN;
add.u32 %r6, %r6, %r1;
EVEN:
setp.eq.u32 %p2, %r6, 0;
@%p2 bra DONE;
LOOP:
add.u32 %r5, %r5, 3;
sub.u32 %r6, %r6, 1;
setp.ne.u32 %p3, %r6, 0;
@%p3 bra LOOP;
DONE:
activemask.b32 %r8;
popc.b32 %r8, %r8;
mul.wide.u32 %rd3, %r3, 4;
add.s64 %rd4, %rd1, %rd3;
add.s64 %rd5, %rd2, %rd3;
st.global.u32 [%rd4], %r5;
st.global.u32 [%rd5], %r8;)"),
                    {&out, &meets}, {}, {40, 1, 1});
  EXPECT_TRUE(r.faults.empty());
  for (uint32_t t = 0; t < 40; ++t) {
    EXPECT_EQ(out.at<uint32_t>(t), 3 * t * (t % 2 + 1)) << t;
    EXPECT_EQ(meets.at<uint32_t>(t), t < 32 ? 32u : 8u) << t;
  }
  EXPECT_GT(r.counts.divergent_branches, 0u);
}

TEST(Ptx, CallsTablesAndNestedCalls) {
  Buffer out = Buffer::zeros<uint32_t>(32);
  const std::string functions = R"(
.func (.param .b32 r) twice(.param .b32 x)
{
.reg .b32 %r<3>;
ld.param.b32 %r1, [x];
add.u32 %r2, %r1, %r1;
st.param.b32 [r], %r2;
ret;
}
.func (.param .b32 r) more(.param .b32 x, .param .b32 y)
{
.reg .b32 %r<5>; .reg .pred %p<2>;
ld.param.b32 %r1, [x];
ld.param.b32 %r2, [y];
setp.gt.u32 %p1, %r1, 10;
@%p1 ret;
{ .param .b32 p; .param .b32 q;
st.param.b32 [p], %r2;
call.uni (q), twice, (p);
ld.param.b32 %r3, [q];
}
add.u32 %r4, %r3, %r1;
st.param.b32 [r], %r4;
ret;
}
)";
  const Ran r = run(on(1, R"(
and.b32 %r5, %r1, 3;
.reg .b32 v;
T: .branchtargets A, B, C, D;
brx.idx %r5, T;
A: mov.u32 v, 100; bra E;
B: mov.u32 v, 200; bra E;
C: { .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; call (q), twice, (p); ld.param.b32 v, [q]; } bra E;
D: { .param .b32 p; .param .b32 q; .param .b32 s; st.param.b32 [p], 1; st.param.b32 [s], %r1; call (q), more, (p, s); ld.param.b32 v, [q]; }
E:
mul.wide.u32 %rd3, %r3, 4;
add.s64 %rd4, %rd1, %rd3;
st.global.u32 [%rd4], v;)",
                       functions),
                    {&out}, {}, {32, 1, 1});
  EXPECT_TRUE(r.faults.empty());
  for (uint32_t t = 0; t < 32; ++t)
    EXPECT_EQ(out.at<uint32_t>(t), t % 4 == 0 ? 100 : t % 4 == 1 ? 200 : t % 4 == 2 ? 2 * t : 2 * t + 1) << t;
}

TEST(Ptx, ShufflesVotesMatchesAndReductions) {
  struct Case {
    const char* text;
    std::function<uint32_t(uint32_t)> expected;
  };
  const std::vector<Case> cases = {
      {"shfl.sync.up.b32 %r9, %r5, 2, 0, 0xffffffff;", [](uint32_t t) { return t >= 2 ? 10 * (t - 2) : 10 * t; }},
      {"shfl.sync.down.b32 %r9|%p1, %r5, 3, 31, -1; @!%p1 mov.u32 %r9, 7;", [](uint32_t t) { return t + 3 < 32 ? 10 * (t + 3) : 7; }},
      {"shfl.sync.bfly.b32 %r9, %r5, 5, 31, -1;", [](uint32_t t) { return 10 * (t ^ 5); }},
      {"shfl.sync.idx.b32 %r9, %r5, 4, 31, -1;", [](uint32_t) { return 40u; }},
      {"shfl.sync.idx.b32 %r9, %r5, 1, 0x181f, -1;", [](uint32_t t) { return 10 * ((t & 24) + 1); }},
      {"shfl.sync.down.b32 %r9, %r5, 4, 0x181f, -1;", [](uint32_t t) { return (t & 7) + 4 < 8 ? 10 * (t + 4) : 10 * t; }},
      {"setp.lt.u32 %p1, %r1, 5; vote.sync.ballot.b32 %r9, %p1, -1;", [](uint32_t) { return 31u; }},
      {"setp.lt.u32 %p1, %r1, 5; vote.sync.all.pred %p2, %p1, -1; selp.b32 %r9, 1, 0, %p2;", [](uint32_t) { return 0u; }},
      {"setp.lt.u32 %p1, %r1, 5; vote.sync.any.pred %p2, %p1, -1; selp.b32 %r9, 1, 0, %p2;", [](uint32_t) { return 1u; }},
      {"setp.lt.u32 %p1, %r1, 99; vote.sync.uni.pred %p2, %p1, -1; selp.b32 %r9, 1, 0, %p2;", [](uint32_t) { return 1u; }},
      {"and.b32 %r6, %r1, 1; match.any.sync.b32 %r9, %r6, -1;", [](uint32_t t) { return t % 2 ? 0xaaaaaaaau : 0x55555555u; }},
      {"and.b32 %r6, %r1, 1; match.all.sync.b32 %r9|%p1, %r6, -1;", [](uint32_t) { return 0u; }},
      {"redux.sync.add.u32 %r9, %r1, -1;", [](uint32_t) { return 496u; }},
      {"redux.sync.max.s32 %r9, %r5, -1;", [](uint32_t) { return 310u; }},
      {"bar.warp.sync -1; mov.u32 %r9, 3;", [](uint32_t) { return 3u; }},
  };
  for (const Case& c : cases) {
    Buffer out = Buffer::zeros<uint32_t>(32);
    const Ran r = run(on(1, std::string("mul.lo.u32 %r5, %r1, 10;\n") + c.text +
                                "\nmul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd1, %rd3; st.global.u32 [%rd4], %r9;"),
                      {&out}, {}, {32, 1, 1});
    EXPECT_TRUE(r.faults.empty()) << c.text;
    for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ(out.at<uint32_t>(t), c.expected(t)) << c.text << " thread " << t;
  }
}

TEST(Ptx, AWarpWaitsForTheThreadsThatItsMaskNames) {
  // Odd threads come later, from another branch; the sum needs all.
  Buffer out = Buffer::zeros<uint32_t>(32);
  const Ran r = run(on(1, R"(
mov.u32 %r5, %r1;
and.b32 %r6, %r1, 1;
setp.eq.u32 %p1, %r6, 0;
@%p1 bra MEET;
mov.u32 %r7, 50;
SPIN: sub.u32 %r7, %r7, 1;
setp.ne.u32 %p2, %r7, 0;
@%p2 bra SPIN;
MEET:
redux.sync.add.u32 %r9, %r5, -1;
mul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd1, %rd3; st.global.u32 [%rd4], %r9;)"),
                    {&out}, {}, {32, 1, 1});
  EXPECT_TRUE(r.faults.empty());
  for (size_t t = 0; t < 32; ++t) EXPECT_EQ(out.at<uint32_t>(t), 496u);
}

TEST(Ptx, BarriersJoinABlockAndReduce) {
  Buffer out = Buffer::zeros<uint32_t>(128), votes = Buffer::zeros<uint32_t>(128);
  const Ran r = run(on(2, R"(
.reg .b64 s; .reg .b32 o, n;
mov.u64 s, tile;
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd4, s, %rd3;
st.shared.u32 [%rd4], %r1;
bar.sync 0;
sub.u32 n, 127, %r1;
mul.wide.u32 %rd5, n, 4;
add.s64 %rd5, s, %rd5;
ld.shared.u32 %r5, [%rd5];
setp.lt.u32 %p1, %r1, 50;
bar.red.popc.u32 o, 0, %p1;
add.s64 %rd6, %rd1, %rd3;
st.global.u32 [%rd6], %r5;
add.s64 %rd7, %rd2, %rd3;
st.global.u32 [%rd7], o;)",
                       ".shared .align 4 .b8 tile[512];\n"),
                    {&out, &votes}, {}, {128, 1, 1});
  EXPECT_TRUE(r.faults.empty());
  for (uint32_t t = 0; t < 128; ++t) {
    EXPECT_EQ(out.at<uint32_t>(t), 127 - t);
    EXPECT_EQ(votes.at<uint32_t>(t), 50u);
  }
  EXPECT_EQ(r.counts.barriers, 2u);
}

TEST(Ptx, AtomicOperations) {
  struct Case {
    const char* text;
    uint64_t before, after;
  };
  // By threads 1 to 4 in order, with %r5 the thread's number, %rd5 the same in 64 bits, %f1 as a float.
  const std::vector<Case> cases = {
      {"atom.global.add.u32 %r9, [%rd1], %r5;", 5, 15},
      {"red.global.add.u64 [%rd1], %rd5;", 5, 15},
      {"atom.global.min.s32 %r9, [%rd1], %r5;", 3, 1},
      {"atom.global.max.u32 %r9, [%rd1], %r5;", 3, 4},
      {"atom.global.and.b32 %r9, [%rd1], %r5;", 7, 0},
      {"atom.global.or.b32 %r9, [%rd1], %r5;", 8, 15},
      {"atom.global.xor.b32 %r9, [%rd1], %r5;", 0, 4},
      {"atom.global.exch.b32 %r9, [%rd1], %r5;", 9, 4},
      {"atom.global.cas.b32 %r9, [%rd1], 2, %r5;", 2, 1},
      {"atom.global.inc.u32 %r9, [%rd1], 2;", 0, 1},
      {"atom.global.dec.u32 %r9, [%rd1], 2;", 1, 0},
      {"atom.global.add.f32 %f2, [%rd1], %f1;", f32(0.5f), f32(10.5f)},
      {"atom.acq_rel.gpu.global.add.s32 %r9, [%rd1], %r5;", 5, 15},
  };
  for (const Case& c : cases) {
    Buffer x = Buffer::of<uint64_t>({c.before});
    const Ran r =
        run(on(1, std::string("add.u32 %r5, %r1, 1;\ncvt.u64.u32 %rd5, %r5;\ncvt.rn.f32.u32 %f1, %r5;\n") + c.text), {&x}, {}, {4, 1, 1});
    EXPECT_TRUE(r.faults.empty()) << c.text;
    EXPECT_EQ(x.at<uint64_t>(0), c.after) << c.text;
  }
}

}  // namespace
}  // namespace naru::backends::ptx
