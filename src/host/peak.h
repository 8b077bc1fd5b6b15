// The arithmetic that the processors can do, for benchmarks to compare with.
#pragma once

namespace naru::host {

// Operations a second of float32 (a fused multiply-add counts as two) that num_threads() threads do at best, measured now, in some 50 ms;
// float64 is half of it. 0 where the processor has no AVX2 with FMA.
double measure_peak();

}  // namespace naru::host
