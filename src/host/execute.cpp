#include "host/execute.h"

#include <cstring>

#include "host/instructions.h"
#include "host/layout.h"

namespace naru::host {

void run(const ir::CopyBytes& copy) {
  constexpr int64_t kPage = 4096;
  const auto bytes = static_cast<int64_t>(copy.bytes);
  char* const target = static_cast<char*>(copy.target);
  const char* const source = static_cast<const char*>(copy.source);
  if (bytes == 0 || target == source) return;
  // Overlapping ranges (within one device) are moved in one piece.
  if (target < source + bytes && source < target + bytes) {
    std::memmove(target, source, copy.bytes);
    return;
  }
  split(bytes, static_cast<double>(bytes) * 0.05, kPage, [=](int64_t begin, int64_t end) {
    std::memcpy(target + begin, source + begin, static_cast<size_t>(end - begin));
  });
}

void execute(const ir::Instruction& instruction) {
  std::visit([](const auto& i) { run(i); }, instruction);
}

void prepare(const ir::Instruction& instruction) {
  if (const auto* k = std::get_if<ir::UserKernel>(&instruction)) prepare(*k);
}

}  // namespace naru::host
