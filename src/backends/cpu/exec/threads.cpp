#include "naru/device/threads.h"

#include "backends/cpu/exec/thread_pool.h"
#include "naru/error.h"

namespace naru {

int get_num_threads() noexcept { return cpu::num_threads(); }

void set_num_threads(int n) {
  if (n < 1 || n > 1024) throw RuntimeError("set_num_threads expects a positive integer (up to 1024), got {}", n);
  cpu::set_num_threads(n);
}

}  // namespace naru
