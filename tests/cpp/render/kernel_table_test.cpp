// The table of compiled kernels by Key, and kernel names.
#include "render/c/kernel_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "ir/op_ids.h"
#include "ir/program_builder.h"
#include "render/c/kernel_name.h"

namespace naru::render::c {
namespace {

Launch launch_of(uint64_t bits) { return {Key{Kind::Map, nullptr, bits}, {}, {}, {}, 1, 1, {}, {}}; }

TEST(KernelTable, one_that_takes_its_time_holds_up_nobody_who_looks_for_another) {
  KernelTable<int> table;
  std::promise<void> started, over;
  std::thread slow([&] {
    table.of(launch_of(1), [&] {
      started.set_value();
      over.get_future().wait();
      return 1;
    });
  });
  started.get_future().wait();
  EXPECT_EQ(table.of(launch_of(2), [] { return 2; }), 2);
  over.set_value();
  slow.join();
  EXPECT_EQ(table.of(launch_of(1), [] { return 3; }), 1);
}

TEST(KernelTable, those_who_ask_at_the_same_time_share_one_compilation) {
  KernelTable<int> table;
  std::atomic<int> compiled{0}, first{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < 200; ++i) {
        int& kernel = table.of(launch_of(i), [&] {
          ++compiled;
          std::this_thread::yield();
          return static_cast<int>(i);
        });
        first += kernel == static_cast<int>(i);
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(compiled, 200);
  EXPECT_EQ(first, 800);
}

TEST(KernelTable, one_that_can_not_be_compiled_is_told_to_each_who_asks_and_tried_again) {
  KernelTable<int> table;
  std::promise<void> started, over;
  std::atomic<int> told{0};
  const auto ask = [&](auto compile) {
    try {
      table.of(launch_of(7), compile);
    } catch (const RuntimeError&) {
      ++told;
    }
  };
  std::thread a([&] {
    ask([&]() -> int {
      started.set_value();
      over.get_future().wait();
      throw RuntimeError("refused");
    });
  });
  started.get_future().wait();
  std::thread b([&] { ask([]() -> int { throw RuntimeError("refused again"); }); });
  over.set_value();
  a.join(), b.join();
  EXPECT_EQ(told, 2);
  EXPECT_EQ(table.of(launch_of(7), [] { return 5; }), 5);
}

TEST(KernelNames, tell_the_kind_the_first_operators_and_the_type) {
  ir::Program p;
  ir::ProgramBuilder b(p);
  const auto x = b.input(DType::F32, DType::F32), y = b.input(DType::F32, DType::F32);
  const auto product = b.node(ir::op::mul, DType::F32, {x, y});
  b.output(b.node(ir::op::add, DType::BF16, {b.result(product, DType::F32), x}));
  EXPECT_EQ(kernel_name(Key{Kind::Map, &p}), "naru_map_mul_add_bf16");
  EXPECT_EQ(kernel_name(Key{Kind::SortStep}), "naru_sort_step");
  ir::Program longer;
  ir::ProgramBuilder c(longer);
  const auto z = c.input(DType::F32, DType::F32);
  auto last = c.node(ir::op::derivative(ir::op::exp, 0), DType::F32, {z, z, z});
  for (int i = 0; i < 30; ++i) last = c.node(ir::op::add, DType::F32, {c.result(last, DType::F32), z});
  c.output(last);
  const std::string name = kernel_name(Key{Kind::Rows, &longer});
  EXPECT_TRUE(name.starts_with("naru_rows_exp_da_add_")) << name;
  EXPECT_TRUE(name.ends_with("_f32")) << name;
  EXPECT_LT(name.size(), 64u);
}

TEST(KernelNames, stand_in_the_texts_where_renderers_wrote_a_letter) {
  const std::string text = "#define KERNEL(n) __launch_bounds__(n)\ntypedef int A;\nKERNEL(64) k(A a) {\n  int k(1);\n}\n";
  const std::string named = with_name(text, "naru_map_f32");
  EXPECT_EQ(named, "#define KERNEL(n) __launch_bounds__(n)\ntypedef int A;\nKERNEL(64) naru_map_f32(A a) {\n  int k(1);\n}\n");
  EXPECT_EQ(kernel_of_text(named), "naru_map_f32");
  // A user kernel keeps its own name.
  const std::string user = "// KERNEL(3) none(\nextern \"C\" __global__ void __launch_bounds__(64) naru_user_mine(int a) {}";
  EXPECT_EQ(with_name(user, "naru_user"), user);
  EXPECT_EQ(kernel_of_text(user), "naru_user_mine");
  EXPECT_EQ(kernel_of_text("int k(int a) { return a; }"), "");
}

}  // namespace
}  // namespace naru::render::c
