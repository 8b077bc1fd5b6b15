// Kernels of the user's own on host memory: none here. What a C compiler makes is looked through before it is loaded (host/shared_object.h), and that
// is written for Linux's files alone.
#include "host/instructions.h"
#include "naru/error.h"

namespace naru::host {

void compile(const ir::UserKernel& k) {
  throw RuntimeError(
      "naru.kernel '{}': kernels in C run on the cpu on Linux only, and this is another system. Use naru's own operators, or a GPU",
      k.source->kernels()[static_cast<size_t>(k.entry)].name);
}
void run(const ir::UserKernel& k) { compile(k); }
void cancel_kernels_of(std::thread::id) {}

}  // namespace naru::host
