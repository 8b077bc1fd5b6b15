// hipRTC, HIP's run-time compiler.
#pragma once

#include <string>

#include "backends/gpu/compiler.h"

namespace naru::backends::rocm {

class Compiler final : public gpu::Compiler {
 public:
  // Opens NARU_HIPRTC_LIBRARY, else the library of the driver's own version, in which it is up to ROCm 5 a part of libamdhip64.
  // driver_version: 60342134 is HIP 6.3.
  explicit Compiler(int driver_version);

  const char* words() const noexcept override { return "hipRTC, HIP's run-time compiler"; }
  std::string remedy() const override;
  // "gfx90a:sramecc+:xnack-".
  std::string architecture(const runtime::Gpu& gpu, Device device) const override;
  std::string options() const override;
  // Compiles HIP C++ to a code object.
  std::string compile(const std::string& source, const std::string& architecture, Device device) const override;

 private:
  Sized size_ = nullptr;
  Copied code_ = nullptr;
};

}  // namespace naru::backends::rocm
