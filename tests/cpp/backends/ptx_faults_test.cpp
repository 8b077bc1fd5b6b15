// The interpreter of PTX (backends/ptx): each kind of fault of kernels written by hand, counts, and what is not supported.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "backends/ptx_support.h"
#include "naru/error.h"

namespace naru::backends::ptx {
namespace {

const Fault* find(const Ran& r, FaultKind kind) {
  for (const Fault& f : r.faults)
    if (f.kind == kind) return &f;
  return nullptr;
}

const char* const kStore = "mul.wide.u32 %rd3, %r3, 4;\nadd.s64 %rd4, %rd1, %rd3;\n.loc 1 17 5\nst.global.u32 [%rd4], %r1;";

TEST(Ptx, AnAccessBehindATensorIsFoundWithLineThreadAndTensor) {
  Buffer x = Buffer::zeros<uint32_t>(40, "weight");
  const Ran r = run(".version 8.0\n" + on(1, kStore) + ".file 1 \"kernel\"\n", {&x}, {2, 1, 1}, {32, 1, 1});
  ASSERT_EQ(r.faults.size(), 1u);
  const Fault& f = r.faults[0];
  EXPECT_EQ(f.kind, FaultKind::OutOfBounds);
  EXPECT_EQ(f.line, 17u);
  EXPECT_EQ(f.file, "kernel");
  EXPECT_EQ(f.block.x, 1u);
  EXPECT_EQ(f.thread.x, 8u);
  EXPECT_EQ(f.times, 24u);
  EXPECT_EQ(f.text, "writes 4 bytes, 0 bytes behind `weight`");
  EXPECT_EQ(f.instruction, "st.global.u32");
}

TEST(Ptx, AnAccessBeforeATensorAndANullPointerAreFound) {
  Buffer x = Buffer::zeros<uint32_t>(4, "weight");
  Ran r = run(on(1, "ld.global.u32 %r5, [%rd1+-8];"), {&x});
  ASSERT_EQ(r.faults.size(), 1u);
  EXPECT_EQ(r.faults[0].text, "reads 4 bytes, 8 bytes before `weight`");
  r = run(on(1, "mov.u64 %rd2, 0;\nld.global.u32 %r5, [%rd2+4];"), {&x});
  ASSERT_EQ(r.faults.size(), 1u);
  EXPECT_NE(r.faults[0].text.find("null pointer"), std::string::npos);
}

TEST(Ptx, AMisalignedAccessIsFound) {
  Buffer x = Buffer::zeros<uint64_t>(8, "weight");
  const Ran r = run(on(1, "ld.global.v2.u32 {%r5, %r6}, [%rd1+4];"), {&x});
  ASSERT_EQ(r.faults.size(), 1u);
  EXPECT_EQ(r.faults[0].kind, FaultKind::Misaligned);
  EXPECT_EQ(r.faults[0].text, "8 bytes at byte 4 of `weight`, no multiple of 8");
}

TEST(Ptx, AWriteToAnInputIsFound) {
  Buffer x = Buffer::zeros<uint32_t>(4, "weight");
  x.written = false;
  const Ran r = run(on(1, "st.global.u32 [%rd1], 1;"), {&x});
  ASSERT_EQ(r.faults.size(), 1u);
  EXPECT_EQ(r.faults[0].kind, FaultKind::WriteToInput);
  EXPECT_EQ(x.at<uint32_t>(0), 0u);
}

TEST(Ptx, SharedMemoryHasBoundsAndMustBeWrittenFirst) {
  Buffer x = Buffer::zeros<uint32_t>(4);
  const char* const tiles = ".shared .align 4 .b8 first[16];\n.shared .align 4 .b8 second[16];\n";
  Ran r = run(on(1, "st.shared.u32 [first+16], 1;", tiles), {&x});
  ASSERT_EQ(r.faults.size(), 1u);
  EXPECT_EQ(r.faults[0].kind, FaultKind::OutOfBounds);
  EXPECT_EQ(r.faults[0].text, "4 bytes, 0 bytes behind the shared array `first` of 16 bytes");
  r = run(on(1, "st.shared.u8 [second+4], 1;\nld.shared.u32 %r5, [second+4];", tiles), {&x});
  ASSERT_EQ(r.faults.size(), 1u);
  EXPECT_EQ(r.faults[0].kind, FaultKind::Uninitialized);
  EXPECT_EQ(r.faults[0].text, "byte 4 of the shared array `second` of 16 bytes");
}

// Each thread writes its element of a shared array and reads its neighbour's.
std::string neighbours(const std::string& between, int distance) {
  return on(1,
            fmt::format(R"(
.reg .b64 s;
mov.u64 s, tile;
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd4, s, %rd3;
.loc 1 5 1
st.shared.u32 [%rd4], %r3;
{}
xor.b32 %r5, %r1, {};
mul.wide.u32 %rd5, %r5, 4;
add.s64 %rd5, s, %rd5;
.loc 1 7 1
ld.shared.u32 %r6, [%rd5];)",
                        between, distance),
            ".shared .align 4 .b8 tile[256];\n");
}

TEST(Ptx, ARaceInABlockIsFoundUnlessABarrierOrdersIt) {
  Buffer x = Buffer::zeros<uint32_t>(1);
  Ran r = run(neighbours("", 32), {&x}, {}, {64, 1, 1});
  const Fault* f = find(r, FaultKind::RaceInBlock);
  ASSERT_TRUE(f);
  EXPECT_EQ(f->line, 5u);  // the second warp writes what the first has read already
  EXPECT_NE(f->text.find("has read at line 7"), std::string::npos) << f->text;
  EXPECT_TRUE(run(neighbours("bar.sync 0;", 32), {&x}, {}, {64, 1, 1}).faults.empty());
  // Threads of a warp are no exception: __syncwarp() orders them, and only them.
  EXPECT_TRUE(find(run(neighbours("", 1), {&x}, {}, {64, 1, 1}), FaultKind::RaceInBlock));
  EXPECT_TRUE(run(neighbours("bar.warp.sync -1;", 1), {&x}, {}, {64, 1, 1}).faults.empty());
  EXPECT_FALSE(run(neighbours("bar.warp.sync -1;", 32), {&x}, {}, {64, 1, 1}).faults.empty());
  // Its own element.
  EXPECT_TRUE(run(neighbours("", 0), {&x}, {}, {64, 1, 1}).faults.empty());
}

TEST(Ptx, AReadThatALaterWriteOvertakesIsARace) {
  Buffer x = Buffer::zeros<uint32_t>(1);
  const std::string text = neighbours("bar.sync 0;", 32);
  const std::string ends = "\nst.shared.u32 [%rd4], %r6;\nret;\n}\n";
  const std::string raced = text.substr(0, text.rfind("\nret;")) + ends;
  EXPECT_TRUE(find(run(raced, {&x}, {}, {64, 1, 1}), FaultKind::RaceInBlock));
  EXPECT_TRUE(run(text.substr(0, text.rfind("\nret;")) + "\nbar.sync 0;" + ends, {&x}, {}, {64, 1, 1}).faults.empty());
}

TEST(Ptx, ARaceBetweenBlocksIsFoundUnlessAtomicOrOfOneValue) {
  Buffer x = Buffer::zeros<uint32_t>(4, "sums");
  Ran r = run(on(1, "st.global.u32 [%rd1], %r2;"), {&x}, {3, 1, 1});
  const Fault* f = find(r, FaultKind::RaceBetweenBlocks);
  ASSERT_TRUE(f);
  EXPECT_NE(f->text.find("byte 0 of `sums`"), std::string::npos) << f->text;
  EXPECT_TRUE(run(on(1, "red.global.add.u32 [%rd1], 1;"), {&x}, {3, 1, 1}).faults.empty());
  EXPECT_TRUE(run(on(1, "st.global.u32 [%rd1], 5;"), {&x}, {3, 1, 1}).faults.empty());
  // Read by one block, written by another: not ordered either.
  EXPECT_TRUE(
      find(run(on(1, "setp.eq.u32 %p1, %r2, 0;\n@%p1 ld.global.u32 %r5, [%rd1+4];\n@!%p1 st.global.u32 [%rd1+4], %r2;"), {&x}, {2, 1, 1}),
           FaultKind::RaceBetweenBlocks));
}

// Each block writes a number; the last one to count itself adds all.
std::string last_block(const char* fence) {
  return on(2, fmt::format(R"(
mul.wide.u32 %rd3, %r2, 4;
add.s64 %rd4, %rd1, %rd3;
add.u32 %r5, %r2, 1;
st.global.u32 [%rd4], %r5;
{}
atom.global.add.u32 %r6, [%rd2], 1;
mov.u32 %r7, %nctaid.x;
sub.u32 %r7, %r7, 1;
setp.ne.u32 %p1, %r6, %r7;
@%p1 bra END;
ld.global.u32 %r8, [%rd1];
ld.global.u32 %r9, [%rd1+4];
add.u32 %r8, %r8, %r9;
ld.global.u32 %r9, [%rd1+8];
add.u32 %r8, %r8, %r9;
st.global.u32 [%rd2+4], %r8;
END:)",
                           fence));
}

