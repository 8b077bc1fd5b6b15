// NVRTC, CUDA's run-time compiler.
#pragma once

#include <string>
#include <vector>

#include "backends/gpu/compiler.h"

namespace naru::backends::cuda {

class Compiler final : public gpu::Compiler {
 public:
  // Opens NARU_NVRTC_LIBRARY, else the newest NVRTC whose code this driver version accepts ("12080" is CUDA 12.8), else any. Searches the
  // system's libraries, toolkit folders and wheels (see runtime/os/library.h).
  // lines: its code says which line of the source each instruction belongs to.
  explicit Compiler(int driver_version, bool lines = keeps_texts());

  const char* words() const noexcept override { return "NVRTC, CUDA's run-time compiler"; }
  std::string remedy() const override;
  // "sm_90" gives machine code; "compute_90" gives PTX, which the driver compiles further, for devices that are newer than the compiler.
  std::string architecture(const runtime::Gpu& gpu, Device device) const override;
  // The same for a capability major.minor; "" if there is none, as for devices older than it supports.
  std::string architecture(int major, int minor) const;
  std::string options() const override;
  // Compiles CUDA C++ to machine code or PTX.
  std::string compile(const std::string& source, const std::string& architecture, Device device) const override;

 private:
  const int driver_version_;
  const bool lines_;
  std::vector<int> known_;  // 75, 80, ... in order
  int (*count_)(int*) = nullptr;
  int (*list_)(int*) = nullptr;
  Sized ptx_size_ = nullptr, cubin_size_ = nullptr;
  Copied ptx_ = nullptr, cubin_ = nullptr;
};

}  // namespace naru::backends::cuda
