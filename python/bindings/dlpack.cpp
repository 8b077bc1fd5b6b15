// DLPack: tensors handed to other libraries, and taken from them, without a copy. The structures are those of the DLPack specification,
// version 1.0 and before it.
#include <cstring>

#include "tensor_object.h"

namespace naru::py {
namespace {

struct DlDevice {
  int32_t type, id;
};
constexpr int32_t kDlCpu = 1, kDlCudaHost = 3;

struct DlType {
  uint8_t code, bits;
  uint16_t lanes;
};
enum : uint8_t { kDlInt = 0, kDlUInt = 1, kDlFloat = 2, kDlBfloat = 4, kDlComplex = 5, kDlBool = 6 };

struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlType dtype;
  int64_t* shape;
  int64_t* strides;  // elements; null: dense, in row-major order
  uint64_t byte_offset;
};
struct DlManaged {  // "dltensor"
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManaged*);
};
struct DlManagedVersioned {  // "dltensor_versioned"
  uint32_t major, minor;
  void* context;
  void (*deleter)(DlManagedVersioned*);
  uint64_t flags;
  DlTensor tensor;
};
constexpr uint64_t kReadOnly = 1, kCopied = 2;

template <class M>
constexpr const char* kName = std::is_same_v<M, DlManaged> ? "dltensor" : "dltensor_versioned";
template <class M>
constexpr const char* kUsedName = std::is_same_v<M, DlManaged> ? "used_dltensor" : "used_dltensor_versioned";

DlType dl_type(DType t) {
  const auto bits = static_cast<uint8_t>(size_of(t) * 8);
  if (t == DType::Bool) return {kDlBool, 8, 1};
  if (t == DType::BF16) return {kDlBfloat, 16, 1};
  if (is_complex(t)) return {kDlComplex, bits, 1};
  if (is_floating(t)) return {kDlFloat, bits, 1};
  return {is_signed(t) ? kDlInt : kDlUInt, bits, 1};
}

DType type_of(DlType t) {
  if (t.lanes == 1) {
    for (const DType d : kAllDTypes) {
      const DlType k = dl_type(d);
      if (k.code == t.code && k.bits == t.bits) return d;
    }
  }
  fail(PyExc_BufferError, "from_dlpack: there is no type for code " + std::to_string(t.code) + " with " + std::to_string(t.bits) +
                              " bits and " + std::to_string(t.lanes) +
                              " lanes; convert the array to bool, an integer or a floating point type first");
}

// --- to others

// What a capsule keeps: the tensor, and its shape and strides where the consumer finds them.
template <class M>
struct Export {
  M managed{};
  Tensor tensor;
  Dims shape, strides;
};

// Consumers may call it on any thread, with or without the GIL; a tensor's end needs neither.
template <class M>
void end_export(M* m) {
  auto* e = static_cast<Export<M>*>(m->context);
  --e->tensor.impl()->storage->externally_aliased;
  delete e;
}

template <class M>
void end_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, kName<M>)) return;  // the consumer has taken it
  auto* m = static_cast<M*>(PyCapsule_GetPointer(capsule, kName<M>));
  m->deleter(m);
}

template <class M>
PyObject* capsule_of(const Tensor& t, bool copied) {
  auto e = std::make_unique<Export<M>>();
  e->tensor = t.detach();
  e->shape = t.sizes(), e->strides = t.strides();
  // Strides of dimensions of size 1 say nothing; some consumers want them as in a dense array.
  if (t.is_contiguous()) e->strides = contiguous_strides(t.sizes());
  M& m = e->managed;
  m.tensor = {t.data_ptr(), {kDlCpu, 0}, static_cast<int32_t>(t.dim()), dl_type(t.dtype()), e->shape.data(), e->strides.data(), 0};
  m.context = e.get();
  m.deleter = end_export<M>;
  if constexpr (std::is_same_v<M, DlManagedVersioned>) m.major = 1, m.minor = 0, m.flags = copied ? kCopied : 0;
  ++t.impl()->storage->externally_aliased;
  t.impl()->storage->resizable = false;
  Export<M>* raw = e.release();
  PyObject* capsule = PyCapsule_New(&raw->managed, kName<M>, end_capsule<M>);
  if (!capsule) end_export(&raw->managed);
  return check(capsule);
}

