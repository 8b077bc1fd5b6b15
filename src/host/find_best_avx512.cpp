// find_best.h for processors with AVX-512; the pragma stands behind the headers.
#include "host/find_best.h"

#include <type_traits>

#if defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")

namespace naru::host::avx512 {
#include "host/find_best.inc"
}  // namespace naru::host::avx512

#pragma GCC pop_options
#endif
