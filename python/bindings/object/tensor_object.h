// Construction of the Python type Tensor, to which each file adds its part, and functions shared by these files.
#pragma once

#include <vector>

#include "object/function.h"

namespace naru::runtime {
class CachingAllocator;
}

namespace naru::py {

// The device's allocator, after submitting all deferred work of the device: deferred work has no memory yet.
runtime::CachingAllocator& allocator(Device device);

void make_tensor_type(nb::module_& m);
// Releases the Python object that a tensor owns; its tensor is being destroyed.
void give_up(void* object) noexcept;
void add_attributes(std::vector<PyGetSetDef>& getset);  // attributes.cpp
// The docstring of an attribute: the text followed by its example.
const char* attribute_text(const char* name, const char* text);  // attribute_examples.cpp
void add_number_slots(std::vector<PyType_Slot>& slots);          // operators.cpp
void add_index_slots(std::vector<PyType_Slot>& slots);           // subscript.cpp
void add_print_slots(std::vector<PyType_Slot>& slots);           // printing.cpp

// The result of torch.FloatTensor(*args) (data.cpp).
Tensor legacy_tensor(DType dtype, std::optional<Device> device, PyObject* args);
// A tensor from numbers, nested sequences, NumPy arrays or tensors, with the given or inferred dtype (data.cpp). Copies unless `share`.
Tensor tensor_from(PyObject* data, std::optional<DType> dtype, std::optional<Device> device, bool share = false);
// An array that shares the tensor's memory (arrays.cpp). cpu only.
PyObject* array_from(const Tensor& t);
// A tensor that shares an array's memory. shared: permanently; warns if the array is read-only.
Tensor from_array(PyObject* array, bool shared = false);
// A 1-D tensor over the memory of a buffer object (torch.frombuffer); count < 0: to the end. Throws ValueError if it does not fit.
Tensor from_buffer(PyObject* buffer, DType type, int64_t count, int64_t offset);
// The dtype of a buffer object's elements.
DType type_of_buffer(PyObject* buffer);
// A tensor over the memory of a DLPack capsule, which is consumed.
Tensor from_capsule(PyObject* capsule);
void define_arrays();
void define_dlpack();
// Tensor's buffer protocol.
int get_buffer(PyObject* tensor, Py_buffer* view, int flags);
PyObject* tolist(const Tensor& t);
// The only element.
Scalar item_of(const Tensor& t);

// Functions, by family.
void define_data();
void define_creation();
void define_elementwise();
void define_complex();
void define_sparse();
void define_reductions();
void define_shapes();
void define_indexing();
void define_scatters();
void define_counting();
void define_linalg();
void define_selecting();
void define_masked();
void define_scattered_views();
void define_fourier();
void define_networks();
void define_functional();
void define_convolutions();
void define_images();
void define_recurrent();
void define_attention();
void define_optimizers();
void define_random(nb::module_& m);
void define_methods();
void define_layers(nb::module_& m);
void define_compositions();
void define_deprecated();
void define_printing();
void define_autograd(nb::module_& m);
void define_derivatives();
void define_devices(nb::module_& m);
void define_histories();
void define_streams(nb::module_& m);
void define_graphs(nb::module_& m);
void define_flops(nb::module_& m);
void define_autocast();
void define_fallback(nb::module_& m);
void define_kernels(nb::module_& m);
void define_extensions(nb::module_& m);
void define_batches(nb::module_& m);
void define_safetensors(nb::module_& m);
void define_files(nb::module_& m);
void define_types(nb::module_& m);
void define_storage(nb::module_& m);

}  // namespace naru::py
