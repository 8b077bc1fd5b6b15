#include "runtime/device/gpu_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "naru/error.h"
#include "runtime/os/child.h"
#include "runtime/os/library.h"
#include "runtime/os/system.h"

namespace naru::runtime {
namespace {

struct Uuid {
  unsigned char bytes[16];
};

struct Functions {
  int (*init)(unsigned) = nullptr;
  int (*version)(int*) = nullptr;
  int (*count)(int*) = nullptr;
  int (*get)(int*, int) = nullptr;
  int (*name)(char*, int, int) = nullptr;
  int (*uuid)(Uuid*, int) = nullptr;
  int (*memory)(size_t*, int) = nullptr;
  int (*pci)(char*, int, int) = nullptr;
  int (*attribute)(int*, int, int) = nullptr;
  int (*slice_uuid)(Uuid*, int) = nullptr;
  int (*properties)(void*, int) = nullptr;
  size_t architecture = 0;  // its offset in the properties
};

bool find(const GpuDriver& d, Library& library, Functions& f) {
  const bool all = library.find(f.init, d.init) && library.find(f.version, d.version) && library.find(f.count, d.count) &&
                   library.find(f.get, d.get) && library.find(f.name, d.name) && library.find(f.memory, d.memory) &&
                   library.find(f.pci, d.pci) && library.find(f.attribute, d.attribute);
  if (d.slice_uuid && !library.find(f.slice_uuid, d.slice_uuid)) f.slice_uuid = nullptr;  // drivers before CUDA 11.4
  for (const GpuDriver::Architecture& a : d.architecture)
    if (a.function && !f.properties && library.find_optional(f.properties, a.function)) f.architecture = a.offset;
  return all && library.find(f.uuid, d.uuid);
}

const char* variable(const char* name) { return name ? std::getenv(name) : nullptr; }

// Slices of devices (MIG) can't be expressed as a list of whole devices: then the driver itself must interpret the variable.
bool is_left_to_the_driver(const char* visible) { return visible && std::strstr(visible, "MIG-"); }

constexpr int kNotInitialized = 3;  // of CUDA and of HIP

// "gfx90a:sramecc+:xnack-"; "" if the driver does not say.
std::string architecture_of(const Functions& f, int device) {
  std::array<char, 8192> properties{};  // more than any version of the struct has
  if (!f.properties || f.properties(properties.data(), device) != 0) return "";
  return std::string(properties.data() + f.architecture, strnlen(properties.data() + f.architecture, 255));
}

// The child's report: lines of tab-separated words. "version 12080", "error cuInit 803", "gpu PCI UUID 9 0 132 BYTES LIMITS ARCHITECTURE NAME".
class Report {
 public:
  template <class... Words>
  void line(const Words&... words) {
    ((text_ += fmt::format("{}\t", words)), ...);
    text_.back() = '\n';
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// AMD's sixteen bytes are the digits of a number as text.
std::string uuid_text(const Uuid& u, bool is_text, std::string s = "GPU-") {
  if (is_text) return s.append(u.bytes, std::find(u.bytes, u.bytes + 16, '\0'));
  for (int i = 0; i < 16; ++i) s += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u.bytes[i]);
  return s;
}

std::string lower(std::string s) {
  for (char& c : s) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return s;
}

// In the child, whose environment is a copy: makes all devices visible.
void see_all(const GpuDriver& d) {
  if (!is_left_to_the_driver(variable(d.visible))) system::unset_variable(d.visible);
}

// Queries the driver. Stops at the first error, and reports it.
std::string ask(const GpuDriver& d, const Functions& f) {
  Report report;
  int version = 0;
  if (f.version(&version) == 0) report.line("version", version);
  if (version != 0 && version < d.need_version) return report.text();

  const auto failed = [&](const char* function, int code) {
    if (code != 0) report.line("error", function, code);
    return code != 0;
  };
  int count = 0;
  if (failed(d.init, f.init(0)) || failed(d.count, f.count(&count))) return report.text();
  for (int i = 0; i < count; ++i) {
    int device = 0, major = 0, minor = 0, multiprocessors = 0;
    size_t memory = 0;
    char name[256] = "", pci[64] = "";
    Uuid uuid{};
    if (failed(d.get, f.get(&device, i)) || failed(d.name, f.name(name, sizeof name, device)) ||
        failed(d.memory, f.memory(&memory, device)) || failed(d.pci, f.pci(pci, sizeof pci, device)) ||
        failed(d.uuid, f.uuid(&uuid, device)) || failed(d.attribute, f.attribute(&major, d.major_attribute, device)) ||
        failed(d.attribute, f.attribute(&minor, d.minor_attribute, device)) ||
        failed(d.attribute, f.attribute(&multiprocessors, d.multiprocessors_attribute, device)))
      return report.text();
    Uuid slice = uuid;
    if (f.slice_uuid && f.slice_uuid(&slice, device) != 0) slice = uuid;
    const bool is_slice = !std::equal(slice.bytes, slice.bytes + 16, uuid.bytes);
    std::string limits;
    for (const int attribute : d.limit_attributes) {
      int limit = 0;
      if (attribute != 0 && f.attribute(&limit, attribute, device) != 0) limit = 0;
      limits += fmt::format("{} ", limit);
    }
    report.line("gpu", lower(pci), uuid_text(slice, d.uuid_is_text, is_slice ? "MIG-" : "GPU-"), major, minor, multiprocessors, memory,
                limits, architecture_of(f, device), name);
  }
  return report.text();
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream in(line);
  for (std::string word; std::getline(in, word, '\t');) words.push_back(word);
  return words;
}

// The child's report, parsed.
struct Findings {
  int version = 0;
  std::string failed;  // the function that failed
  int code = 0;
  std::vector<Gpu> gpus;
};

GpuLimits limits_of(const std::string& text) {
  std::istringstream in(text);
  GpuLimits l;
  in >> l.warp >> l.threads_of_block >> l.threads_of_multiprocessor >> l.registers_of_multiprocessor >> l.shared_of_block >> l.l2;
  return l;
}

Findings read(const std::string& text) {
  Findings facts;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> w = words_of(line);
    if (w[0] == "version") facts.version = std::stoi(w[1]);
    if (w[0] == "error") facts.failed = w[1], facts.code = std::stoi(w[2]);
    if (w[0] == "gpu")
      facts.gpus.push_back({w.size() > 9 ? w[9] : "", w[2], w[1], w[8], std::stoi(w[3]), std::stoi(w[4]), std::stoi(w[5]),
                            static_cast<size_t>(std::stoull(w[6])), limits_of(w[7])});
  }
  return facts;
}

bool has_node(const GpuDriver& d) {
  const char* chosen = variable(d.nodes_variable);
  // Under WSL the devices have a separate node.
  return chosen ? system::has_file_like(chosen) : system::has_file_like(d.nodes) || system::has_file_like("/dev/dxg");
}

Availability error(const GpuDriver& d, const std::string& function, int code) {
  if (!has_node(d)) {
    const char* chosen = variable(d.nodes_variable);
    return unavailable(DriverState::NoDeviceNode, {{"driver", d.words}, {"node", chosen ? chosen : d.nodes}, {"load", d.load}});
  }
  const auto known = std::find_if(d.errors.begin(), d.errors.end(), [&](const ErrorText& e) { return e.code == code; });
  if (known != d.errors.end())
    return unavailable(
        DriverState::InitError,
        {{"function", function}, {"code", fmt::format("{} {}", code, known->name)}, {"cause", known->cause}, {"cure", known->cure}});
  return unavailable(DriverState::InitError, {{"function", function},
                                              {"code", std::to_string(code)},
                                              {"cause", "an error that naru does not know"},
                                              {"cure", fmt::format("Look the code up in the documentation of {}", d.words)}});
}

Availability hidden(const GpuDriver& d, const char* value, const std::string& detail) {
  return unavailable(DriverState::Hidden, {{"variable", d.visible}, {"value", value}, {"detail", detail}});
}

// Sorts the devices if the driver has no variable for their order. A driver with such a variable applies it itself, also when it interprets
// a list of indices, here and in other libraries of the process.
void put_in_order(const GpuDriver& d, std::vector<Gpu>& gpus) {
  if (!d.order) std::stable_sort(gpus.begin(), gpus.end(), [](const Gpu& a, const Gpu& b) { return a.pci < b.pci; });
}

// Removes the devices that the environment hides. False if there were devices and none is left. chosen: the driver has applied the
// variable.
bool choose(const GpuDriver& d, std::vector<Gpu>& gpus, bool chosen) {
  if (chosen && variable(d.visible)) return true;
  put_in_order(d, gpus);
  const char* list = variable(d.visible);
  if (!list || is_left_to_the_driver(list)) return true;
  std::vector<std::string> uuids;
  for (const Gpu& g : gpus) uuids.push_back(g.uuid);
  std::vector<Gpu> left;
  for (int i : visible_devices(list, uuids)) left.push_back(gpus[static_cast<size_t>(i)]);
  gpus = std::move(left);
  return !gpus.empty();
}

Availability judge(const GpuDriver& d, const ChildAnswer& answer, GpuProbe& probe) {
  if (!answer.text)
    return unavailable(DriverState::InitError,
                       {{"function", d.init},
                        {"code", answer.trouble},
                        {"cause", fmt::format("{} crashes or hangs", d.words)},
                        {"cure", fmt::format("Restart the machine; if that does not help, install {} again", d.words)}});
  Findings facts = read(*answer.text);
  probe.version = facts.version;
  probe.driver = facts.version ? d.version_text(facts.version) : "";
  if (facts.version != 0 && facts.version < d.need_version)
    return unavailable(DriverState::DriverTooOld,
                       {{"driver", d.words}, {"have", probe.driver}, {"need", d.version_text(d.need_version)}, {"version", d.need_driver}});
  if (!facts.failed.empty()) return error(d, facts.failed, facts.code);
  constexpr int kNoDevice = 100;
  if (facts.gpus.empty()) return error(d, d.count, kNoDevice);

  probe.gpus = facts.gpus;
  if (!choose(d, probe.gpus, probe.in_use)) {
    std::vector<Gpu> all = facts.gpus;
    put_in_order(d, all);
    return hidden(d, variable(d.visible), fmt::format("; there are {}", list_of(all)));
  }
  const auto new_enough = [&](const Gpu& g) { return std::pair(g.major, g.minor) >= std::pair(d.need_major, d.need_minor); };
  if (std::none_of(probe.gpus.begin(), probe.gpus.end(), new_enough)) {
    const Gpu& g = probe.gpus.front();
    return unavailable(DriverState::UnsupportedArch, {{"name", g.name},
                                                      {"have", fmt::format("{} {}.{}", d.capability, g.major, g.minor)},
                                                      {"need", fmt::format("{}.{}", d.need_major, d.need_minor)}});
  }
  return {true, "", ""};
}

}  // namespace

std::string list_of(std::span<const Gpu> gpus) {
  std::string text;
  for (size_t i = 0; i < gpus.size(); ++i) text += fmt::format("{}{}: {} {} {}", i ? ", " : "", i, gpus[i].name, gpus[i].uuid, gpus[i].pci);
  return text;
}

GpuProbe probe_gpus(const GpuDriver& d) {
  GpuProbe probe;
  // Opening the library leaves no trace; calling it would.
  Library library = Library::open(d.library_variable, d.libraries);
  Functions functions;
  if (!find(d, library, functions)) {
    probe.state = unavailable(DriverState::NoLibrary, {{"detail", library.trouble()}, {"driver", d.words}, {"install", d.install}});
    return probe;
  }
  // If the user hides all devices, do not query the driver.
  if (const char* list = variable(d.visible); list && (!*list || *list == '-')) {
    probe.state = hidden(d, *list ? list : "\"\"", "");
    return probe;
  }
  constexpr std::chrono::seconds kPatience{60};
  ChildAnswer answer{"", ""};
  const char* place = std::getenv("NARU_PROBE");
  if (!kChildren || (place && std::string_view(place) == "here")) {
    probe.in_use = true;
  } else {
    answer = ask_in_child([&] { return see_all(d), ask(d, functions); }, kPatience);
  }
  // A child can't use a driver that its parent uses already (by another library such as PyTorch). Then this process has its traces anyway,
  // so query it here.
  if (answer.text && !probe.in_use) {
    const Findings facts = read(*answer.text);
    probe.in_use = facts.failed == d.init && facts.code == kNotInitialized;
  }
  if (probe.in_use) answer.text = ask(d, functions);
  probe.state = judge(d, answer, probe);
  return probe;
}

}  // namespace naru::runtime
