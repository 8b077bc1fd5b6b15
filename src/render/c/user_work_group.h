// What surrounds a user's kernel in plain C: the loops over groups and items, and the items of a group that meet at barriers.
#pragma once

#include <string>

namespace naru::render::c {

// In front of kernels with barriers: items as fibers, one after another, each up to the next barrier.
const char* user_work_group() noexcept;
// The function naru_run. locals: the kernel's arguments as variables; call: the kernel's call for the item at naru_here.
std::string user_loops(bool barriers, const std::string& locals, const std::string& call);

}  // namespace naru::render::c
