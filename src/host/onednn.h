// oneDNN, opened at run time at the first use: products of matrices and convolutions.
#pragma once

#include <string>

namespace naru::host {

// Its function of that name ("dnnl_sgemm"); null where there is no library, or none of that name in it. The library stays open. Thread-safe.
void* onednn_function(const char* name);
// "oneDNN 2.6.3"; "" without a library.
const std::string& onednn_name();
// 2 or 3: descriptors of memory are structs in one, handles in the other.
int onednn_major();

// oneDNN asks OpenMP how many threads it may use: one, as the work is spread over our own pool. The setting is the
// calling thread's.
class OneOpenMpThread {
 public:
  OneOpenMpThread() noexcept;
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  ~OneOpenMpThread();

 private:
  int before_;
};

}  // namespace naru::host
