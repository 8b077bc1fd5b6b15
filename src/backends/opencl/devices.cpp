#include "backends/opencl/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <utility>

#include "backends/opencl/api.h"
#include "runtime/os/child.h"

namespace naru::backends::opencl {
namespace {

using namespace runtime;

constexpr auto kLimit = std::chrono::seconds(60);

std::string text_of(const Api& cl, cl_device_id d, cl_uint what) {
  size_t size = 0;
  if (cl.clGetDeviceInfo(d, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  if (cl.clGetDeviceInfo(d, what, size, text.data(), nullptr) != CL_SUCCESS) return {};
  text.resize(std::char_traits<char>::length(text.c_str()));
  for (char& c : text)
    if (c == '\t' || c == '\n') c = ' ';
  const size_t first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

template <class T>
uint64_t number_of(const Api& cl, cl_device_id d, cl_uint what) {
  T value{};
  return cl.clGetDeviceInfo(d, what, sizeof value, &value, nullptr) == CL_SUCCESS ? static_cast<uint64_t>(value) : 0;
}

std::string uuid_of(const Api& cl, cl_device_id d) {
  unsigned char bytes[16];
  if (cl.clGetDeviceInfo(d, CL_DEVICE_UUID_KHR, sizeof bytes, bytes, nullptr) != CL_SUCCESS) return {};
  return fmt::format("{:02x}", fmt::join(bytes, ""));
}

std::string pci_of(const Api& cl, cl_device_id d) {
  cl_uint part[4];  // domain, bus, device, function
  if (cl.clGetDeviceInfo(d, CL_DEVICE_PCI_BUS_INFO_KHR, sizeof part, part, nullptr) != CL_SUCCESS) return {};
  return fmt::format("{:04x}:{:02x}:{:02x}.{}", part[0], part[1], part[2], part[3]);
}

// One line per device with tab-separated fields, or "!state\ttrouble".
std::string ask() {
  const Api cl = Api::open();
  if (const std::string trouble = cl.library.trouble(); !trouble.empty()) return "!library\t" + trouble;
  cl_uint count = 0;
  const cl_int status = cl.clGetPlatformIDs(0, nullptr, &count);
  if (status == -1001 || (status == CL_SUCCESS && count == 0)) return "!platform\t";
  if (status != CL_SUCCESS) return fmt::format("!error\tclGetPlatformIDs failed with {}", error_text(status));
  std::vector<cl_platform_id> platforms(count);
  cl.clGetPlatformIDs(count, platforms.data(), nullptr);
  std::string lines;
  for (size_t p = 0; p < platforms.size(); ++p) {
    char platform[256] = "";
    cl.clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof platform - 1, platform, nullptr);
    cl_uint n = 0;
    if (cl.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 0, nullptr, &n) != CL_SUCCESS) continue;
    std::vector<cl_device_id> devices(n);
    cl.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, n, devices.data(), nullptr);
    for (size_t i = 0; i < devices.size(); ++i) {
      const cl_device_id d = devices[i];
      const uint64_t single = number_of<cl_ulong>(cl, d, CL_DEVICE_SINGLE_FP_CONFIG);
      const bool fp64 = number_of<cl_ulong>(cl, d, CL_DEVICE_DOUBLE_FP_CONFIG) != 0 ||
                        text_of(cl, d, CL_DEVICE_EXTENSIONS).find("cl_khr_fp64") != std::string::npos;
      lines += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t", p, i, text_of(cl, d, CL_DEVICE_NAME), platform,
                           text_of(cl, d, CL_DRIVER_VERSION), text_of(cl, d, CL_DEVICE_VERSION), uuid_of(cl, d), pci_of(cl, d));
      for (const bool b :
           {(number_of<cl_ulong>(cl, d, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0,
            number_of<cl_uint>(cl, d, CL_DEVICE_HOST_UNIFIED_MEMORY) != 0,
            cl.has_shared_memory() && (number_of<cl_ulong>(cl, d, CL_DEVICE_SVM_CAPABILITIES) & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0, fp64,
            (single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0, (single & CL_FP_DENORM) != 0,
            number_of<cl_uint>(cl, d, CL_DEVICE_COMPILER_AVAILABLE) != 0})
        lines += b ? "1\t" : "0\t";
      for (const uint64_t v :
           {number_of<cl_ulong>(cl, d, CL_DEVICE_GLOBAL_MEM_SIZE), number_of<cl_ulong>(cl, d, CL_DEVICE_MAX_MEM_ALLOC_SIZE),
            number_of<cl_ulong>(cl, d, CL_DEVICE_LOCAL_MEM_SIZE), number_of<cl_uint>(cl, d, CL_DEVICE_MAX_COMPUTE_UNITS),
            number_of<size_t>(cl, d, CL_DEVICE_MAX_WORK_GROUP_SIZE), number_of<size_t>(cl, d, CL_DEVICE_MAX_PARAMETER_SIZE),
            number_of<cl_uint>(cl, d, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT)})
        lines += fmt::format("{}\t", v);
      lines += "\n";
    }
  }
  return lines;
}

DeviceInfo read(const std::string& line) {
  std::istringstream in(line);
  const auto text = [&] {
    std::string field;
    std::getline(in, field, '\t');
    return field;
  };
  const auto number = [&] {
    const std::string field = text();
    uint64_t value = 0;
    std::from_chars(field.data(), field.data() + field.size(), value);
    return value;
  };
  DeviceInfo d;
  d.platform = static_cast<int>(number()), d.number = static_cast<int>(number());
  for (std::string* s : {&d.name, &d.platform_name, &d.driver, &d.version, &d.uuid, &d.pci}) *s = text();
  Arithmetic& a = d.arithmetic;
  for (bool* b : {&d.cpu, &d.unified, &d.shared, &a.fp64, &a.exact_division, &a.denormals, &d.compiler}) *b = number() != 0;
  a.exact_root = a.exact_division;
  for (uint64_t* v : {&d.memory, &d.largest_buffer, &d.local_memory, &d.units, &d.group, &d.parameters, &d.vector}) *v = number();
  return d;
}

// NARU_OPENCL_FP64=0, NARU_OPENCL_SVM=0: devices report that they lack it (for tests).
bool denied(const char* variable) {
  const char* text = std::getenv(variable);
  return text && std::string_view(text) == "0";
}

Found look() {
  const ChildAnswer answer = ask_in_child(ask, kLimit);
  if (!answer.text) return {{}, "the driver ended a process that asked it for its devices: " + answer.trouble, DriverState::InitError};
  Found f;
  std::istringstream lines(*answer.text);
  for (std::string line; std::getline(lines, line);) {
    if (line[0] != '!') {
      f.devices.push_back(read(line));
      DeviceInfo& d = f.devices.back();
      d.arithmetic.fp64 &= !denied("NARU_OPENCL_FP64");
      // Without unified memory (some graphics cards also report SVM) every access would go over the bus.
      d.shared &= d.unified && !denied("NARU_OPENCL_SVM");
      continue;
    }
    const size_t tab = line.find('\t');
    f.trouble = line.substr(tab + 1);
    f.state = line.starts_with("!error") ? DriverState::InitError : DriverState::NoLibrary;
    if (line.starts_with("!platform"))
      f.trouble = "libOpenCL is installed, but no platform (/etc/OpenCL/vendors has no *.icd file that works)";
  }
  return f;
}

// Drivers that list devices on which naru's kernels do not run, as tried.
constexpr std::pair<std::string_view, std::string_view> kFaultyPlatforms[] = {
    {"rusticl", "kernels of reductions: its driver, Mesa's rusticl (22.3 was tried), refuses their arguments"},
};

// What a device lacks to give naru's results; empty: nothing.
std::string_view missing_in(const DeviceInfo& d) {
  for (const auto& [platform, what] : kFaultyPlatforms)
    if (d.platform_name == platform) return what;
  if (!d.compiler) return "a compiler";
  if (d.group < 64) return "groups of 64 items";
  return naru::missing_in(d.arithmetic);
}

bool with_cpus() {
  const char* text = std::getenv("NARU_OPENCL_CPU");
  return text && *text && std::string_view(text) != "0";
}

}  // namespace

const Found& found() {
  // No lock, because a forked child could inherit it locked. If two threads query at once, both probe.
  static std::atomic<const Found*> known{nullptr};
  if (const Found* f = known.load(std::memory_order_acquire)) return *f;
  auto made = std::make_unique<Found>(look());
  const Found* none = nullptr;
  if (known.compare_exchange_strong(none, made.get(), std::memory_order_acq_rel)) return *made.release();
  return *none;
}

const std::vector<DeviceInfo>& usable() {
  static std::atomic<const std::vector<DeviceInfo>*> lists[2] = {};
  auto& slot = lists[with_cpus()];
  if (const auto* list = slot.load(std::memory_order_acquire)) return *list;
  auto made = std::make_unique<std::vector<DeviceInfo>>();
  // Processors last, so that the other devices keep their indices with or without them.
  for (const bool cpu : {false, true})
    for (const DeviceInfo& d : found().devices)
      if (d.cpu == cpu && missing_in(d).empty() && (!cpu || with_cpus())) made->push_back(d);
  const std::vector<DeviceInfo>* none = nullptr;
  if (slot.compare_exchange_strong(none, made.get(), std::memory_order_acq_rel)) return *made.release();
  return *none;
}

const std::vector<std::string>& operators_denied() {
  static const auto* const list = [] {
    auto* const names = new std::vector<std::string>;
    const char* text = std::getenv("NARU_OPENCL_WITHOUT");
    std::istringstream in(text ? text : "");
    for (std::string name; std::getline(in, name, ',');)
      if (!name.empty()) names->push_back(name);
    return names;
  }();
  return *list;
}

Availability availability() {
  if (!usable().empty()) return {true, "", "", DriverState::Works};
  const Found& f = found();
  if (f.state == DriverState::NoLibrary)
    return unavailable(f.state, {{"detail", f.trouble},
                                 {"driver", "your GPU's OpenCL driver"},
                                 {"install", "Debian: apt install intel-opencl-icd, mesa-opencl-icd or nvidia-opencl-icd"}});
  if (f.state == DriverState::InitError) return {false, f.trouble, "See what `clinfo` says; update or reinstall the driver", f.state};
  std::string names, missing;
  for (const DeviceInfo& d : f.devices) {
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", d.name, d.platform_name);
    if (const std::string_view what = missing_in(d); !what.empty())
      missing += fmt::format("{}{} does not support {}", missing.empty() ? "" : ", ", d.name, what);
  }
  if (!missing.empty()) return {false, missing, "Use device 'cpu', or another OpenCL device", DriverState::UnsupportedArch};
  if (names.empty()) return {false, "OpenCL is installed, but lists no device", "See what `clinfo` says", DriverState::NoDeviceNode};
  return {false, "the only OpenCL devices are processors, which device 'cpu' serves better: " + names,
          "Set NARU_OPENCL_CPU=1 to have them as xpu devices all the same, or NARU_VIRTUAL=xpu:1 for a virtual one", DriverState::Hidden};
}

}  // namespace naru::backends::opencl
