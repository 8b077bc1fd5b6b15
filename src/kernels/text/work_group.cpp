#include "kernels/text/work_group.h"

namespace naru::render::c {
namespace {

// A round runs every item from one barrier to the next. The fibers share no state with other code, so a switch only saves callee-saved
// registers.
constexpr const char* kWorkGroup = R"c(
struct naru_work_group {
  void* main;
  void** at;       // the stack of each item
  int count, now, ended, torn;
  void (*item)(struct naru_work_group*);
};
void naru_switch(void** from, void* to);
#if defined(__x86_64__)
__asm__(".text\n.globl naru_switch\n.hidden naru_switch\n.type naru_switch,@function\nnaru_switch:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n.size naru_switch, .-naru_switch\n");
enum { NARU_KEPT = 6 };
#elif defined(__aarch64__)
__asm__(".text\n.globl naru_switch\n.hidden naru_switch\n.type naru_switch,%function\nnaru_switch:\n"
        "sub sp, sp, #160\nstp x19, x20, [sp]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\nstp x25, x26, [sp, #48]\n"
        "stp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\nstp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\nstp d12, d13, [sp, #128]\n"
        "stp d14, d15, [sp, #144]\nmov x2, sp\nstr x2, [x0]\nmov sp, x1\n"
        "ldp x19, x20, [sp]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\nldp x25, x26, [sp, #48]\n"
        "ldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\nldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\nldp d12, d13, [sp, #128]\n"
        "ldp d14, d15, [sp, #144]\nadd sp, sp, #160\nret\n.size naru_switch, .-naru_switch\n");
#else
#error "naru.kernel: barrier() on the cpu is written for x86-64 and aarch64 only"
#endif
static __thread struct naru_work_group* naru_current;
// On to the next item; behind the last one, to the first again. Items that have ended must be all or none at that point.
static inline void naru_next(struct naru_work_group* t) {
  const int me = t->now, last = me + 1 == t->count;
  if (last && t->ended != 0) {
    t->torn = t->ended != t->count;
    naru_switch(&t->at[me], t->main);
  }
  t->now = last ? 0 : me + 1;
  if (t->now != me) naru_switch(&t->at[me], t->at[t->now]);
}
static __attribute__((noinline)) void naru_barrier(struct naru_work_group* t) { naru_next(t); }
static void naru_fiber(void) {
  struct naru_work_group* t = naru_current;
  t->item(t);
  ++t->ended;
  for (;;) naru_next(t);
}
static int naru_meet(struct naru_work_group* t, char* stacks, int64_t stack_bytes) {
  naru_current = t;
  t->now = t->ended = t->torn = 0;
  for (int i = 0; i < t->count; ++i) {
    // Not all at the same place in their pages: they would meet in the cache.
    void** top = (void**)(stacks + (i + 1) * stack_bytes - 64 - i % 32 * 128);
#if defined(__x86_64__)
    *--top = 0;
    *--top = (void*)naru_fiber;
    for (int j = 0; j < NARU_KEPT; ++j) *--top = 0;
#else
    for (int j = 0; j < 20; ++j) *--top = 0;
    top[11] = (void*)naru_fiber;
#endif
    t->at[i] = top;
  }
  naru_switch(&t->main, t->at[0]);
  return t->torn;
}
)c";

constexpr const char* kOpen = R"c(__attribute__((visibility("default")))
int naru_run(void* const* memory, const uint64_t* numbers, const int64_t* geometry, int64_t first, int64_t last, char* stacks, int64_t stack_bytes) {
)c";

// One group: where it starts, and how many of its items are in the grid.
constexpr const char* kEachGroup = R"c(  for (int64_t g = first; g < last; ++g) {
    naru_place group;
    int64_t rest = g;
    for (int d = 0; d < 3; ++d) {
      const int64_t items = geometry[d], threads = geometry[3 + d], groups = geometry[6 + d], n = rest % groups, left = items - n * threads;
      rest /= groups;
      group.group_[d] = (naru_i)n, group.groups_[d] = (naru_i)groups, group.items_[d] = (naru_i)items;
      group.size_[d] = (naru_i)(left < threads ? left : threads), group.whole_[d] = (naru_i)threads;
      group.global_[d] = (naru_i)(n * threads), group.local_[d] = 0;
    }
    group.work_group = 0;
)c";

}  // namespace

const char* user_work_group() noexcept { return kWorkGroup; }

std::string user_loops(bool barriers, const std::string& locals, const std::string& call) {
  if (!barriers)
    return kOpen + locals + kEachGroup +
           R"c(    const naru_i nx = group.size_[0], ny = group.size_[1], nz = group.size_[2], x0 = group.global_[0];
    for (naru_i z = 0; z < nz; ++z)
      for (naru_i y = 0; y < ny; ++y) {
        naru_place row = group;
        row.local_[1] = y, row.local_[2] = z, row.global_[1] += y, row.global_[2] += z;
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
        for (naru_i x = 0; x < nx; ++x) {
          naru_place naru_here = row;
          naru_here.local_[0] = x, naru_here.global_[0] = x0 + x;
          )c" +
           call + ";\n        }\n      }\n  }\n  return 0;\n}\n";
  return std::string(
             R"c(struct naru_work { struct naru_work_group work_group; naru_place group; void* const* memory; const uint64_t* numbers; };
static void naru_item(struct naru_work_group* t) {
  struct naru_work* const work = (struct naru_work*)t;
  void* const* const memory = work->memory;
  const uint64_t* const numbers = work->numbers;
  naru_place naru_here = work->group;
  const naru_i me = t->now, nx = naru_here.size_[0], ny = naru_here.size_[1];
  naru_here.local_[0] = me % nx, naru_here.local_[1] = me / nx % ny, naru_here.local_[2] = me / nx / ny;
  for (int d = 0; d < 3; ++d) naru_here.global_[d] += naru_here.local_[d];
  naru_here.work_group = t;
)c") + locals +
         "  " + call + ";\n}\n" + kOpen + R"c(  void** at = (void**)(stacks + geometry[3] * geometry[4] * geometry[5] * stack_bytes);
  int torn = 0;
)c" + kEachGroup +
         R"c(    struct naru_work work = {{0}, group, memory, numbers};
    work.work_group.at = at, work.work_group.item = naru_item;
    work.work_group.count = (int)(group.size_[0] * group.size_[1] * group.size_[2]);
    if ((torn = naru_meet(&work.work_group, stacks, stack_bytes))) break;
  }
  return torn;
}
)c";
}

}  // namespace naru::render::c
