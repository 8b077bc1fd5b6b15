#include "runtime/os/child.h"

namespace naru::runtime {

const bool kChildren = false;

ChildAnswer ask_in_child(const std::function<std::string()>&, std::chrono::milliseconds) {
  return {std::nullopt, "no process can be forked on Windows"};
}

}  // namespace naru::runtime
