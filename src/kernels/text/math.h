// Math functions for user kernels: naru's own definitions, so that they give the same bits on every device.
#pragma once

#include <set>
#include <string>

#include "kernels/source/kernel_source.h"
#include "render/c/dialect.h"

namespace naru::render::c {

struct UserMath {
  std::string text;             // definitions, each called naru_<name>
  std::set<std::string> names;  // the functions that the source uses: "expf" (float), "exp" (double)
};
// Functions that compute in double keep the device's own definition if the target has no double.
UserMath user_math(const ir::KernelSource& source, const Target& target);

}  // namespace naru::render::c
