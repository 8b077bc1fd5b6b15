// User kernels on host memory: not supported on this system. The output of the C compiler is checked before it is loaded
// (kernels/host/shared_object.h), and that is only implemented for Linux.
#include "backends/cpu/exec/instructions.h"
#include "naru/error.h"

namespace naru::cpu {

void compile(const ir::UserKernel& k) {
  throw RuntimeError(
      "naru.kernel '{}': kernels in C run on the cpu on Linux only, and this is another system. Use naru's own operators, or a GPU",
      k.source->kernels()[static_cast<size_t>(k.entry)].name);
}
void run(const ir::UserKernel& k) { compile(k); }
void cancel_kernels_of(std::thread::id) {}

}  // namespace naru::cpu
