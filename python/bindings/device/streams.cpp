// Streams, events, and synchronization counting; python/naru/streams.py has PyTorch's API.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <memory>

#include "core/tensor_impl.h"
#include "naru/device/stream.h"
#include "naru/device/sync.h"
#include "object/tensor_object.h"
#include "runtime/device/registry.h"
#include "runtime/memory/foreign.h"

namespace naru::py {
namespace {

// Device is not a nanobind type, so devices are passed as text.
Device device_of(const std::string& text) {
  const Device d = Device::parse(text);
  return d.is_cpu() ? d : runtime::resolve(d);
}

// A CountSyncs that Python opens and closes, and its list.
class SyncList {
 public:
  void open() { counting_ = std::make_unique<CountSyncs>(); }
  void close() {
    if (!counting_) return;
    kept_ = counting_->list();
    counting_.reset();
  }
  nb::list entries() const {
    nb::list out;
    for (const Synchronization& s : counting_ ? counting_->list() : kept_) out.append(nb::make_tuple(s.what, s.device.str(), s.where));
    return out;
  }

 private:
  std::unique_ptr<CountSyncs> counting_;
  std::vector<Synchronization> kept_;
};

void define_streams_and_events(nb::module_& m) {
  nb::class_<Stream>(m, "_Stream", nb::is_weak_referenceable())
      .def(
          "__init__",
          [](Stream* self, const std::string& device, int priority, int which) {
            const Device d = device_of(device);
            new (self) Stream(which < 0 ? Stream(d, priority) : which == 0 ? Stream::default_stream(d) : Stream::current(d));
          },
          nb::arg("device"), nb::arg("priority") = 0, nb::arg("which") = -1)
      .def_prop_ro("_device", [](const Stream& s) { return s.device().str(); })
      .def_prop_ro("stream_id", &Stream::number)
      .def_prop_ro("_handle",
                   [](const Stream& s) {
                     GilRelease scope;
                     return runtime::handle_for_others(s.device(), s.number());
                   })
      .def_prop_ro("priority", &Stream::priority)
      .def("_wait_event",
           [](const Stream& s, const Event& e) {
             GilRelease scope;
             s.wait(e);
           })
      .def("_wait_stream",
           [](const Stream& s, const Stream& other) {
             GilRelease scope;
             s.wait(other);
           })
      .def(
          "query",
          [](const Stream& s) {
            GilRelease scope;
            return s.query();
          },
          "Whether everything the stream was given is done.")
      .def(
          "synchronize",
          [](const Stream& s) {
            GilRelease scope;
            s.synchronize();
          },
          "Waits until everything the stream was given is done; raises the errors there were.")
      .def("_make_current", [](const Stream& s) { set_current_stream(s); })
      .def("_same", [](const Stream& a, const Stream& b) { return a == b; });
  nb::class_<Event>(m, "_Event", nb::is_weak_referenceable())
      .def(nb::init<bool>(), nb::arg("timing") = false)
      .def("_record",
           [](Event& e, const Stream& s) {
             GilRelease scope;
             e.record(s);
           })
      .def("_recorded", &Event::recorded)
      .def("_device", [](const Event& e) { return e.device() ? std::optional(e.device()->str()) : std::nullopt; })
      .def(
          "query", [](const Event& e) { return e.query(); }, "Whether the work before the event is done.")
      .def(
          "synchronize",
          [](const Event& e) {
            GilRelease scope;
            e.synchronize();
          },
          "Waits until the work before the event is done; raises the errors there were.")
      .def("_elapsed_time", &Event::elapsed_time);
}

void define_synchronizations(nb::module_& m) {
  def(kFunction, "_writes", "input", "How often the tensor's memory has been written in place, through `data` too.", [](const Tensor& t) {
    const Storage& s = *t.impl()->storage;
    return static_cast<int64_t>(s.version.load(std::memory_order_relaxed)) + s.silent_writes.load(std::memory_order_relaxed);
  });
  nb::class_<SyncList>(m, "_SyncList")
      .def(nb::init<>())
      .def("open", &SyncList::open)
      .def("close", &SyncList::close)
      .def("entries", &SyncList::entries);
  m.def("_sync_mode", [] { return static_cast<int>(sync_mode()); });
  m.def("_set_sync_mode", [](int mode) { set_sync_mode(static_cast<SyncMode>(mode)); });
}

}  // namespace

void define_streams(nb::module_& m) {
  define_streams_and_events(m);
  define_synchronizations(m);
}

}  // namespace naru::py