TEST(Ptx, FencesAndAtomicsOrderBlocks) {
  Buffer x = Buffer::zeros<uint32_t>(3), n = Buffer::zeros<uint32_t>(2);
  EXPECT_TRUE(run(last_block("membar.gl;"), {&x, &n}, {3, 1, 1}).faults.empty());
  EXPECT_EQ(n.at<uint32_t>(1), 6u);
  n = Buffer::zeros<uint32_t>(2);
  EXPECT_TRUE(find(run(last_block(""), {&x, &n}, {3, 1, 1}), FaultKind::RaceBetweenBlocks));
}

TEST(Ptx, ABarrierThatSomeThreadsPassByIsFound) {
  Buffer x = Buffer::zeros<uint32_t>(64);
  const std::string store = kStore;
  // Half of a warp, and a warp of two.
  for (const char* limit : {"16", "32"}) {
    const Ran r = run(on(1, fmt::format("setp.ge.u32 %p1, %r1, {};\n@%p1 bra OVER;\n.loc 1 9 1\nbar.sync 0;\nOVER:\n{}", limit, store)),
                      {&x}, {}, {64, 1, 1});
    const Fault* const f = find(r, FaultKind::DivergentBarrier);
    ASSERT_TRUE(f) << limit;
    EXPECT_EQ(f->line, 9u);
  }
  // Two barriers, one for each half.
  EXPECT_TRUE(
      find(run(on(1, "setp.ge.u32 %p1, %r1, 32;\n@%p1 bra OTHER;\nbar.sync 0;\nbra END;\nOTHER: bar.sync 0;\nEND:"), {&x}, {}, {64, 1, 1}),
           FaultKind::DivergentBarrier));
  // Threads that have ended are not waited for.
  EXPECT_TRUE(
      run(on(1, "setp.ge.u32 %p1, %r1, 40;\n@%p1 bra END;\nbar.sync 0;\n" + store + "\nEND:"), {&x}, {}, {64, 1, 1}).faults.empty());
  // A warp whose mask names threads that do not come.
  EXPECT_TRUE(find(run(on(1, "setp.ge.u32 %p1, %r1, 8;\n@%p1 bra OVER;\nbar.warp.sync -1;\nOVER:\nbar.sync 0;"), {&x}, {}, {32, 1, 1}),
                   FaultKind::DivergentBarrier));
}

