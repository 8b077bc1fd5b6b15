#include "core/language.h"

#include <fmt/format.h>

namespace naru {

bool program_in_python = false;

std::string spelled_move(std::string_view tensor, Device to) {
  return program_in_python ? fmt::format("{}.to('{}')", tensor, to.str()) : fmt::format("{}.to(Device(\"{}\"))", tensor, to.str());
}

}  // namespace naru
