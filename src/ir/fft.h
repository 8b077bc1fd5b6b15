// The Fourier transform instruction (see ir/instruction.h).
#pragma once

#include <cstdint>

#include "ir/operand.h"
#include "naru/dims.h"

namespace naru::ir {

// One-dimensional transforms, one for each position of `shape`: out[k] = scale * sum over j < n of in[j] * exp(-2 pi i j k / n) (+2 pi i if
// `inverse`).
//   Complex      n complex numbers to n
//   RealToHalf   n real numbers to the first n / 2 + 1 outputs; the others are their conjugates
//   HalfToReal   n / 2 + 1 complex numbers to n real ones; the missing inputs are the conjugates of the given ones. The imaginary part of the
//                first, and, for even n, of the last, counts as 0
// Strides count real numbers; real and imaginary parts are interleaved.
struct Fft {
  enum class Kind : uint8_t { Complex, RealToHalf, HalfToReal };
  struct Side {
    void* data = nullptr;
    Dims strides;      // over `shape`
    int64_t step = 1;  // along the transform
  };
  Kind kind = Kind::Complex;
  bool inverse = false;
  DType dtype = DType::F32;  // of real and imaginary parts: F32 or F64
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
