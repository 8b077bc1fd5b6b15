// What the Python extension naru._C lends to C++ extensions (naru/torch/python.h): its conversions between Python objects and naru's values.
#pragma once

#include <exception>

#include "naru/tensor.h"

struct _object;  // PyObject

namespace naru {

// Each function needs the GIL and throws nothing. Those that read an object return false if it is none of theirs; a Python error may then
// be set. Those that make an object return a new reference, or null with a Python error.
struct PythonTable {
  // Counts changes to this struct. An extension refuses a table of another version.
  static constexpr int kVersion = 1;
  static constexpr const char* kName = "naru._C._cpp_table";

  int version;
  const Tensor* (*tensor)(_object*);  // null if it is no tensor; valid as long as the object
  _object* (*tensor_object)(const Tensor&);
  bool (*scalar)(_object*, Scalar&);
  _object* (*scalar_object)(const Scalar&);
  bool (*dtype)(_object*, DType&);
  _object* (*dtype_object)(DType);
  bool (*device)(_object*, Device&);
  _object* (*device_object)(Device);
  bool (*dims)(_object*, Dims&);
  _object* (*size_object)(const Dims&);
  bool (*format)(_object*, MemoryFormat&);
  // Sets the Python error for a C++ exception, as naru's own functions do.
  void (*set_error)(const std::exception_ptr&);
};

}  // namespace naru
