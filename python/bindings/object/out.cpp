#include <fmt/format.h>

#include "object/out.h"

#include <algorithm>
#include <array>

#include "autograd/history/history.h"
#include "naru/autograd.h"
#include "ops/shape/strides.h"
#include "ops/tensor/common.h"
#include "ops/tensor/type_names.h"

namespace naru::py {
namespace {

using ops::torch_name;

// "long int", as PyTorch's messages about out write it.
const char* c_type(DType t) { return t == DType::I64 ? "long int" : ops::c_name(t); }

int category(DType t) { return static_cast<int>(category_of(t)); }

[[noreturn]] void fail_dtype(const char* function, DType wanted, DType got) {
  if (const char* const message = operators::record_of(function).out.message)
    throw RuntimeError("{}", fmt::format(fmt::runtime(message), torch_name(wanted), torch_name(got)));
  throw RuntimeError("Expected out tensor to have dtype {}, but got {} instead ({})", c_type(wanted), c_type(got), function);
}

void check_cast(const char* function, DType result, DType out, const char* message) {
  if (category(result) <= category(out)) return;
  if (message) throw TypeError("{}", fmt::format(fmt::runtime(message), torch_name(result), torch_name(out)));
  throw RuntimeError("result type {} can't be cast to the desired output type {} ({}: out)", torch_name(result), torch_name(out), function);
}

bool any_complex(std::span<PyObject* const> arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](PyObject* o) { return o && is_tensor(o) && is_complex(tensor_of(o).dtype()); });
}

void check_dtype(const char* function, OutRule rule, DType result, DType out, std::span<PyObject* const> arguments) {
  switch (rule) {
    case OutRule::Cast:
      return check_cast(function, result, out, operators::record_of(function).out.message);
    case OutRule::Boolean:
      if (out != DType::Bool) throw RuntimeError("{} does not support non-boolean outputs. (out is {})", function, torch_name(out));
      return;
    case OutRule::Mask:
      if (out != DType::Bool && out != DType::U8)
        throw RuntimeError("{0} only supports bool tensor for result, got: {1}", function, torch_name(out));
      return;
    case OutRule::Floating:
      if (!is_inexact(out)) fail_dtype(function, result, out);
      return;
    case OutRule::Same:
      // The magnitude of complex numbers is converted, too.
      if (!is_complex(result) && any_complex(arguments)) return check_cast(function, result, out, nullptr);
      if (result != out) fail_dtype(function, result, out);
      return;
    case OutRule::Own:
    case OutRule::Made:
    case OutRule::Range:
      return;  // follow_out has seen to it
  }
}

void warn(const std::string& text) { check(PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1)); }

// The shape of the result; the memory stays, as far as it reaches.
void resize(const char* function, OutRule rule, const Tensor& out, const Tensor& result) {
  const Dims& shape = result.sizes();
  if (out.sizes() == shape) return;
  if (rule == OutRule::Range && std::string_view(function) != "linspace" && std::string_view(function) != "logspace" && out.numel() > 0)
    warn(fmt::format(
        "The number of elements in the out tensor of shape {} is {} which does not match the computed number of elements {}. Note "
        "that this may occur as a result of rounding error. The out tensor will be resized to a tensor of shape ({},).",
        out.sizes().str(), out.numel(), product(shape), product(shape)));
  else if (rule != OutRule::Made && rule != OutRule::Range && out.numel() > 0)
    warn(
        fmt::format("An output with one or more elements was resized since it had shape {}, which does not match the required output shape "
                    "{}. This behavior is deprecated, and in a future PyTorch release outputs will not be resized unless they have zero "
                    "elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
                    out.sizes().str(), shape.str()));
  autograd::before_write(out);
  ops::bump_version(out);  // backward of whoever has saved it would meet another shape
  TensorImpl& t = *out.impl();
  ops::grow_storage(out, t.offset + product(shape));
  t.set_geometry(shape, ops::is_dense(shape, result.strides()) ? result.strides() : contiguous_strides(shape), t.offset);
}

}  // namespace

