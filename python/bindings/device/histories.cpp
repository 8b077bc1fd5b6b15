// Memory histories, with the call stack of each allocation, and the log of instructions.
#include <nanobind/stl/string.h>

#include <atomic>
#include <map>
#include <mutex>

#include "autograd/engine/engine.h"
#include "naru/device/devices.h"
#include "naru/device/memory.h"
#include "object/lines.h"
#include "object/tensor_object.h"
#include "runtime/device/registry.h"
#include "runtime/memory/allocator.h"
#include "runtime/profile/instruction_log.h"
#include "runtime/profile/page.h"
#include "runtime/queue/queue.h"

namespace naru::py {
namespace {

// The call stack of a source location, innermost frame first, and the current module path as set by the program.
struct Calls {
  std::vector<std::pair<uint32_t, std::string>> frames;  // (source location, function)
  std::string within;
  bool operator<(const Calls& other) const { return std::tie(frames, within) < std::tie(other.frames, other.within); }
};
struct Contexts {
  std::mutex mutex;
  std::map<Calls, uint32_t> numbers;
  std::vector<const Calls*> list;
  std::atomic<int> recording = 0;  // how many histories are
};
Contexts& contexts() {
  static auto& c = *new Contexts;
  return c;
}
thread_local std::string within;
thread_local uint32_t noted_calls = 0;  // recorded before the GIL was released
constexpr size_t kFrames = 64;

uint32_t number_of(Calls calls) {
  Contexts& c = contexts();
  const std::lock_guard lock(c.mutex);
  const auto [at, added] = c.numbers.try_emplace(std::move(calls), static_cast<uint32_t>(c.list.size() + 1));
  if (added) c.list.push_back(&at->first);
  return at->second;
}

uint32_t calls_here() {
  Calls calls;
  calls.within = within;
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  while (frame && calls.frames.size() < kFrames) {
    if (const uint32_t place = line_of(frame)) {
      PyCodeObject* code = PyFrame_GetCode(frame);
      const char* name = PyUnicode_AsUTF8(code->co_name);
      if (!name) PyErr_Clear();
      calls.frames.emplace_back(place, name ? name : "");
      Py_DECREF(code);
    }
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  Py_XDECREF(frame);
  return number_of(std::move(calls));
}

void record_contexts(bool on) {
  Contexts& c = contexts();
  const std::lock_guard lock(c.mutex);
  c.recording = std::max(0, c.recording + (on ? 1 : -1));
}

nb::object context_of(int64_t number) {
  const Calls* calls = nullptr;
  {
    Contexts& c = contexts();
    const std::lock_guard lock(c.mutex);
    const auto at = static_cast<size_t>(number / 2);
    if (at >= 1 && at <= c.list.size()) calls = c.list[at - 1];
  }
  if (!calls) return nb::none();
  nb::list frames;
  for (const auto& [place, function] : calls->frames) frames.append(nb::make_tuple(program_line_text(place), function));
  return nb::make_tuple(calls->within, number % 2 != 0, frames);
}

nb::object history_of(Device d) {
  const runtime::MemoryRecord record = allocator(d).history();
  nb::list events, slabs;
  for (const runtime::MemoryEvent& e : record.events)
    events.append(nb::make_tuple(e.seconds, e.bytes, e.number, e.allocated, e.reserved, e.origin.op ? e.origin.op : "",
                                 line_text(e.origin.where), runtime::name_of(e.role), reinterpret_cast<uintptr_t>(e.address),
                                 e.origin.context));
  for (const runtime::SlabEvent& s : record.slabs) slabs.append(nb::make_tuple(s.seconds, s.bytes, reinterpret_cast<uintptr_t>(s.address)));
  return nb::make_tuple(events, slabs);
}

std::vector<MemoryChange> changes_of(PyObject* events) {
  std::vector<MemoryChange> list;
  for (nb::handle item : nb::borrow<nb::list>(events)) {
    const nb::tuple e = nb::cast<nb::tuple>(item);
    list.push_back({nb::cast<double>(e[0]), nb::cast<int64_t>(e[1]), nb::cast<uint64_t>(e[2]), nb::cast<size_t>(e[3]),
                    nb::cast<size_t>(e[4]), nb::cast<std::string>(e[5]), nb::cast<std::string>(e[6]), "", 0});
  }
  return list;
}

MemoryRole role_named(std::string_view name) {
  for (const auto role :
       {MemoryRole::Other, MemoryRole::Parameter, MemoryRole::Gradient, MemoryRole::Activation, MemoryRole::OptimizerState})
    if (name == runtime::name_of(role)) return role;
  throw ValueError("memory: there is no role '{}'", name);
}

nb::object end_log() {
  std::vector<runtime::LoggedInstruction> log;
  {
    GilRelease scope;
    runtime::flush_all();
    log = runtime::end_instruction_log();
  }
  nb::list list;
  for (const runtime::LoggedInstruction& i : log)
    list.append(nb::make_tuple(i.device.is_cpu() ? "cpu" : i.device.str(), i.stream, i.name,
                               i.where ? program_line_text(i.where) : std::string(), i.given, i.begun, i.ended));
  return list;
}

}  // namespace

uint32_t program_calls() noexcept {
  if (contexts().recording.load(std::memory_order_relaxed) == 0) [[likely]]
    return 0;
  try {
    if (has_gil()) noted_calls = calls_here();
    return noted_calls * 2 + (autograd::current_backward() ? 1 : 0);
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

void define_histories() {
  def(kFunction, "_record_memory_history", "device, on", "Starts a history of a device's allocations, or stops and forgets it.",
      [](Device d, bool on) -> PyObject* {
        allocator(d).record_history(on);
        Py_RETURN_NONE;
      });
  def(kFunction, "_record_memory_contexts", "on", "Whether tensors remember the calls that led to them; as often off as on.",
      [](bool on) -> PyObject* {
        record_contexts(on);
        Py_RETURN_NONE;
      });
  def(kFunction, "_memory_within", "name",
      "What this thread's allocations are said to be within from now on: a module's path, '' for nothing.",
      [](std::string_view name) -> PyObject* {
        within = std::string(name);
        Py_RETURN_NONE;
      });
  def(kFunction, "_memory_context", "number",
      "A context of a history: (within, whether in backward, [(line, function), ...] innermost first), or None.",
      [](int64_t number) { return context_of(number); });
  def(kFunction, "_memory_history", "device",
      "The history: a list of (seconds, bytes, number of the allocation, allocated, reserved, operator, line, role, address, context), "
      "releases "
      "with negative bytes; and a list of (seconds, bytes, address) of what was taken from the device.",
      [](Device d) { return history_of(d); });
  def(kFunction, "_mark_memory", "input, role", "Notes what a tensor's memory serves, for histories.",
      [](const Tensor& t, std::string_view role) -> PyObject* {
        t.impl()->serves(role_named(role));
        Py_RETURN_NONE;
      });
  def(kFunction, "_memory_address", "input", "The address of a tensor's storage; 0 as long as it has no memory.", [](const Tensor& t) {
    const Storage* const s = t.impl()->storage.get();
    return static_cast<int64_t>(s ? reinterpret_cast<uintptr_t>(s->data) : 0);
  });
  def(kFunction, "_memory_holders", "events", "Who held how much of a history: (line and operator, most bytes at one time, allocations).",
      [](PyObject* events) -> nb::object {
        nb::list list;
        for (const MemoryHolder& h : memory_holders(changes_of(events))) list.append(nb::make_tuple(h.name, h.most, h.allocations));
        return list;
      });
  def(kFunction, "_page", "title, json", "A page of HTML over data as JSON.",
      [](std::string_view title, std::string_view json) { return runtime::page_of(std::string(title), std::string(json)); });
  def(kFunction, "_log_time", "", "The time now, in microseconds, on the clock of logs of what devices are given.",
      [] { return runtime::host_microseconds(); });
  def(kFunction, "_begin_instruction_log", "", "Starts a log of what devices are given.", []() -> PyObject* {
    runtime::flush_all();
    runtime::begin_instruction_log();
    Py_RETURN_NONE;
  });
  def(kFunction, "_end_instruction_log", "",
      "Ends it and waits: a list of (device, stream, name, line, handed over, begun, ended), times in microseconds.",
      [] { return end_log(); });
}

}  // namespace naru::py
