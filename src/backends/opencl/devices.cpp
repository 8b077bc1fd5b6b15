#include "backends/opencl/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <utility>

#include "backends/opencl/api.h"
#include "backends/opencl/drivers.h"
#include "runtime/os/asked_once.h"
#include "runtime/os/child.h"
#include "runtime/os/file_path.h"

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

std::vector<cl_platform_id> platforms_of(const Api& cl, cl_int& status) {
  cl_uint count = 0;
  status = cl.clGetPlatformIDs(0, nullptr, &count);
  std::vector<cl_platform_id> platforms(status == CL_SUCCESS ? count : 0);
  if (!platforms.empty()) status = cl.clGetPlatformIDs(count, platforms.data(), nullptr);
  return platforms;
}

// "=number of platforms\tfile of the library", then one line per device with tab-separated fields, of one platform or of all (only: -1), and
// "!left\twhy" per platform that does not answer. Or "!state\ttrouble".
std::string ask(const Api& cl, int only) {
  if (const std::string trouble = cl.library.trouble(); !trouble.empty()) return "!library\t" + trouble;
  cl_int status = CL_SUCCESS;
  const std::vector<cl_platform_id> platforms = platforms_of(cl, status);
  if (status == -1001 || (status == CL_SUCCESS && platforms.empty())) return "!platform\t";
  if (status != CL_SUCCESS) return fmt::format("!error\tclGetPlatformIDs failed with {}", error_text(status));
  std::string lines = fmt::format("={}\t{}\n", platforms.size(), cl.library.path());
  for (size_t p = 0; p < platforms.size(); ++p) {
    if (only >= 0 && p != static_cast<size_t>(only)) continue;
    char platform[256] = "";
    cl.clGetPlatformInfo(platforms[p], CL_PLATFORM_NAME, sizeof platform - 1, platform, nullptr);
    cl_uint n = 0;
    status = cl.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 0, nullptr, &n);
    std::vector<cl_device_id> devices(status == CL_SUCCESS ? n : 0);
    if (!devices.empty()) status = cl.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, n, devices.data(), nullptr);
    if (status != CL_SUCCESS) {
      constexpr cl_int kNoDevice = -1;
      if (status != kNoDevice) lines += fmt::format("!left\t{}: clGetDeviceIDs failed with {}\n", platform, error_text(status));
      continue;
    }
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

// Adds what a child said. first: the number of its first platform. Returns its number of platforms.
int add_answer(const std::string& text, int first, Found& f) {
  int platforms = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t tab = line.find('\t');
    if (line[0] == '=') {
      std::from_chars(line.data() + 1, line.data() + tab, platforms);
    } else if (line.starts_with("!left")) {
      f.left_out.push_back(line.substr(tab + 1));
    } else if (line[0] == '!') {
      f.trouble = line.substr(tab + 1);
      f.state = line.starts_with("!error") ? DriverState::InitError : DriverState::NoLibrary;
      if (line.starts_with("!platform"))
        f.trouble = "libOpenCL is installed, but no platform (/etc/OpenCL/vendors has no *.icd file that works)";
    } else {
      f.devices.push_back(read(line));
      DeviceInfo& d = f.devices.back();
      d.platform += first;
      d.arithmetic.fp64 &= !denied("NARU_OPENCL_FP64");
      // Without unified memory (some graphics cards also report SVM) every access would go over the bus.
      d.shared &= d.unified && !denied("NARU_OPENCL_SVM");
    }
  }
  return platforms;
}

Found by_loader() {
  Found f;
  if (const ChildAnswer all = ask_in_child([] { return ask(Api::open(), -1); }, kLimit); all.text) {
    add_answer(*all.text, 0, f);
    return f;
  } else {
    f.trouble = "the driver ended a process that asked it for its devices: " + all.trouble;
    f.state = DriverState::InitError;
  }
  // One of the platforms ends the process that asks it, so each is asked by a process of its own.
  const ChildAnswer counted = ask_in_child(
      [] {
        cl_int status = CL_SUCCESS;
        return std::to_string(platforms_of(Api::open(), status).size());
      },
      kLimit);
  const int count = counted.text ? std::atoi(counted.text->c_str()) : 0;
  for (int p = 0; p < count; ++p) {
    const ChildAnswer one = ask_in_child([p] { return ask(Api::open(), p); }, kLimit);
    if (one.text)
      add_answer(*one.text, 0, f);
    else
      f.left_out.push_back(fmt::format("platform {}: it ended a process that asked it for its devices: {}", p, one.trouble));
  }
  if (!f.devices.empty()) f.state = DriverState::Works;
  return f;
}

