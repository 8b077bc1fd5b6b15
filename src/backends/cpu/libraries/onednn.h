// oneDNN, opened at run time on first use: matrix products and convolutions.
#pragma once

#include <string>

namespace naru::cpu {

// The library's function of that name ("dnnl_sgemm"); null if there is no library or it lacks the function. The library stays open.
// Thread-safe.
void* onednn_function(const char* name);
// "oneDNN 2.6.3"; "" without a library.
const std::string& onednn_name();
// Major version, 2 or 3. Memory descriptors are structs in version 2 and handles in version 3.
int onednn_major();

// Limits OpenMP to one thread while oneDNN runs, as naru splits the work over its own pool. The setting belongs to the calling thread.
class OneOpenMpThread {
 public:
  OneOpenMpThread() noexcept;
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  ~OneOpenMpThread();

 private:
  int before_;
};

}  // namespace naru::cpu
