// own_product.h for processors with AVX-512; the pragma stands behind the headers, so that nothing shared with other files is compiled for them.
#include "host/own_product.h"

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")

namespace naru::host::avx512 {

constexpr int kVectorBytes = 64, kTileRows = 8;
#include "host/own_product.inc"

}  // namespace naru::host::avx512

#pragma GCC pop_options
#endif
