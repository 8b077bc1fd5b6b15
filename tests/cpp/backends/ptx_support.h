// Runs kernels in PTX written by hand on the interpreter (backends/ptx).
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "backends/ptx/machine.h"
#include "backends/ptx/program.h"

namespace naru::backends::ptx {

constexpr const char* kHead = ".version 8.0\n.target sm_90\n.address_size 64\n";

// Runs `k` of a module on memory: each buffer is a parameter and a region.
struct Ran {
  std::vector<Fault> faults;
  Counts counts;
};
struct Buffer {
  std::vector<uint8_t> bytes;
  bool written = true;
  const char* name = "x";
  template <class T>
  static Buffer of(std::initializer_list<T> values, const char* name = "x", bool written = true) {
    Buffer b{std::vector<uint8_t>(values.size() * sizeof(T)), written, name};
    std::memcpy(b.bytes.data(), std::data(values), b.bytes.size());
    return b;
  }
  template <class T>
  static Buffer zeros(size_t n, const char* name = "x") {
    return {std::vector<uint8_t>(n * sizeof(T)), true, name};
  }
  template <class T>
  T at(size_t i) const {
    T x;
    std::memcpy(&x, bytes.data() + i * sizeof(T), sizeof x);
    return x;
  }
};
inline Ran run(const std::string& text, std::vector<Buffer*> buffers, Three grid = {}, Three block = {}, unsigned shared = 0,
               std::vector<uint32_t> numbers = {}) {
  const auto program = read_program(text, "k");
  std::vector<std::byte> parameters(program->parameter_bytes);
  std::vector<Region> regions;
  size_t n = 0;
  for (Buffer* b : buffers) {
    const uint8_t* const p = b->bytes.data();
    std::memcpy(parameters.data() + program->parameters[n++].at, &p, 8);
    Region r;
    r.base = reinterpret_cast<uintptr_t>(p), r.bytes = b->bytes.size(), r.written = b->written,
    r.text = [b] { return fmt::format("`{}`", b->name); };
    regions.push_back(std::move(r));
  }
  for (const uint32_t x : numbers) std::memcpy(parameters.data() + program->parameters[n++].at, &x, 4);
  for (const Variable& v : program->variables)
    if (v.space != Space::Shared) {
      Region r;
      r.base = reinterpret_cast<uintptr_t>(program->memory.data()) + v.at, r.bytes = v.bytes, r.text = [&v] { return v.name; };
      regions.push_back(std::move(r));
    }
  std::sort(regions.begin(), regions.end(), [](const Region& a, const Region& b) { return a.base < b.base; });
  Machine machine(*program, grid, block, shared, parameters, regions);
  machine.run();
  return {machine.faults(), machine.counts()};
}

inline std::string kernel(const std::string& parameters, const std::string& body, const std::string& before = "") {
  return kHead + before + ".visible .entry k(" + parameters +
         ")\n{\n.reg .b64 %rd<20>;\n.reg .b32 %r<40>;\n.reg .f32 %f<20>;\n.reg .b16 %h<10>;\n.reg .pred %p<10>;\n" + body + "\nret;\n}\n";
}
// With %rd1, %rd2 ...: the buffers' addresses; %r1: the thread, %r2: the block, %r3: the thread's number in the grid.
inline std::string on(int buffers, const std::string& body, const std::string& before = "", const std::string& more = "") {
  std::string parameters, loads;
  for (int k = 1; k <= buffers; ++k) {
    parameters += fmt::format("{}.param .u64 a{}", k > 1 ? ", " : "", k);
    loads += fmt::format("ld.param.u64 %rd{0}, [a{0}];\ncvta.to.global.u64 %rd{0}, %rd{0};\n", k);
  }
  return kernel(parameters + more,
                loads + "mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r4, %ntid.x;\nmad.lo.s32 %r3, %r2, %r4, %r1;\n" + body,
                before);
}

}  // namespace naru::backends::ptx
