// The machine's C compiler, found at run time: for users' kernels on host memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace naru::host {

class CCompiler {
 public:
  // $CC, else cc, gcc or clang on the PATH, else that of the wheel ziglang. Throws RuntimeError that says what to install.
  static CCompiler find();

  // "gcc (Debian 12.2.0-14) 12.2.0": the first line of --version.
  const std::string& name() const noexcept { return name_; }
  // What a library depends on besides its text.
  std::string options() const;
  // A shared library of the source; its bytes. frame: bytes that a function's variables may take, 0 for any. Throws Refused.
  std::string compile(const std::string& text, int64_t frame) const;

  // The text with macros replaced. Throws Refused.
  std::string preprocess(const std::string& text) const;

  struct Refused {
    std::string log;
  };

 private:
  std::vector<std::string> command_;  // the program and arguments that the user gave it
  std::string name_;
};

}  // namespace naru::host
