// The HTML page that shows a memory history, a profile, or both: one file without external resources.
#pragma once

#include <string>

namespace naru::runtime {

// `json`: in the format described at the top of page.html; must not contain "<".
std::string page_of(const std::string& title, const std::string& json);

}  // namespace naru::runtime
