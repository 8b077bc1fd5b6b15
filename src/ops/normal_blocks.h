// Box and Muller's formula over blocks of 16 uniform numbers, as PyTorch's cpu has it for tensors of 16 elements and more.
#pragma once

#include <cstdint>

namespace naru::ops {

// Each of the `blocks` times 16 numbers of v, from [0, 1), becomes one of a normal distribution: the first 8 of a block are radii, the others angles.
void normals_of(float* v, int64_t blocks, float mean, float std);
void normals_of(double* v, int64_t blocks, double mean, double std);

}  // namespace naru::ops
