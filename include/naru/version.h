// Which naru this is.
#pragma once

#include <string_view>

namespace naru {

// naru's version, as "0.1.0": CMakeLists.txt says it once for all.
std::string_view version() noexcept;

}  // namespace naru
