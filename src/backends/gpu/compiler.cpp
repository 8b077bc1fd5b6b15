#include "backends/gpu/compiler.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "naru/error.h"
#include "render/c/launch.h"

namespace naru::backends::gpu {
namespace {

std::string folder_of_texts() {
  const char* const folder = std::getenv("NARU_KERNEL_TEXTS");
  return folder ? folder : "";
}

}  // namespace

Compiler::Compiler(runtime::Library library, std::string prefix, const char* label, const char* extension)
    : library_(std::move(library)), prefix_(std::move(prefix)), extension_(extension) {
#define NARU_FIND(result, name, parameters) find(functions_.name, #name);
  NARU_GPU_COMPILER(NARU_FIND)
#undef NARU_FIND
  int major = 0, minor = 0;
  if (functions_.Version) functions_.Version(&major, &minor);
  name_ = fmt::format("{} {}.{}", label, major, minor);
}

bool Compiler::keeps_texts() { return !folder_of_texts().empty(); }

std::string Compiler::file_of(const std::string& source) const {
  return fmt::format("{}/{:016x}.{}", folder_of_texts(), std::hash<std::string>()(source), extension_);
}

void Compiler::keep_text(const std::string& source) const {
  if (!keeps_texts()) return;
  std::error_code none;
  std::filesystem::create_directories(folder_of_texts(), none);
  std::ofstream(file_of(source)) << source;
}

std::string Compiler::build(const std::string& source, std::span<const std::string> options, Sized size, Copied copy, Device device) const {
  const auto refused = [&](const std::string& step, int code, const std::string& log) {
    return RuntimeError("device {}: {} refused a kernel ({} failed with {}): {}\n{}", device.str(), name_, step,
                        functions_.GetErrorString(code), log, source);
  };
  Program program = nullptr;
  const std::string file = keeps_texts() ? file_of(source) : fmt::format("kernel.{}", extension_);
  if (const int code = functions_.CreateProgram(&program, source.c_str(), file.c_str(), 0, nullptr, nullptr); code != 0)
    throw refused(prefix_ + "CreateProgram", code, "");
  struct Destroy {
    int (*destroy)(Program*);
    Program* program;
    ~Destroy() { destroy(program); }
  } const destroy{functions_.DestroyProgram, &program};
  std::vector<const char*> words;
  for (const std::string& o : options) words.push_back(o.c_str());
  if (const int code = functions_.CompileProgram(program, static_cast<int>(words.size()), words.data()); code != 0) {
    size_t bytes = 0;
    functions_.GetProgramLogSize(program, &bytes);
    std::string log(bytes, '\0');
    if (bytes > 0) functions_.GetProgramLog(program, log.data());
    throw render::c::CompilerError(refused(prefix_ + "CompileProgram", code, log.c_str()).what(), "the compiler " + name_, log.c_str());
  }
  size_t bytes = 0;
  if (const int code = size(program, &bytes); code != 0) throw refused("reading the size of its code", code, "");
  std::string binary(bytes, '\0');
  if (const int code = copy(program, binary.data()); code != 0) throw refused("reading its code", code, "");
  return binary;
}

}  // namespace naru::backends::gpu
