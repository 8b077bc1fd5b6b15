// Box-Muller transform over blocks of 16 uniform numbers, as PyTorch's cpu uses for tensors of 16 or more elements.
#pragma once

#include <cstdint>

namespace naru::ops {

// Turns the 16 * blocks uniform numbers of v, from [0, 1), into normal ones in place. The first 8 of a block give the radii, the other 8 the angles.
void normals_of(float* v, int64_t blocks, float mean, float std);
void normals_of(double* v, int64_t blocks, double mean, double std);

}  // namespace naru::ops
