// The mathematics of users' kernels: naru's own definitions, so that they give the same bits on every device.
#pragma once

#include <set>
#include <string>

#include "ir/kernel_source.h"
#include "render/c/dialect.h"

namespace naru::render::c {

struct UserMath {
  std::string text;             // definitions, each called naru_<name>
  std::set<std::string> names;  // "expf" (float), "exp" (double): what the source uses of them
};
// Functions by way of double keep the device's own definition where the target has none.
UserMath user_math(const ir::KernelSource& source, const Target& target);

}  // namespace naru::render::c
