// A vendor's run-time compiler (NVRTC; AMD's hipRTC), opened at run time: what both have in common.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "naru/device.h"
#include "runtime/device/gpu_driver.h"
#include "runtime/os/library.h"

namespace naru::backends::gpu {

// Functions of both, by their names without the library's prefix.
#define NARU_GPU_COMPILER(F)                                                                                                               \
  F(int, Version, (int* major, int* minor))                                                                                                \
  F(int, CreateProgram, (Program*, const char* source, const char* name, int headers, const char* const* texts, const char* const* names)) \
  F(int, CompileProgram, (Program, int count, const char* const* options))                                                                 \
  F(int, DestroyProgram, (Program*))                                                                                                       \
  F(int, GetProgramLogSize, (Program, size_t*))                                                                                            \
  F(int, GetProgramLog, (Program, char*))                                                                                                  \
  F(const char*, GetErrorString, (int))

// Thread-safe.
class Compiler {
 public:
  virtual ~Compiler() = default;
  Compiler(const Compiler&) = delete;

  // Why it can't be used; "" if it can. Check it before using anything else.
  std::string trouble() const { return library_.trouble(); }
  // "NVRTC 13.0".
  const std::string& name() const noexcept { return name_; }
  // What it is called in sentences: "NVRTC, CUDA's run-time compiler".
  virtual const char* words() const noexcept = 0;
  // What to install if the driver does not accept this compiler's code: "pip install nvidia-cuda-nvrtc-cu12, or the CUDA toolkit".
  virtual std::string remedy() const = 0;
  // The target for a GPU: "sm_90", "gfx90a". Throws DeviceUnavailableError if it makes no code for it.
  virtual std::string architecture(const runtime::Gpu& gpu, Device device) const = 0;
  // Everything that a kernel's binary depends on besides its text and architecture.
  virtual std::string options() const = 0;
  // Compiles to a binary that the driver loads. Throws RuntimeError with the compiler's log and the source.
  virtual std::string compile(const std::string& source, const std::string& architecture, Device device) const = 0;

  // The environment variable NARU_KERNEL_TEXTS names a folder for kernels' sources; debuggers and memory checkers then report their lines.
  static bool keeps_texts();
  // Writes the source to that folder, if it is set.
  void keep_text(const std::string& source) const;

 protected:
  using Program = struct ProgramTag*;
  using Sized = int (*)(Program, size_t*);
  using Copied = int (*)(Program, char*);
  // prefix: of the functions' names, "nvrtc"; label: "NVRTC"; extension: of kept sources.
  Compiler(runtime::Library library, std::string prefix, const char* label, const char* extension);
  // Finds a function that only this compiler has.
  template <class F>
  bool find(F*& function, const char* name) {
    return library_.find(function, (prefix_ + name).c_str());
  }
  // Compiles with these options; `size` and `copy` give the code.
  std::string build(const std::string& source, std::span<const std::string> options, Sized size, Copied copy, Device device) const;

 private:
  std::string file_of(const std::string& source) const;
  runtime::Library library_;
  const std::string prefix_;
  std::string name_;
  const char* const extension_;
  struct {
#define NARU_DECLARE(result, name, parameters) result(*name) parameters = nullptr;
    NARU_GPU_COMPILER(NARU_DECLARE)
#undef NARU_DECLARE
  } functions_;
};

// NVRTC as a compiler to PTX with lines, for the virtual devices that interpret it (backends/ptx). architecture: the target to name, the virtual architecture of an
// H100 or the newest before that; "" if the compiler can't be used (trouble() says why).
std::unique_ptr<Compiler> make_ptx_compiler(std::string& architecture);

}  // namespace naru::backends::gpu
