// Python's operators on tensors, as C slots: the fast path of small work.
#include "autograd/graph/batch.h"
#include "object/out.h"
#include "object/overlap.h"
#include "object/overrides.h"
#include "object/tensor_object.h"
#include "ops/elementwise/elementwise.h"

namespace naru::py {
namespace {

// An operand of an operator: a tensor or a number. False for anything else, so that Python asks the other side.
struct Side {
  std::optional<Operand> operand;
  Tensor held;  // of an array
  int64_t work = 0;
  // Before the GIL is let go: another thread may assign the object's data then.
  void hold() {
    if (operand->is_tensor() && !held.defined()) held = operand->tensor(), operand.emplace(held);
  }
  bool load(PyObject* o) {
    if (is_tensor(o)) {
      const Tensor& t = tensor_of(o);
      work = t.numel();
      operand.emplace(t);
      return true;
    }
    Scalar s;
    if (scalar_from(o, s, false)) {
      operand.emplace(s);
      return true;
    }
    if (!is_array(o)) return false;
    held = from_array(o);
    operand.emplace(held);
    return true;
  }
};

// The name of the method that `__torch_function__` is told of.
template <size_t N>
struct Name {
  char text[N];
  constexpr Name(const char (&s)[N]) { std::copy_n(s, N, text); }  // NOLINT: a literal is one
};

template <Name name>
PyObject* refused(std::initializer_list<PyObject*> args) {
  PyObject* const result = dispatch_torch_function(name.text, args, true);
  return result ? result : Py_NewRef(Py_NotImplemented);
}

// commutes: a number in front goes behind, as Tensor.__radd__ has it.
template <Tensor (*F)(const Operand&, const Operand&), Name name, bool commutes = false>
PyObject* binary(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    if (overrides_watched) [[unlikely]]
      if (PyObject* result = dispatch_torch_function(name.text, {a, b}, false)) return result;
    Side x, y;
    if (commutes && !is_tensor(a)) std::swap(a, b);
    if (!x.load(a) || !y.load(b)) return refused<name>({a, b});
    if (x.work + y.work < detail::kLongWork) return wrap(F(*x.operand, *y.operand));
    x.hold(), y.hold();
    Tensor result;
    {
      GilRelease scope;
      result = F(*x.operand, *y.operand);
    }
    return wrap(result);
  });
}

template <const Tensor& (Tensor::*F)(const Operand&) const, Name name>
PyObject* in_place(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    if (overrides_watched) [[unlikely]]
      if (PyObject* result = dispatch_torch_function(name.text, {a, b}, false)) return result;
    Side y;
    if (!is_tensor(a) || !y.load(b)) return refused<name>({a, b});
    if (y.operand->is_tensor()) check_sharing(name.text, Sharing::Same, tensor_of(a), y.operand->tensor());
    (tensor_of(a).*F)(*y.operand);
    return Py_NewRef(a);
  });
}

template <Tensor (*F)(const Operand&), Name name>
PyObject* unary(PyObject* a) {
  return guarded([&] {
    if (overrides_watched) [[unlikely]]
      if (PyObject* result = dispatch_torch_function(name.text, {a}, false)) return result;
    return wrap(F(Operand(tensor_of(a))));
  });
}

PyObject* matmul_slot(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    if (overrides_watched) [[unlikely]]
      if (PyObject* result = dispatch_torch_function("matmul", {a, b}, false)) return result;
    if (!is_tensor(a) || !is_tensor(b)) return refused<"matmul">({a, b});
    if (tensor_of(a).numel() + tensor_of(b).numel() < detail::kLongWork) return wrap(matmul(tensor_of(a), tensor_of(b)));
    const Tensor x = tensor_of(a), y = tensor_of(b);
    Tensor result;
    {
      GilRelease scope;
      result = matmul(x, y);
    }
    return wrap(result);
  });
}

PyObject* imatmul_slot(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    if (!is_tensor(a) || !is_tensor(b)) Py_RETURN_NOTIMPLEMENTED;
    tensor_of(a).copy_(matmul(to_be_read(tensor_of(a), tensor_of(b).requires_grad()), tensor_of(b)));
    return Py_NewRef(a);
  });
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) {
    PyErr_SetString(PyExc_TypeError, "pow() of tensors takes no modulus");
    return nullptr;
  }
  return binary<&naru::pow, "pow">(a, b);
}
PyObject* in_place_power(PyObject* a, PyObject* b, PyObject*) { return in_place<&Tensor::pow_, "pow_">(a, b); }

PyObject* positive(PyObject* a) {
  return guarded([&] {
    if (tensor_of(a).dtype() == DType::Bool) throw NotImplementedError("The `+` operator, on a bool tensor is not supported.");
    return Py_NewRef(a);
  });
}

PyObject* invert(PyObject* a) {
  return guarded([&] {
    const Tensor& t = tensor_of(a);
    if (is_inexact(t.dtype())) throw TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors");
    return wrap(bitwise_not(t));
  });
}

PyObject* compare(PyObject* a, PyObject* b, int op) {
  switch (op) {
    case Py_LT:
      return binary<&naru::lt, "lt">(a, b);
    case Py_LE:
      return binary<&naru::le, "le">(a, b);
    case Py_GT:
      return binary<&naru::gt, "gt">(a, b);
    case Py_GE:
      return binary<&naru::ge, "ge">(a, b);
    case Py_EQ:
      return binary<&naru::eq, "eq">(a, b);
    default:
      return binary<&naru::ne, "ne">(a, b);
  }
}

