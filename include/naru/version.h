// naru's version.
#pragma once

#include <string_view>

namespace naru {

// The version, e.g. "0.1.0"; defined in CMakeLists.txt.
std::string_view version() noexcept;

}  // namespace naru
