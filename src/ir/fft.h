// The instruction of Fourier transforms (see ir/instruction.h).
#pragma once

#include <cstdint>

#include "ir/operand.h"
#include "naru/dims.h"

namespace naru::ir {

// out[k] = scale * the sum over j < n of in[j] * exp(-2 pi i j k / n) (plus i where `inverse`), for each position of `shape`: one-dimensional transforms,
// each by itself.
//   Complex      n complex numbers to n
//   RealToHalf   n real numbers to the first n / 2 + 1; the others are their conjugates
//   HalfToReal   n / 2 + 1 complex numbers, the first of n whose others are their conjugates, to n real ones. The first's imaginary part, and, where n is
//                even, the last's, count as 0
// Strides count real numbers; the two parts of a complex one lie side by side.
struct Fft {
  enum class Kind : uint8_t { Complex, RealToHalf, HalfToReal };
  struct Side {
    void* data = nullptr;
    Dims strides;      // over `shape`
    int64_t step = 1;  // along the transform
  };
  Kind kind = Kind::Complex;
  bool inverse = false;
  DType dtype = DType::F32;  // of the parts: F32 or F64
  int64_t n = 1;
  double scale = 1;
  Dims shape;
  Side in, out;

  bool complex_in() const { return kind != Kind::RealToHalf; }
  bool complex_out() const { return kind != Kind::HalfToReal; }
  int64_t given() const { return kind == Kind::HalfToReal ? n / 2 + 1 : n; }
  int64_t made() const { return kind == Kind::RealToHalf ? n / 2 + 1 : n; }

  static constexpr bool kHostOnly = true;
  static constexpr const char* kFamily = "fourier";
  static constexpr const char* kNames[] = {"fft", "rfft", "irfft"};
  const char* name() const { return kNames[static_cast<int>(kind)]; }
  template <class F>
  void each_operand(F&& f) {
    const auto side = [&](Side& s, const char* what, bool written, int64_t length, bool complex) {
      Dims sizes = shape, strides = s.strides;
      sizes.push_back(length), strides.push_back(s.step);
      if (complex) sizes.push_back(2), strides.push_back(1);
      if (s.data) f(s.data, OperandUse{what, written, dtype, sizes, strides});
    };
    side(in, "input of a Fourier transform", false, given(), complex_in());
    side(out, "result of a Fourier transform", true, made(), complex_out());
  }
};

}  // namespace naru::ir
