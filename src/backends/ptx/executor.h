// Executor: what a virtual cuda device with execute=ptx does with instructions. They become the kernels that a real device would get, NVRTC makes PTX of
// them, and the machine interprets it. It takes the place of a driver below render::c::Launcher; libraries (cuBLASLt, cuDNN) are not called.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "backends/gpu/compiler.h"
#include "backends/ptx/machine.h"
#include "core/capabilities.h"
#include "core/storage.h"
#include "ir/instruction.h"
#include "render/c/kernel_table.h"

namespace naru::backends::ptx {

// Memory that an instruction may use, as known when it is submitted.
struct OperandMemory {
  uintptr_t base = 0;  // on the host
  uint64_t bytes = 0;
  bool written = false;
  std::string name, type;  // of a user kernel's parameter; else what the operand is: "input of a reduction"
  std::vector<int64_t> sizes;
  Origin origin;
  std::string text() const;
};

class Executor {
 public:
  // Throws DeviceUnavailableError that says what to install if there is no NVRTC.
  explicit Executor(Device device);
  // The blocks of the device's allocator that the instruction's operands lie in. Addresses of the instruction are the device's; to_host makes the host's.
  std::vector<OperandMemory> memory_of(const ir::Instruction& instruction, const std::function<void*(void*)>& to_host) const;
  // Those of a real cuda device without libraries.
  static Capabilities capabilities();
  // True if there is a kernel for it; host memory's executor does the rest.
  static bool takes(const ir::Instruction& instruction) noexcept;
  // Addresses are the host's. Throws IndexError of a bad index, and, unless the report collects, RuntimeError of a fault.
  void run(const ir::Instruction& instruction, const std::vector<OperandMemory>& memory, const std::function<bool()>& cancelled);
  // Compiles a user's kernel. Throws RuntimeError with the compiler's words.
  void prepare(const ir::Instruction& instruction);

 private:
  friend class PtxLauncher;
  struct Kernel {
    std::unique_ptr<Program> program;
    std::string name, text;
  };
  static render::c::Target target();
  Kernel compile(const std::string& text) const;

  const Device device_;
  std::string architecture_;
  std::unique_ptr<gpu::Compiler> compiler_;
  const render::c::Target target_;
  render::c::KernelTable<Kernel> kernels_;
};

}  // namespace naru::backends::ptx
