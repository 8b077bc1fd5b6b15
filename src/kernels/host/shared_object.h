// Reads what a shared object (ELF) needs before it is loaded: imported symbols and thread-local memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace naru::cpu {

struct SharedObject {
  std::vector<std::string> undefined;
  int64_t thread_bytes = 0;  // size of thread-local variables

  // nullopt if the bytes are no valid ELF file for this machine.
  static std::optional<SharedObject> read(std::string_view bytes);
};

}  // namespace naru::cpu
