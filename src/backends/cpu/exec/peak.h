// Peak arithmetic throughput of the processor, as a reference for benchmarks.
#pragma once

namespace naru::cpu {

// Peak float32 operations per second with num_threads() threads (a fused multiply-add counts as two). Measures for about 50 ms on each
// call. float64 is half of it. Returns 0 without AVX2 and FMA.
double measure_peak();

}  // namespace naru::cpu
