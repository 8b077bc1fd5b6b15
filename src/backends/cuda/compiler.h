// NVRTC, CUDA's run-time compiler, opened at run time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "naru/device.h"
#include "runtime/os/library.h"

namespace naru::backends::cuda {

class Compiler {
 public:
  // Opens NARU_NVRTC_LIBRARY, else the newest NVRTC whose code this driver version accepts ("12080" is CUDA 12.8), else any. Searches the
  // system's libraries, toolkit folders and wheels (see runtime/os/library.h). Check trouble() before using it.
  explicit Compiler(int driver_version);

  // Why it can't be used; "" if it can.
  std::string trouble() const;
  // "NVRTC 13.0".
  const std::string& name() const noexcept { return name_; }
  // What to install if the driver does not accept this compiler's code: "pip install nvidia-cuda-nvrtc-cu12, or the CUDA toolkit".
  std::string remedy() const;

  // Target for a device of capability major.minor: "sm_90" gives machine code; "compute_90" gives PTX, which the driver compiles further,
  // for devices that are newer than the compiler. "" if there is none, as for devices older than it supports.
  std::string architecture(int major, int minor) const;
  // Everything that a kernel's binary depends on besides its text and architecture.
  static std::string options();
  // Writes the source to the folder that NARU_KERNEL_TEXTS names, if it is set.
  static void keep_text(const std::string& source);

  // Compiles CUDA C++ to machine code or PTX. Throws RuntimeError with the compiler's log and the source.
  std::string compile(const std::string& source, const std::string& architecture, Device device) const;

 private:
  using Program = struct ProgramTag*;
  const int driver_version_;
  runtime::Library library_;
  std::string name_;
  std::vector<int> known_;  // 75, 80, ... in order
  int (*version_)(int*, int*) = nullptr;
  int (*count_)(int*) = nullptr;
  int (*list_)(int*) = nullptr;
  int (*create_)(Program*, const char* source, const char* name, int headers, const char* const* texts, const char* const* names) = nullptr;
  int (*compile_)(Program, int count, const char* const* options) = nullptr;
  int (*destroy_)(Program*) = nullptr;
  int (*log_size_)(Program, size_t*) = nullptr;
  int (*log_)(Program, char*) = nullptr;
  int (*ptx_size_)(Program, size_t*) = nullptr;
  int (*ptx_)(Program, char*) = nullptr;
  int (*cubin_size_)(Program, size_t*) = nullptr;
  int (*cubin_)(Program, char*) = nullptr;
  const char* (*error_)(int) = nullptr;
};

}  // namespace naru::backends::cuda