PyObject* to_dlpack(const Tensor& t, bool versioned, bool copy) {
  if (t.requires_grad()) fail(PyExc_BufferError, "Can't export tensors that require gradient, use tensor.detach()");
  if (!t.device().is_cpu())
    fail(PyExc_BufferError,
         "__dlpack__: the memory of " + t.device().str() + " has no address that other libraries can use; use tensor.cpu() first");
  const Tensor source = copy ? t.clone() : t;
  {
    Unlocked scope;
    source.data_ptr();
  }
  return versioned ? capsule_of<DlManagedVersioned>(source, copy) : capsule_of<DlManaged>(source, copy);
}

// --- from others

template <class M>
void release_managed(void* p) {
  auto* m = static_cast<M*>(p);
  if (m->deleter) m->deleter(m);
}

template <class M>
Tensor take(PyObject* capsule) {
  auto* m = static_cast<M*>(PyCapsule_GetPointer(capsule, kName<M>));
  const DlTensor& d = m->tensor;
  if constexpr (std::is_same_v<M, DlManagedVersioned>) {
    if (m->major != 1) fail(PyExc_BufferError, "from_dlpack: wanted DLPack of version 1, got version " + std::to_string(m->major));
    if ((m->flags & kReadOnly) &&
        PyErr_WarnEx(
            PyExc_UserWarning,
            "from_dlpack: the array is not writable, and tensors always are. Writing to this tensor is undefined; copy the array first",
            1) != 0)
      throw nb::python_error();
  }
  if (d.device.type != kDlCpu && d.device.type != kDlCudaHost)
    fail(PyExc_BufferError, "from_dlpack: wanted memory of the host (device type 1), got device type " + std::to_string(d.device.type) +
                                "; copy the array to the host first");
  const DType type = type_of(d.dtype);
  Dims sizes, strides;
  for (int i = 0; i < d.ndim; ++i) sizes.push_back(d.shape[i]);
  strides = contiguous_strides(sizes);
  if (d.strides)
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (d.strides[i] < 0 && sizes[i] > 1)
        fail(PyExc_BufferError, "from_dlpack: tensors with negative strides are not supported; copy the array first");
      strides[i] = std::max<int64_t>(d.strides[i], 0);
    }
  for (const int64_t n : sizes)
    if (n < 0) fail(PyExc_BufferError, "from_dlpack: the array has a negative size");
  PyCapsule_SetName(capsule, kUsedName<M>);
  return from_blob(static_cast<char*>(d.data) + d.byte_offset, sizes, strides, type, [m] { with_gil_later(release_managed<M>, m); });
}

}  // namespace

Tensor from_capsule(PyObject* o) {
  if (PyCapsule_IsValid(o, kName<DlManagedVersioned>)) return take<DlManagedVersioned>(o);
  if (PyCapsule_IsValid(o, kName<DlManaged>)) return take<DlManaged>(o);
  fail(PyExc_RuntimeError, "from_dlpack: wanted a DLPack capsule that nobody has used yet; a capsule can be consumed once only");
}

void define_dlpack() {
  def(kFunction, "_to_dlpack", "input, versioned, copy", "A DLPack capsule of a tensor on cpu.",
      [](const Tensor& t, bool versioned, bool copy) -> PyObject* { return to_dlpack(t, versioned, copy); });
  def(kFunction, "_from_dlpack", "capsule", "A tensor over the memory of a DLPack capsule.",
      [](PyObject* capsule) -> PyObject* { return wrap(from_capsule(capsule)); });
}

}  // namespace naru::py