int truth(PyObject* a) {
  try {
    const Tensor& t = tensor_of(a);
    if (is_batched(t))
      throw RuntimeError(
          "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that yet, please "
          "file an issue at https://github.com/pytorch/pytorch/issues . (torch.where chooses between two results)");
    if (t.numel() == 0) throw RuntimeError("Boolean value of Tensor with no values is ambiguous");
    if (t.numel() > 1) throw RuntimeError("Boolean value of Tensor with more than one value is ambiguous");
    return item_of(t).to_bool();
  } catch (...) {
    set_python_error();
    return -1;
  }
}

// float(x), int(x) and the like.
void refuse_reading(const Tensor& t) {
  if (is_batched(t))
    throw RuntimeError(
        "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, please try to "
        "rewrite what you're doing with other operations. If error is occurring somewhere inside PyTorch internals, please file a bug "
        "report.");
}

Scalar single(PyObject* a) {
  const Tensor& t = tensor_of(a);
  refuse_reading(t);
  if (t.numel() != 1) throw ValueError("only one element tensors can be converted to Python scalars");
  return item_of(t);
}

PyObject* as_float(PyObject* a) {
  return guarded([&] { return PyFloat_FromDouble(single(a).to_double()); });
}
PyObject* as_int(PyObject* a) {
  return guarded([&] {
    const Scalar s = single(a);
    if (s.is_unsigned()) return PyLong_FromUnsignedLongLong(s.to_bits());
    return s.is_float() || s.is_complex() ? PyLong_FromDouble(s.to_double()) : PyLong_FromLongLong(s.to_int());
  });
}
PyObject* as_index(PyObject* a) {
  return guarded([&] {
    const Tensor& t = tensor_of(a);
    refuse_reading(t);
    if (t.numel() != 1 || is_inexact(t.dtype())) throw TypeError("only integer tensors of a single element can be converted to an index");
    return PyLong_FromLongLong(item_of(t).to_int());
  });
}

}  // namespace

void add_number_slots(std::vector<PyType_Slot>& slots) {
  const auto add = [&](int id, auto* f) { slots.push_back({id, reinterpret_cast<void*>(f)}); };
  add(Py_nb_add, &binary<&naru::add, "add", true>);
  add(Py_nb_subtract, &binary<&naru::sub, "sub">);
  add(Py_nb_multiply, &binary<&naru::mul, "mul", true>);
  add(Py_nb_true_divide, &binary<&naru::div, "div">);
  add(Py_nb_floor_divide, &binary<&naru::floor_divide, "__floordiv__">);
  add(Py_nb_remainder, &binary<&naru::remainder, "remainder">);
  add(Py_nb_and, &binary<&naru::bitwise_and, "__and__">);
  add(Py_nb_or, &binary<&naru::bitwise_or, "__or__">);
  add(Py_nb_xor, &binary<&naru::bitwise_xor, "__xor__">);
  add(Py_nb_lshift, &binary<&naru::bitwise_left_shift, "__lshift__">);
  add(Py_nb_rshift, &binary<&naru::bitwise_right_shift, "__rshift__">);
  add(Py_nb_inplace_add, &in_place<&Tensor::add_, "add_">);
  add(Py_nb_inplace_subtract, &in_place<&Tensor::sub_, "sub_">);
  add(Py_nb_inplace_multiply, &in_place<&Tensor::mul_, "mul_">);
  add(Py_nb_inplace_true_divide, &in_place<&Tensor::div_, "div_">);
  add(Py_nb_inplace_floor_divide, &in_place<&Tensor::floor_divide_, "floor_divide_">);
  add(Py_nb_inplace_remainder, &in_place<&Tensor::remainder_, "remainder_">);
  add(Py_nb_inplace_and, &in_place<&Tensor::bitwise_and_, "bitwise_and_">);
  add(Py_nb_inplace_or, &in_place<&Tensor::bitwise_or_, "bitwise_or_">);
  add(Py_nb_inplace_xor, &in_place<&Tensor::bitwise_xor_, "bitwise_xor_">);
  add(Py_nb_inplace_lshift, &in_place<&Tensor::bitwise_left_shift_, "bitwise_left_shift_">);
  add(Py_nb_inplace_rshift, &in_place<&Tensor::bitwise_right_shift_, "bitwise_right_shift_">);
  add(Py_nb_power, &power);
  add(Py_nb_inplace_power, &in_place_power);
  add(Py_nb_matrix_multiply, &matmul_slot);
  add(Py_nb_inplace_matrix_multiply, &imatmul_slot);
  add(Py_nb_negative, &unary<&naru::neg, "neg">);
  add(Py_nb_positive, &positive);
  add(Py_nb_absolute, &unary<&naru::abs, "abs">);
  add(Py_nb_invert, &invert);
  add(Py_nb_bool, &truth);
  add(Py_nb_float, &as_float);
  add(Py_nb_int, &as_int);
  add(Py_nb_index, &as_index);
  add(Py_tp_richcompare, &compare);
}

}  // namespace naru::py
