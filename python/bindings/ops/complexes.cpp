// Complex tensors: components, conjugates, angles.
#include <complex>

#include "naru/ops/complex.h"

#include "object/tensor_object.h"

namespace naru::py {

void define_complex() {
  def(kFunction, "view_as_real", "input", "A complex tensor's memory as real numbers: (..., 2).",
      [](const Tensor& t) { return view_as_real(t); });
  def(kFunction, "view_as_complex", "input", "Pairs of real numbers (..., 2), side by side in memory, as complex numbers.",
      [](const Tensor& t) { return view_as_complex(t); });
  def(kFunction, "real", "input", "The real parts, a view; a real tensor itself.", [](const Tensor& t) { return real(t); });
  def(kFunction, "imag", "input", "The imaginary parts, a view. RuntimeError for a real tensor.", [](const Tensor& t) { return imag(t); });
  def(kFunction, "complex", "real, imag, *, out=None", "real + 1j * imag, of two tensors of one floating-point type.",
      [](const Tensor& re, const Tensor& im) { return complex(re, im); });
  def(kFunction, "polar", "abs, angle, *, out=None", "abs * (cos(angle) + 1j * sin(angle)), of two tensors of one floating-point type.",
      [](const Tensor& r, const Tensor& phi) { return polar(r, phi); });
  def(kBoth, "conj", "input", "The conjugate, a new tensor; a real tensor itself.", [](const Tensor& t) { return conj(t); });
  def(kBoth, "conj_physical", "input, *, out=None", "The conjugate, a new tensor; a real tensor itself.",
      [](const Tensor& t) { return conj(t); });
  def(kBoth, "conj_physical_", "input", "The conjugate, in place.", [](const Tensor& t) {
    conj_physical_(t);
    return Self();
  });
  for (const char* name : {"resolve_conj", "resolve_neg"})
    def(kBoth, name, "input", "The tensor itself: conjugates are never put off.", [](const Tensor&) { return Self(); });
  for (const char* name : {"is_conj", "is_neg"})
    def(kBoth, name, "input", "False: conjugates are never put off.", [](const Tensor&) { return false; });
  def(kBoth, "angle", "input, *, out=None", "The angle of each number in the plane, in radians; of real numbers 0 or pi.",
      [](const Tensor& t) { return angle(t); });
  def(kBoth, "sgn", "input, *, out=None", "input / abs(input), 0 where it is 0; of real numbers -1, 0 or 1.",
      [](const Tensor& t) { return sgn(t); });
  add_in_place("sgn");
  def(kMethod, "__complex__", "input", "The one element as a complex number.", [](const Tensor& t) -> PyObject* {
    if (t.numel() != 1) throw ValueError("only one element tensors can be converted to Python scalars");
    const std::complex<double> v = item_of(t).to<std::complex<double>>();
    return PyComplex_FromDoubles(v.real(), v.imag());
  });
  def(kBoth, "isreal", "input", "Whether each imaginary part is 0.", [](const Tensor& t) { return isreal(t); });
  def(kBoth, "vdot", "input, other, *, out=None", "The sum of the products of input's conjugates and other's elements.",
      [](const Tensor& a, const Tensor& b) { return vdot(a, b); });
}

}  // namespace naru::py