// Each driver is asked by a process of its own.
Found by_drivers(const std::vector<std::string>& files) {
  Found f;
  int platforms = 0;
  std::vector<std::string> paths;
  for (const std::string& file : files) {
    const ChildAnswer one = ask_in_child([&] { return ask(open_drivers({file}), -1); }, kLimit);
    if (!one.text) {
      f.left_out.push_back(fmt::format("{}: it ended a process that asked it for its devices: {}", file, one.trouble));
      continue;
    }
    if (one.text->front() != '=') continue;  // not there, or without a platform
    std::string path = one.text->substr(one.text->find('\t') + 1);
    path.resize(path.find('\n'));
    std::error_code none;
    if (const auto whole = std::filesystem::canonical(file_path(path), none); !none) path = path_text(whole);
    if (std::find(paths.begin(), paths.end(), path) != paths.end()) continue;  // by another name
    paths.push_back(std::move(path));
    platforms += add_answer(*one.text, platforms, f);
    f.drivers.push_back(file);
  }
  if (f.drivers.empty()) {
    f.trouble = fmt::format("none of {} is a driver that works", fmt::join(files, ", "));
    f.state = DriverState::NoLibrary;
  }
  return f;
}

bool is_set(const char* variable) {
  const char* text = std::getenv(variable);
  return text && *text;
}

Found look() {
  if (is_set("NARU_OPENCL_DRIVERS")) {
    std::vector<std::string> files;
    std::istringstream in(std::getenv("NARU_OPENCL_DRIVERS"));
    for (std::string file; std::getline(in, file, ',');)
      if (!file.empty()) files.push_back(file);
    return by_drivers(files);
  }
  Found f = by_loader();
  if (!f.devices.empty() || f.state == DriverState::Works) return f;
  // A loader, or a list of drivers, that the user has chosen is the only one.
  for (const char* variable : {"NARU_OPENCL_LIBRARY", "OCL_ICD_VENDORS", "OCL_ICD_FILENAMES"})
    if (is_set(variable)) return f;
  Found without = by_drivers(usual_drivers());
  return without.devices.empty() ? f : without;
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
  static AskedOnce<Found> once;
  return once.get(look);
}

namespace {

// Devices whose kernels do not run: their platforms and numbers, and why. A list is replaced, never changed, and never freed, because other
// threads may be reading it.
struct Refused {
  std::vector<std::pair<int, int>> devices;
  std::vector<std::string> why;
};
std::atomic<const Refused*>& refused() {
  static std::atomic<const Refused*> now{new const Refused};
  return now;
}
AskedOnce<std::vector<DeviceInfo>>& usable_list(bool cpus) {
  static AskedOnce<std::vector<DeviceInfo>> lists[2];
  return lists[cpus];
}

}  // namespace

const std::vector<DeviceInfo>& usable() {
  const bool cpus = with_cpus();
  return usable_list(cpus).get([cpus] {
    const auto& wrong = refused().load(std::memory_order_acquire)->devices;
    std::vector<DeviceInfo> list;
    // Processors last, so that the other devices keep their indices with or without them.
    for (const bool cpu : {false, true})
      for (const DeviceInfo& d : found().devices)
        if (d.cpu == cpu && missing_in(d).empty() && (!cpu || cpus) &&
            std::find(wrong.begin(), wrong.end(), std::pair(d.platform, d.number)) == wrong.end())
          list.push_back(d);
    return list;
  });
}

void leave_out(const std::vector<std::pair<size_t, std::string>>& why) {
  const std::vector<DeviceInfo>& list = usable();
  auto* const more = new Refused(*refused().load(std::memory_order_acquire));
  for (const auto& [place, text] : why) {
    const DeviceInfo& d = list.at(place);
    more->devices.emplace_back(d.platform, d.number);
    more->why.push_back(fmt::format("{} ({}): {}", d.name, d.platform_name, text));
  }
  refused().store(more, std::memory_order_release);
  for (const bool cpus : {false, true}) static_cast<void>(usable_list(cpus).take());
}

std::string left_out() {
  std::vector<std::string> all = found().left_out;
  const std::vector<std::string>& more = refused().load(std::memory_order_acquire)->why;
  all.insert(all.end(), more.begin(), more.end());
  return fmt::format("{}", fmt::join(all, "; "));
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
  const std::string without = left_out();
  if (names.empty())
    return {false, "OpenCL is installed, but lists no device" + (without.empty() ? "" : " (" + without + ")"), "See what `clinfo` says",
            DriverState::NoDeviceNode};
  return {false, "the only OpenCL devices are processors, which device 'cpu' serves better: " + names,
          "Set NARU_OPENCL_CPU=1 to have them as xpu devices all the same, or NARU_VIRTUAL=xpu:1 for a virtual one", DriverState::Hidden};
}

}  // namespace naru::backends::opencl
