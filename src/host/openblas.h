// OpenBLAS, opened at run time at the first use, for one thread: BLAS for products, LAPACK for factorizations.
#pragma once

#include <string>

namespace naru::host {

// Its function of that name ("cblas_sgemm", "sgetrf_"), whatever prefix the library gives its names; null where there is no library, or none of
// that name in it. The library stays open. Thread-safe.
void* openblas_function(const char* name);
// "OpenBLAS 0.3.34 (SkylakeX)"; "" without a library.
const std::string& openblas_name();

}  // namespace naru::host
