// DLPack capsules; naru/interop/dlpack.h implements their contents.
#include "naru/interop/dlpack.h"

#include "ops/tensor/lending.h"
#include "runtime/device/registry.h"
#include "runtime/memory/foreign.h"
#include "runtime/queue/streams.h"

#include "object/tensor_object.h"

namespace naru::py {
namespace {

template <class M>
constexpr const char* kName = std::is_same_v<M, DLManagedTensor> ? "dltensor" : "dltensor_versioned";
template <class M>
constexpr const char* kUsedName = std::is_same_v<M, DLManagedTensor> ? "used_dltensor" : "used_dltensor_versioned";

// Consumers may release a capsule on any thread, with or without the GIL; destroying a tensor needs neither.
template <class M>
void end_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kName<M>)) return;  // already consumed
  end_dlpack(static_cast<M*>(PyCapsule_GetPointer(capsule, kName<M>)));
}

template <class M>
PyObject* capsule_of(M* m) {
  PyObject* const capsule = PyCapsule_New(m, kName<M>, end_capsule<M>);
  if (!capsule) end_dlpack(m);
  return check(capsule);
}

PyObject* to_capsule(const Tensor& t, bool versioned, bool copy, std::optional<int64_t> stream) {
  DLManagedTensor* plain = nullptr;
  DLManagedTensorVersioned* modern = nullptr;
  {
    GilRelease scope;
    versioned ? void(modern = ops::lend(t, copy, stream)) : void(plain = ops::lend_unversioned(t, copy, stream));
  }
  return versioned ? capsule_of(modern) : capsule_of(plain);
}

template <class M>
void release_managed(void* p) {
  end_dlpack(static_cast<M*>(p));
}

template <class M>
Tensor take(PyObject* capsule) {
  auto* m = static_cast<M*>(PyCapsule_GetPointer(capsule, kName<M>));
  Tensor t = from_dlpack(m, [m] { call_with_gil(release_managed<M>, m); });
  PyCapsule_SetName(capsule, kUsedName<M>);
  return t;
}

}  // namespace

Tensor from_capsule(PyObject* o) {
  if (PyCapsule_IsValid(o, kName<DLManagedTensorVersioned>)) return take<DLManagedTensorVersioned>(o);
  if (PyCapsule_IsValid(o, kName<DLManagedTensor>)) return take<DLManagedTensor>(o);
  fail(PyExc_RuntimeError, "from_dlpack: wanted a DLPack capsule that nobody has used yet; a capsule can be consumed once only");
}

void define_dlpack() {
  def(kFunction, "_dlpack_device", "input", "DLPack's kind of device, and its number.", [](const Tensor& t) -> PyObject* {
    const auto [kind, number] = dlpack_device(t);
    return Py_BuildValue("ii", kind, number);
  });
  def(kFunction, "_shares_dlpack_device", "kind, number", "Whether memory of the device that DLPack calls so can be that of a tensor.",
      [](int64_t kind, int64_t number) { return device_of_dlpack(static_cast<int32_t>(kind), static_cast<int32_t>(number)).has_value(); });
  def(kFunction, "_to_dlpack", "input, versioned, copy, stream=None",
      "A DLPack capsule of a tensor on a device whose memory others can use; stream: the consumer's.",
      [](const Tensor& t, bool versioned, bool copy, std::optional<int64_t> stream) -> PyObject* {
        return to_capsule(t, versioned, copy, stream);
      });
  def(kFunction, "_seen_by_host", "input", "A cpu tensor over the same memory, where the host may use the device's; else None.",
      [](const Tensor& t) -> PyObject* {
        Tensor shared;
        {
          const GilRelease no_gil;  // it waits for the device
          shared = ops::seen_by_host(t);
        }
        return shared.defined() ? wrap(shared) : Py_NewRef(Py_None);
      });
  def(kFunction, "_stream_handle", "device", "The driver's handle of the current stream; 0 where other libraries can't use the device.",
      [](Device device) -> int64_t {
        const GilRelease no_gil;  // it may start the driver and submit deferred work
        const Device d = runtime::resolve(device);
        return static_cast<int64_t>(runtime::handle_for_others(d, runtime::current_stream(d)));
      });
  def(kFunction, "_from_dlpack", "capsule", "A tensor over the memory of a DLPack capsule.",
      [](PyObject* capsule) -> PyObject* { return wrap(from_capsule(capsule)); });
}

}  // namespace naru::py
