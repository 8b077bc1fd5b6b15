// OpenBLAS, opened at run time on first use and limited to one thread: BLAS for products, LAPACK for factorizations.
#pragma once

#include <string>

namespace naru::cpu {

// The library's function of that name ("cblas_sgemm", "sgetrf_"), with any prefix that the library adds to its names; null if there is no
// library or it lacks the function. The library stays open. Thread-safe.
void* openblas_function(const char* name);
// "OpenBLAS 0.3.34 (SkylakeX)"; "" without a library.
const std::string& openblas_name();

}  // namespace naru::cpu
