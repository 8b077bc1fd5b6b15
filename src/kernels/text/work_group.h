// The code around a user kernel in plain C: loops over groups and items, and fibers for groups with barriers.
#pragma once

#include <string>

namespace naru::render::c {

// Goes before kernels with barriers: runs items as fibers, one after another, each up to its next barrier.
const char* user_work_group() noexcept;
// The function naru_run. locals: declares the kernel's arguments as variables; call: calls the kernel for the item at naru_here.
std::string user_loops(bool barriers, const std::string& locals, const std::string& call);

}  // namespace naru::render::c
