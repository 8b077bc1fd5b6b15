// own_product.h for processors with AVX2; the pragma stands behind the headers, so that nothing shared with other files is compiled for them.
#include "host/own_product.h"

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace naru::host::avx2 {

constexpr int kVectorBytes = 32, kTileRows = 6;
#include "host/own_product.inc"

}  // namespace naru::host::avx2

#pragma GCC pop_options
#endif
