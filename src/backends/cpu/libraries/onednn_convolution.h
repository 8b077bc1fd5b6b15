// Convolutions by oneDNN.
#pragma once

#include "ir/instruction.h"

namespace naru::cpu {

// Returns true if oneDNN has computed the convolution. Returns false, and does nothing, if there is no oneDNN (or NARU_MATMUL names another
// library), in deterministic mode, for dtypes other than float32 and bfloat16, for shapes that naru's own kernel should compute faster, and for
// shapes that oneDNN has no code for. The work is split by shape alone, and one thread computes each part, so bits do not depend on the
// number of threads.
bool convolve_by_onednn(const ir::Convolution& q);

}  // namespace naru::cpu
