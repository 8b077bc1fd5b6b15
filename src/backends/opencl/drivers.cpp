#include "backends/opencl/drivers.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/os/file_path.h"

namespace naru::backends::opencl {
namespace {

// What drivers are called that install no list, or whose list is not found.
constexpr const char* kUsual[] = {"libnvidia-opencl.so.1",
                                  "libamdocl64.so",
                                  "/opt/rocm/lib/libamdocl64.so",
                                  "libigdrcl.so",
                                  "/usr/lib/x86_64-linux-gnu/intel-opencl/libigdrcl.so",
                                  "libMesaOpenCL.so.1",
                                  "libRusticlOpenCL.so.1",
                                  "libpocl.so.2"};

std::vector<cl_platform_id>& platforms_opened() {
  static auto* const all = new std::vector<cl_platform_id>;
  return *all;
}

// The function of the driver whose object it is.
template <class F>
F function_at(const void* object, size_t index) {
  return reinterpret_cast<F>((*static_cast<void* const* const*>(object))[index]);
}

template <size_t kIndex, class F>
struct ByFirst;
template <size_t kIndex, class R, class First, class... P>
struct ByFirst<kIndex, R (*)(First, P...)> {
  static R call(First object, P... rest) { return function_at<R (*)(First, P...)>(object, kIndex)(object, rest...); }
};

cl_int platform_ids(cl_uint most, cl_platform_id* to, cl_uint* count) {
  const std::vector<cl_platform_id>& all = platforms_opened();
  if (to) std::copy_n(all.begin(), std::min<size_t>(most, all.size()), to);
  if (count) *count = static_cast<cl_uint>(all.size());
  return CL_SUCCESS;
}

#define NARU_PLACE(name, index) constexpr size_t kPlaceOf_##name = index;
NARU_OPENCL_TABLE_OTHERS(NARU_PLACE)
#undef NARU_PLACE

cl_context create_context(const intptr_t* properties, cl_uint count, const cl_device_id* devices,
                          void (*told)(const char*, const void*, size_t, void*), void* data, cl_int* status) {
  return function_at<decltype(Api::clCreateContext)>(devices[0], kPlaceOf_clCreateContext)(properties, count, devices, told, data, status);
}
cl_int wait_for_events(cl_uint count, const cl_event* events) {
  return function_at<decltype(Api::clWaitForEvents)>(events[0], kPlaceOf_clWaitForEvents)(count, events);
}

void add_listed(const std::string& folder, std::vector<std::string>& to) {
  std::error_code none;
  std::vector<std::string> lists;
  for (const auto& entry : std::filesystem::directory_iterator(runtime::file_path(folder), none))
    if (entry.path().extension() == ".icd") lists.push_back(runtime::path_text(entry.path()));
  std::sort(lists.begin(), lists.end());
  for (const std::string& list : lists) {
    std::string name;
    if (std::getline(std::ifstream(runtime::file_path(list)), name) && !name.empty()) to.push_back(name);
  }
}

}  // namespace

Api open_drivers(const std::vector<std::string>& files) {
  Api a;
  a.clGetPlatformIDs = platform_ids;
#define NARU_SET(name, index) a.name = ByFirst<index, decltype(a.name)>::call;
  NARU_OPENCL_TABLE(NARU_SET)
#undef NARU_SET
  a.clCreateContext = create_context, a.clWaitForEvents = wait_for_events;
  std::vector<cl_platform_id>& all = platforms_opened();
  all.clear();
  for (const std::string& file : files) {
    runtime::Library library = runtime::Library::open(nullptr, {file.c_str()});
    void* (*function_of)(const char*) = nullptr;
    library.find(function_of, "clGetExtensionFunctionAddress");
    if (library.trouble().empty()) {
      const auto ids = reinterpret_cast<decltype(a.clGetPlatformIDs)>(function_of("clIcdGetPlatformIDsKHR"));
      cl_uint count = 0;
      if (ids && ids(0, nullptr, &count) == CL_SUCCESS && count > 0) {
        std::vector<cl_platform_id> own(count);
        if (ids(count, own.data(), nullptr) == CL_SUCCESS) all.insert(all.end(), own.begin(), own.end());
      }
    }
    if (!a.library || !a.library.trouble().empty()) a.library = library;
  }
  return a;
}

std::vector<std::string> usual_drivers() {
  std::vector<std::string> files;
  add_listed("/etc/OpenCL/vendors", files);
  files.insert(files.end(), std::begin(kUsual), std::end(kUsual));
  return files;
}

}  // namespace naru::backends::opencl
