#include <exception>

#include "runtime/os/child.h"

namespace naru::runtime {

const bool kChildren = false;

ChildAnswer ask_in_child(const std::function<std::string()>& ask, std::chrono::milliseconds) {
  try {
    return {ask(), ""};
  } catch (const std::exception& error) {
    return {std::nullopt, error.what()};
  }
}

}  // namespace naru::runtime
