// User kernels on host memory: they must not be able to harm the process.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <climits>
#include <thread>

#include "backends/cpu/exec/execute.h"
#include "kernels/source/kernel_source.h"
#include "naru/error.h"
#include "runtime/os/interrupt.h"

namespace naru::cpu {
namespace {

ir::UserKernel kernel(const std::string& text, std::vector<void*> memory, int64_t items = 1) {
  ir::UserKernel k;
  k.source = &ir::KernelSource::of(text);
  k.memory = std::move(memory);
  k.items = {items, 1, 1};
  k.threads = {std::min<int64_t>(items, 8), 1, 1};
  return k;
}

TEST(UserKernel, DividesByZeroAndTheLeastNumberByMinusOneWithoutATrap) {
  int in[] = {5, 0, INT_MIN, -1, 7, 2}, out[12] = {};
  execute(
      kernel("#define OVER(a, b) ((a) / (b))\n"
             "kernel void k(const int* v, int* o) { int i = global_id(0), a = v[2 * i], b = v[2 * i + 1], q = a, r = a;\n"
             "  q /= b; r %= b; o[4 * i] = OVER(a, b); o[4 * i + 1] = a % b; o[4 * i + 2] = q; o[4 * i + 3] = r; }",
             {in, out}, 3));
  const int wanted[] = {0, 0, 0, 0, INT_MIN, 0, INT_MIN, 0, 3, 1, 3, 1};
  for (int i = 0; i < 12; ++i) EXPECT_EQ(out[i], wanted[i]) << i;
}

TEST(UserKernel, ReachesNoLibraryButMathematics) {
  float o[1] = {8};
  execute(kernel("kernel void k(float* o) { o[0] = cbrtf(o[0]) + abs(-3); }", {o}));
  EXPECT_EQ(o[0], 5);
  for (const char* text : {"int system(const char*);\nkernel void k(float* o) { o[0] = system(\"true\"); }",
                           "extern char** environ;\nkernel void k(float* o) { o[0] = environ != 0; }"})
    EXPECT_THROW(execute(kernel(text, {o})), RuntimeError) << text;
  for (const char* text : {"#include <stdlib.h>\nkernel void k(float* o) { o[0] = 1; }", "kernel void k(float* o) { __asm__(\"ud2\"); }",
                           "kernel void k(float* o) { o[0] = __builtin_alloca(8) != 0; }"})
    EXPECT_THROW(kernel(text, {o}), ValueError) << text;
  EXPECT_EQ(o[0], 5);
}

TEST(UserKernel, HasArraysThatAThreadHasRoomFor) {
  float o[8] = {};
  EXPECT_THROW(
      execute(kernel("kernel void k(float* o) { float t[100000000]; for (int i = 0; i < 100000000; i++) t[i] = i; o[0] = t[5]; }", {o})),
      RuntimeError);
  EXPECT_THROW(execute(kernel("kernel void k(float* o) { shared float t[100000000]; t[9] = 1; barrier(); o[0] = t[9]; }", {o})),
               RuntimeError);
  EXPECT_THROW(execute(kernel("kernel void k(float* o) { int n = o[0]; float t[n]; t[0] = 1; o[0] = t[0]; }", {o})), RuntimeError);
  execute(kernel(
      "kernel void k(float* o) { shared float t[8]; t[local_id(0)] = global_id(0); barrier(); o[global_id(0)] = t[7 - local_id(0)]; }", {o},
      8));
  EXPECT_EQ(o[0], 7);
}

#ifndef __SANITIZE_THREAD__
volatile sig_atomic_t heard = 0;

TEST(UserKernel, WithoutEndIsEndedByAnInterrupt) {
  struct sigaction ours {
  }, before;
  ours.sa_handler = [](int) { heard = heard + 1; };
  sigaction(SIGINT, &ours, &before);
  runtime::watch_interrupts(true);
  int rounds = 0;
  for (const char* text : {"kernel void k(float* o) { while (1) o[0] += 1; }", "kernel void k(float* o) { again: o[0] += 1; goto again; }",
                           "kernel void k(float* o) { barrier(); for (;;) { o[local_id(0)] += 1; barrier(); } }"}) {
    float o[8] = {};
    const ir::UserKernel k = kernel(text, {o}, 8);
    prepare(k);
    std::thread later([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      kill(getpid(), SIGINT);
    });
    EXPECT_THROW(execute(k), runtime::Interrupted) << text;
    later.join();
    EXPECT_EQ(heard, ++rounds);
  }
  float o[1] = {};
  execute(kernel("kernel void k(float* o) { for (int i = 0; i < 10; i++) o[0] += 1; }", {o}));
  EXPECT_EQ(o[0], 10);
  runtime::watch_interrupts(false);
  sigaction(SIGINT, &before, nullptr);
}
#endif

}  // namespace
}  // namespace naru::cpu
