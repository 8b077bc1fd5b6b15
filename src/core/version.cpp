#include "naru/version.h"

namespace naru {

std::string_view version() noexcept { return NARU_VERSION; }

}  // namespace naru
