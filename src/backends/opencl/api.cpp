#include "backends/opencl/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "backends/opencl/devices.h"
#include "backends/opencl/drivers.h"
#include "naru/error.h"

namespace naru::backends::opencl {
namespace {

struct ErrorName {
  cl_int code;
  const char* name;
};
constexpr ErrorName kErrors[] = {
    {-1, "CL_DEVICE_NOT_FOUND"},
    {-2, "CL_DEVICE_NOT_AVAILABLE"},
    {-3, "CL_COMPILER_NOT_AVAILABLE"},
    {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {-5, "CL_OUT_OF_RESOURCES"},
    {-6, "CL_OUT_OF_HOST_MEMORY"},
    {-8, "CL_MEM_COPY_OVERLAP"},
    {-11, "CL_BUILD_PROGRAM_FAILURE"},
    {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-30, "CL_INVALID_VALUE"},
    {-33, "CL_INVALID_DEVICE"},
    {-34, "CL_INVALID_CONTEXT"},
    {-36, "CL_INVALID_COMMAND_QUEUE"},
    {-38, "CL_INVALID_MEM_OBJECT"},
    {-42, "CL_INVALID_BINARY"},
    {-43, "CL_INVALID_BUILD_OPTIONS"},
    {-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
    {-46, "CL_INVALID_KERNEL_NAME"},
    {-50, "CL_INVALID_ARG_VALUE"},
    {-51, "CL_INVALID_ARG_SIZE"},
    {-52, "CL_INVALID_KERNEL_ARGS"},
    {-54, "CL_INVALID_WORK_GROUP_SIZE"},
    {-55, "CL_INVALID_WORK_ITEM_SIZE"},
    {-61, "CL_INVALID_BUFFER_SIZE"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};

}  // namespace

Api Api::open() {
  Api a;
  constexpr runtime::PerSystem kNames[] = {{"libOpenCL.so.1", "/System/Library/Frameworks/OpenCL.framework/OpenCL", "OpenCL.dll"},
                                           {"libOpenCL.so"}};
  a.library = runtime::Library::open("NARU_OPENCL_LIBRARY", kNames);
#define NARU_FIND(result, name, parameters) a.library.find(a.name, #name);
  NARU_OPENCL(NARU_FIND)
  runtime::Library more = a.library;  // missing functions are no error here
#define NARU_FIND_MORE(result, name, parameters) more.find(a.name, #name);
  NARU_OPENCL_2(NARU_FIND_MORE)
#undef NARU_FIND_MORE
#undef NARU_FIND
  return a;
}

const Api& api() {
  static const auto* const a = new Api(found().drivers.empty() ? Api::open() : open_drivers(found().drivers));
  return *a;
}

std::string error_text(cl_int code) {
  const auto* found = std::find_if(std::begin(kErrors), std::end(kErrors), [&](const ErrorName& e) { return e.code == code; });
  return fmt::format("{} ({})", found == std::end(kErrors) ? "an unknown error" : found->name, code);
}

void check(cl_int code, const char* function) {
  if (code != CL_SUCCESS) raise_error(code, fmt::format("OpenCL: {} failed with {}", function, error_text(code)));
}

void raise_error(cl_int code, const std::string& text) {
  if (code == -4 || code == -5 || code == -6)
    throw OutOfMemoryError(text + ": the device or its driver has no memory left" + (code == -5 ? ", or a kernel failed" : "") +
                           ". Use smaller tensors, or end other programs that use it");
  if (code == -2) throw DeviceUnavailableError(text + ": the device is gone. Restart the program; see `naru doctor`");
  throw RuntimeError(text);
}

}  // namespace naru::backends::opencl
