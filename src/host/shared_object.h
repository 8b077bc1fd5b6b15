// What a shared object (ELF) wants, read before it is loaded: symbols of others, and memory in each thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace naru::host {

struct SharedObject {
  std::vector<std::string> undefined;
  int64_t thread_bytes = 0;  // of thread-local variables

  // Nothing where the bytes are no ELF file of this machine's kind, or contradict themselves.
  static std::optional<SharedObject> read(std::string_view bytes);
};

}  // namespace naru::host
