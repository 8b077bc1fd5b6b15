// Convolutions by oneDNN.
#pragma once

#include "ir/instruction.h"

namespace naru::host {

// Whether oneDNN has computed it. False, with nothing done: there is none (or NARU_MATMUL names another library), deterministic mode, a type other
// than float32 and bfloat16, a shape for which naru's own kernel is quicker, or one that oneDNN has no code for. The parts that the work is cut into
// depend on the shape alone, and each is done by one thread, so bits do not depend on the number of threads.
bool convolve_by_onednn(const ir::Convolution& q);

}  // namespace naru::host
