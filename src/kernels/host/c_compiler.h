// The system's C compiler, found at run time. It compiles user kernels for host memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace naru::cpu {

class CCompiler {
 public:
  // $CC, else cc, gcc or clang on the PATH, else the one in the wheel ziglang. Throws RuntimeError that tells what to install.
  static CCompiler find();

  // "gcc (Debian 12.2.0-14) 12.2.0": the first line of --version.
  const std::string& name() const noexcept { return name_; }
  // Everything that a library depends on besides its text.
  std::string options() const;
  // Compiles the source to a shared library and returns its bytes. frame: limit of a function's stack frame in bytes, 0 for none. Throws
  // Refused.
  std::string compile(const std::string& text, int64_t frame) const;

  // Runs the preprocessor. Throws Refused.
  std::string preprocess(const std::string& text) const;

  struct Refused {
    std::string log;
  };

 private:
  std::vector<std::string> command_;  // the program and its arguments from the user
  std::string name_;
};

}  // namespace naru::cpu