TEST(Ptx, NamedBarriersWaitForSoManyThreads) {
  Buffer x = Buffer::zeros<uint32_t>(64);
  const Ran r =
      run(on(1, "setp.ge.u32 %p1, %r1, 32;\n@%p1 bra OVER;\nbar.sync 1, 32;\nbar.sync 1, 32;\nOVER:\nbar.sync 0;\n" + std::string(kStore)),
          {&x}, {}, {64, 1, 1});
  EXPECT_TRUE(r.faults.empty());
}

TEST(Ptx, CountsOfMemory) {
  Buffer x = Buffer::zeros<uint32_t>(33 * 32);
  const auto with = [&](const std::string& step, const std::string& op) {
    // From a multiple of 128 on.
    const std::string text = fmt::format(
        "add.s64 %rd1, %rd1, 127;\nand.b64 %rd1, %rd1, -128;\nmul.wide.u32 %rd3, %r1, {};\nadd.s64 %rd4, %rd1, %rd3;\n{}", step, op);
    return run(on(1, text), {&x}, {}, {32, 1, 1}).counts;
  };
  Counts c = with("4", "ld.global.u32 %r5, [%rd4];");  // neighbours
  EXPECT_EQ(c.global_sectors, 4u);
  EXPECT_EQ(c.ideal_sectors, 4u);
  EXPECT_EQ(c.global_accesses, 1u);
  EXPECT_EQ(c.read_bytes, 128u);
  c = with("128", "ld.global.u32 %r5, [%rd4];");  // a column
  EXPECT_EQ(c.global_sectors, 32u);
  EXPECT_EQ(c.ideal_sectors, 4u);
  c = with("0", "ld.global.u32 %r5, [%rd4];");  // the same for all
  EXPECT_EQ(c.global_sectors, 1u);
  EXPECT_EQ(c.ideal_sectors, 1u);
  c = with("16", "ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd4];");
  EXPECT_EQ(c.global_sectors, 16u);
  EXPECT_EQ(c.ideal_sectors, 16u);
  const auto banks = [&](int step, const char* op) {
    return run(on(1, fmt::format("mov.u64 %rd2, tile;\nmul.wide.u32 %rd3, %r1, {};\nadd.s64 %rd4, %rd2, %rd3;\n{}", step, op),
                  ".shared .align 16 .b8 tile[8192];\n"),
               {&x}, {}, {32, 1, 1})
        .counts.bank_conflicts;
  };
  EXPECT_EQ(banks(4, "st.shared.u32 [%rd4], %r1;"), 0u);
  EXPECT_EQ(banks(8, "st.shared.u32 [%rd4], %r1;"), 1u);
  EXPECT_EQ(banks(128, "st.shared.u32 [%rd4], %r1;"), 31u);
  EXPECT_EQ(banks(132, "st.shared.u32 [%rd4], %r1;"), 0u);
  EXPECT_EQ(banks(0, "st.shared.u32 [%rd4], 1;"), 0u);
  EXPECT_EQ(banks(8, "st.shared.v2.u32 [%rd4], {%r1, %r1};"), 0u);
  EXPECT_EQ(banks(16, "st.shared.v4.u32 [%rd4], {%r1, %r1, %r1, %r1};"), 0u);
}

TEST(Ptx, WhatIsNotSupportedIsNamed) {
  Buffer x = Buffer::zeros<uint32_t>(1);
  const auto said = [&](const std::string& body) -> std::string {
    try {
      run(on(1, body), {&x});
    } catch (const NotImplementedError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(said("wgmma.fence.sync.aligned;").find("'wgmma.fence.sync.aligned'"), std::string::npos);
  EXPECT_NE(said("mov.u32 %r5, %envreg3;").find("%envreg3"), std::string::npos);
  EXPECT_NE(said("add.ftz.f32 %f1, %f2, %f3;").find(".ftz"), std::string::npos);
  EXPECT_THROW(run(on(1, "add.u32 %r5, %rd1, 1;"), {&x}), RuntimeError);  // of another size
  EXPECT_THROW(run(on(1, "bra NOWHERE;"), {&x}), RuntimeError);
  EXPECT_THROW(read_program(kHead, "k"), RuntimeError);
}

}  // namespace
}  // namespace naru::backends::ptx
