// The page on which a history of memory, a profile, or both are shown: one file of HTML that asks for nothing from outside.
#pragma once

#include <string>

namespace naru::runtime {

// `json`: what page.html says at its beginning; within it no "<".
std::string page_of(const std::string& title, const std::string& json);

}  // namespace naru::runtime
