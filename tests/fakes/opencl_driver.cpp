// A driver of OpenCL that does not work, to be opened without a loader: NARU_FAKE_OPENCL_DRIVER=HOW: "crash" ends the process that asks for its
// platforms, "error" returns an error there, "none" has no such function.
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

bool does(const char* how) {
  const char* const text = std::getenv("NARU_FAKE_OPENCL_DRIVER");
  return text && std::strcmp(text, how) == 0;
}
int32_t platforms(uint32_t, void**, uint32_t*) {
  if (does("crash")) std::abort();
  return -1001;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void* clGetExtensionFunctionAddress(const char* name) {
  return !does("none") && std::strcmp(name, "clIcdGetPlatformIDsKHR") == 0 ? reinterpret_cast<void*>(platforms) : nullptr;
}