void follow_out(const char* function, OutRule rule, const Tensor& out, PyObject** dtype, PyObject** device) {
  const bool made = rule == OutRule::Made || rule == OutRule::Range;
  if (dtype && *dtype != Py_None) {
    DType given{};
    if (dtype_from(*dtype, given) && given != out.dtype())
      throw made
          ? RuntimeError("dtype {} does not match dtype of out parameter ({})", torch_name(given), torch_name(out.dtype()))
          : RuntimeError("Expected out tensor to have dtype {}, but got {} instead ({})", c_type(given), c_type(out.dtype()), function);
  } else if (dtype && (made || rule == OutRule::Own || (rule == OutRule::Floating && is_inexact(out.dtype())))) {
    *dtype = dtype_object(out.dtype());
    Py_DECREF(*dtype);  // the interned objects live as long as the module
  }
  if (!made || !device) return;
  if (*device != Py_None) {
    Device given;
    if (device_from(*device, given) && given.type != out.device().type)
      throw RuntimeError("device {} does not match device of out parameter ({})", given.str(), out.device().str());
  }
  static std::array<PyObject*, 64> known{};  // one reference each, for good
  const auto slot = static_cast<size_t>(out.device().type) * 8 + static_cast<size_t>(out.device().index & 7);
  PyObject*& object = known[slot % known.size()];
  if (Device d; !object || !device_from(object, d) || !(d == out.device())) object = device_object(out.device());
  *device = object;
}

void write_out(const char* function, OutRule rule, const Tensor& out, const Tensor& result, Sharing sharing,
               std::span<PyObject* const> arguments) {
  if (out.is(result)) return;
  if (grad_enabled() && (out.requires_grad() || result.requires_grad()))
    throw RuntimeError(
        "{}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
        "requires grad.",
        function);
  const NoGrad off;
  check_dtype(function, rule, result.dtype(), out.dtype(), arguments);
  if (out.device().type != result.device().type && !(result.dim() == 0 && result.device().is_cpu()))
    throw RuntimeError("Expected all tensors to be on the same device, but found at least two devices, {} and {}! ({}: out is on {})",
                       result.device().str(), out.device().str(), function, out.device().str());
  Tensor target = out;
  if (rule == OutRule::Range && out.numel() == result.numel()) {
    target.copy_(result.reshape(out.sizes()));
    return;
  }
  resize(function, rule, out, result);
  check_sharing(function, sharing, out, arguments);
  target.copy_(result.impl()->storage.get() == out.impl()->storage.get() ? result.clone() : result);
}

// The gradients of other operands, too, may need the tensor as it was before.
Tensor to_be_read(const Tensor& self, bool other_requires_grad) {
  return grad_enabled() && (other_requires_grad || self.requires_grad()) ? self.clone() : self;
}

nb::object copy_to_be_read(PyObject* self, std::span<PyObject* const> others) {
  if (!is_tensor(self)) return {};
  const bool other_requires_grad =
      std::any_of(others.begin(), others.end(), [](PyObject* o) { return o && is_tensor(o) && tensor_of(o).requires_grad(); });
  const Tensor copy = to_be_read(tensor_of(self), other_requires_grad);
  return copy.is(tensor_of(self)) ? nb::object() : nb::steal(wrap(copy));
}

PyObject* into_self(PyObject* self, nb::object result) {
  const Tensor &t = tensor_or_throw(self, "input"), &r = tensor_of(result.ptr());
  if (category_of(r.dtype()) > category_of(t.dtype()))
    throw RuntimeError("result type {} can't be cast to the desired output type {}", ops::torch_name(r.dtype()),
                       ops::torch_name(t.dtype()));
  if (!(r.sizes() == t.sizes()))
    throw RuntimeError("output with shape {} doesn't match the broadcast shape {}", t.sizes().str(), r.sizes().str());
  Tensor(t).copy_(r);
  return Py_NewRef(self);
}

}  // namespace naru::py
