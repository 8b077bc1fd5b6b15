// Devices, their memory, and global switches.
#include <fmt/format.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <climits>
#include <sstream>

#include "backends/cpu/exec/execute.h"
#include "backends/cpu/exec/peak.h"
#include "core/device_kinds.h"
#include "naru/device/devices.h"
#include "naru/device/memory.h"
#include "naru/device/threads.h"
#include "object/tensor_object.h"
#include "runtime/device/kernel_cache.h"
#include "runtime/device/peer.h"
#include "runtime/device/registry.h"
#include "runtime/memory/allocator.h"
#include "runtime/os/library.h"
#include "runtime/profile/kernel_report.h"
#include "runtime/queue/queue.h"
#include "runtime/queue/streams.h"

namespace naru::py {

runtime::CachingAllocator& allocator(Device device) {
  const Device d = runtime::resolve(device);
  {
    GilRelease scope;
    runtime::flush_all();
  }
  return runtime::allocator_of(d);
}

namespace {

nb::dict statistics(Device d) {
  allocator(d);
  nb::dict out;
  for (const auto& [name, value] : memory_stats(d)) out[name.c_str()] = value;
  return out;
}

nb::dict describe(Device device) {
  const Device d = runtime::resolve(device);
  const runtime::Properties p = runtime::properties(d);
  const Capabilities can = runtime::backend_of(d.type).capabilities(d);
  nb::dict one;
  one["kind"] = std::string(name_of(d.type));
  one["index"] = d.is_cpu() ? 0 : d.index;
  one["device"] = d.str();
  one["backend"] = runtime::backend_of(d.type).name();
  one["virtual"] = runtime::backend_of(d.type).simulated();
  one["name"] = p.name;
  one["memory"] = p.total_memory;
  one["free"] = runtime::free_memory(d);
  one["unified"] = can.unified_memory;
  one["integrated"] = p.integrated || can.unified_memory;
  one["driver"] = p.driver;
  one["libraries"] = p.libraries;
  one["tested_on_hardware"] = p.tested_on_hardware;
  one["uuid"] = p.uuid;
  one["pci"] = p.pci;
  one["architecture"] = p.architecture;
  one["major"] = p.major;
  one["minor"] = p.minor;
  one["multi_processor_count"] = p.multi_processor_count;
  one["warp_size"] = p.warp_size;
  one["max_threads_per_block"] = p.max_threads_per_block;
  one["max_threads_per_multi_processor"] = p.max_threads_per_multi_processor;
  one["regs_per_multiprocessor"] = p.regs_per_multiprocessor;
  one["shared_memory_per_block"] = p.shared_memory_per_block;
  one["l2_cache_size"] = p.l2_cache_size;
  one["clock_rate"] = p.clock_rate;
  one["on_host"] = p.on_host;
  one["fp64"] = can.supports(DType::F64);
  one["fp16"] = can.supports(DType::F16);
  one["bf16"] = can.supports(DType::BF16);
  one["float64_in_integers"] = !can.arithmetic.fp64;
  one["denormals"] = can.arithmetic.denormals;
  return one;
}

nb::dict row_of(const DeviceKind& k) {
  nb::dict row;
  const auto put = [&](const char* name, const char* value) { row[name] = value ? nb::cast(value) : nb::none(); };
  put("name", k.name), put("label", k.label), put("python", k.python), put("visible", k.visible), put("fallback", k.fallback);
  return row;
}

nb::list all_devices() {
  nb::list list;
  for (const DeviceKind& k : computing_kinds())
    for (int i = 0; i < runtime::device_count(k.type); ++i) list.append(describe(Device(k.type, i)));
  return list;
}

nb::dict availability(DeviceType kind) {
  const runtime::Availability a = runtime::availability(kind);
  nb::dict out;
  out["available"] = a.available;
  out["state"] = std::string(name_of(a.state));
  out["reason"] = a.reason;
  out["remedy"] = a.remedy;
  return out;
}

// What interpreted kernels did (docs/kernelcheck.md).
void define_kernel_report() {
  def(kFunction, "_collect_kernel_faults", "on",
      "Whether faults of interpreted kernels are collected, and raise no error; forgets those so far.", [](bool on) -> PyObject* {
        runtime::kernel_report().clear();
        runtime::kernel_report().collect(on);
        Py_RETURN_NONE;
      });
  def(kFunction, "_kernel_faults", "", "The faults of interpreted kernels so far: a list of dicts.", []() -> nb::object {
    nb::list out;
    for (const runtime::KernelFault& f : runtime::kernel_report().faults()) {
      nb::dict one;
      one["kernel"] = f.kernel, one["kind"] = f.kind, one["file"] = f.file, one["line"] = f.line, one["source"] = f.source;
      one["thread"] = f.thread, one["instruction"] = f.instruction, one["text"] = f.text, one["made"] = f.made, one["times"] = f.times;
      out.append(one);
    }
    return out;
  });
  def(kFunction, "_kernel_figures", "", "By kernel: what interpreted kernels did so far, summed over their launches.", []() -> nb::object {
    nb::dict out;
    for (const auto& [kernel, figures] : runtime::kernel_report().figures()) {
      nb::dict row;
      for (const auto& [name, value] : figures) row[name.c_str()] = value;
      out[kernel.c_str()] = row;
    }
    return out;
  });
}

void define_kinds() {
  def(kFunction, "is_available", "kind", "Whether there is a device of a kind ('cuda', 'mps' ...) that works.",
      [](std::string_view kind) { return runtime::availability(parse_device_type(kind)).available; });
  def(kFunction, "why_unavailable", "kind", "The reason and the remedy where there is none; '' where there is one.",
      [](std::string_view kind) { return why_unavailable(parse_device_type(kind)); });
  def(kFunction, "device_count", "kind", "The number of devices of a kind.",
      [](std::string_view kind) { return int64_t{runtime::device_count(parse_device_type(kind))}; });
  def(kFunction, "current_device", "kind", "The index of the thread's current device of a kind.",
      [](std::string_view kind) { return int64_t{runtime::current_device(parse_device_type(kind))}; });
  def(kFunction, "set_device", "device", "Makes a device the thread's current one of its kind.", [](Device d) {
    const Device found = runtime::resolve(d);
    if (!found.is_cpu()) runtime::set_current_device(found.type, found.index);
  });
  def(kFunction, "device_name", "device", "The name of a device.", [](Device d) { return runtime::properties(runtime::resolve(d)).name; });
  def(kFunction, "total_memory", "device", "Bytes of memory of a device.",
      [](Device d) { return static_cast<int64_t>(runtime::properties(runtime::resolve(d)).total_memory); });
  def(kFunction, "devices", "", "All devices: a list of dicts with kind, index, name, memory, driver, libraries, tested_on_hardware ...",
      []() -> nb::object { return all_devices(); });
  def(kFunction, "_describe_device", "device", "One device, as in `devices`.", [](Device d) -> nb::object { return describe(d); });
  def(kFunction, "_availability", "kind", "What keeps a kind from being used: available, state, reason, remedy.",
      [](std::string_view kind) -> nb::object { return availability(parse_device_type(kind)); });
  def(kFunction, "_free_memory", "device", "Bytes of a device that nobody holds.", [](Device d) {
    allocator(d);
    return static_cast<int64_t>(runtime::free_memory(d));
  });
  def(kFunction, "_kernel_cache", "", "The cache of compiled kernels: its folder, and how many kernels this process has compiled.",
      []() -> nb::object {
        const runtime::KernelCache& cache = runtime::kernel_cache();
        nb::dict out;
        out["folder"] = cache.folder();
        out["compilations"] = cache.compilations();
        return out;
      });
  def(kFunction, "_best_device", "", "The device programs should use, and why the other kinds were not chosen.", []() -> nb::object {
    const BestDevice best = best_device();
    nb::dict others;
    for (const auto& [kind, why] : best.others) others[std::string(name_of(kind)).c_str()] = why;
    return nb::make_tuple(best.device.str(), others);
  });
  def(kFunction, "_pick", "kind, free_memory, uuid, pci", "The device that has what is wanted; see naru.pick.",
      [](std::string_view kind, int64_t free_memory, std::string_view uuid, std::string_view pci) {
        if (free_memory < 0) throw ValueError("pick: wanted free_memory >= 0, got {}", free_memory);
        PickOptions wanted{std::nullopt, static_cast<size_t>(free_memory), std::string(uuid), std::string(pci)};
        if (!kind.empty()) wanted.kind = parse_device_type(kind);
        return pick(wanted);
      });
  def(kFunction, "_virtual_devices", "", "The virtual devices that there are now, as NARU_VIRTUAL writes them.",
      [] { return runtime::virtual_devices(); });
  def(kFunction, "_can_access_peer", "device, peer", "Whether bytes copied unit_stride from one device to the other arrive as they were.",
      [](Device d, Device peer) {
        GilRelease scope;
        return d != peer && runtime::peer_works(runtime::resolve(peer), runtime::resolve(d));
      });
  def(kFunction, "_set_virtual_devices", "spec", "(Re)defines the virtual devices, e.g. 'cuda:4,mps:1'; '' removes them.",
      [](std::string_view spec) -> PyObject* {
        const std::string text(spec);
        {
          GilRelease scope;
          runtime::set_virtual_devices(text);
        }
        Py_RETURN_NONE;
      });
}

// Memory statistics of the devices that this process has used. Unlike statistics(), a call does not affect the program's execution.
nb::dict live() {
  const auto memory = [](Device d) {
    const runtime::MemoryStats s = runtime::allocator_of(d).stats();
    nb::dict one;
    one["device"] = d.str();
    one["allocated"] = s.allocated(), one["reserved"] = s.reserved(), one["peak"] = s.peak_allocated(), one["limit"] = s.limit;
    one["allocations"] = s.all.allocations.added;
    one["streams"] = nb::list();
    return one;
  };
  nb::dict devices, out;
  devices["cpu"] = memory(Device(DeviceType::Cpu));
  for (const runtime::StreamUse& s : runtime::streams_in_use()) {
    const std::string name = s.device.str();
    if (!devices.contains(name.c_str())) devices[name.c_str()] = memory(s.device);
    nb::cast<nb::list>(devices[name.c_str()]["streams"]).append(nb::make_tuple(s.number, s.submitted, s.completed));
  }
  out["devices"] = devices.values();
  out["compilations"] = runtime::kernel_cache().compilations();
  return out;
}

void define_memory() {
  def(kFunction, "_live", "",
      "Figures of the devices that this process has used (memory, and by stream what was submitted and completed), and how many kernels it "
      "has compiled. "
      "Asking flushes nothing, waits for nothing and starts no device.",
      []() -> nb::object { return live(); });
  const auto figure = [](const char* name, const char* doc, size_t (runtime::MemoryStats::*get)() const noexcept) {
    def(kFunction, name, "device", doc, [get](Device d) { return static_cast<int64_t>((allocator(d).stats().*get)()); });
  };
  figure("memory_allocated", "Bytes in tensors on a device.", &runtime::MemoryStats::allocated);
  figure("memory_reserved", "Bytes taken from a device, cached ones included.", &runtime::MemoryStats::reserved);
  figure("max_memory_allocated", "The most bytes that were in tensors at one time.", &runtime::MemoryStats::peak_allocated);
  figure("max_memory_reserved", "The most bytes that were taken from a device at one time.", &runtime::MemoryStats::peak_reserved);
  def(kFunction, "_memory_stats", "device", "Figures of a device's allocator under PyTorch's names, as a dict.",
      [](Device d) -> nb::object { return statistics(d); });
  def(kFunction, "reset_peak_memory_stats", "device", "Starts the maxima anew.", [](Device d) { allocator(d).reset_peak(); });
  def(kFunction, "_reset_accumulated_memory_stats", "device", "Starts the sums anew.", [](Device d) { allocator(d).reset_accumulated(); });
  def(kFunction, "empty_cache", "device", "Gives cached memory back to a device.", [](Device d) { allocator(d).empty_cache(); });
  def(kFunction, "set_memory_limit", "device, bytes", "Takes no more than so many bytes from a device; 0 lifts the limit.",
      [](Device d, int64_t bytes) {
        if (bytes < 0) throw ValueError("set_memory_limit: wanted bytes >= 0, got {}", bytes);
        allocator(d).set_limit(static_cast<size_t>(bytes));
      });
  def(kFunction, "_memory_summary", "device, abbreviated", "The figures as PyTorch's table.", [](Device d, bool abbreviated) {
    allocator(d);
    return memory_summary(d, abbreviated);
  });
  def(kFunction, "synchronize", "device", "Waits for all work on a device.", [](Device d) -> PyObject* {
    {
      GilRelease scope;
      runtime::synchronize(runtime::resolve(d));
    }
    Py_RETURN_NONE;
  });
}

void define_switches() {
  def(kFunction, "_set_package_folders", "folders",
      "Folders, separated by newlines, whose packages may bring libraries: looked at when one is opened.", [](std::string_view folders) {
        std::vector<std::string> list;
        std::istringstream lines{std::string(folders)};
        for (std::string line; std::getline(lines, line);) list.push_back(line);
        runtime::Library::set_package_folders(std::move(list));
      });
  def(kFunction, "set_fusion", "on", "Whether elementwise steps are deferred and fused. Returns what it was.",
      [](bool on) { return runtime::set_fusion(on); });
  def(kFunction, "set_jit", "on", "Whether kernels are compiled to machine code on the host. Returns what it was.",
      [](bool on) { return cpu::set_jit(on); });
  def(kFunction, "set_isa", "name",
      "The instruction set of new kernels: 'avx2', 'avx512' or 'none'. False where the processor does not have it.",
      [](std::string_view name) { return cpu::set_isa(std::string(name).c_str()); });
  def(kFunction, "isa_name", "", "The instruction set that kernels are compiled for: 'avx512', 'avx2' or 'none'.",
      [] { return std::string(cpu::isa_name()); });
  def(kFunction, "_measure_peak", "",
      "Operations of float32 a second that the processors do at best, measured now; 0 where that is not known.", [] {
        GilRelease scope;
        return cpu::measure_peak();
      });
  def(kFunction, "matmul_libraries", "", "The libraries that compute matrix products.", [] { return cpu::matmul_libraries(); });
  def(kFunction, "set_matmul_libraries", "choice",
      "Which library may compute products: 'own', 'dnnl', 'openblas', or '' for all. For tests.",
      [](std::string_view choice) { cpu::set_matmul_libraries(std::string(choice)); });
  def(kFunction, "set_num_threads", "n", "Over how many threads the cpu's work is spread.",
      [](int64_t n) { set_num_threads(static_cast<int>(std::clamp<int64_t>(n, INT_MIN, INT_MAX))); });
  def(kFunction, "get_num_threads", "", "Over how many threads the cpu's work is spread.", [] { return int64_t{get_num_threads()}; });
}

}  // namespace

void define_devices(nb::module_& m) {
  nb::list names, accelerators, rows;
  for (const DeviceKind& k : computing_kinds()) names.append(k.name), rows.append(row_of(k));
  for (const DeviceKind& k : accelerator_kinds()) accelerators.append(k.name);
  m.attr("_KINDS") = nb::tuple(names);
  m.attr("_ACCELERATORS") = nb::tuple(accelerators);
  m.attr("_KIND_ROWS") = nb::tuple(rows);
  define_kinds();
  define_kernel_report();
  define_memory();
  define_histories();
  define_switches();
}

}  // namespace naru::py
