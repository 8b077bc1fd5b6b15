// Shared by the files of the fake cuSOLVER (cusolver.cpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "cuda_library.h"

namespace cusolver {

enum {
  kNotInitialized = 1,
  kAllocFailed = 2,
  kInvalidValue = 3,
  kExecutionFailed = 6,
  kInternalError = 7,
  kNotSupported = 9,
  kInvalidWorkspace = 31
};
enum { kR32 = 0, kR64 = 1, kC32 = 4, kC64 = 5 };
constexpr size_t kHostBytes = 24;

struct Handle {
  void *context, *stream;
};
struct Params {};

using C = std::complex<double>;

inline size_t item(int type) { return type == kR32 ? 4 : type == kR64 || type == kC32 ? 8 : 16; }
inline bool known(int type) { return type == kR32 || type == kR64 || type == kC32 || type == kC64; }

// A column-major matrix of any element type.
struct Matrix {
  char* data;
  int64_t ld;
  int type;

  C get(int64_t r, int64_t c) const {
    const char* const p = data + static_cast<size_t>(c * ld + r) * item(type);
    switch (type) {
      case kR32:
        return *reinterpret_cast<const float*>(p);
      case kR64:
        return *reinterpret_cast<const double*>(p);
      case kC32:
        return {reinterpret_cast<const float*>(p)[0], reinterpret_cast<const float*>(p)[1]};
      default:
        return *reinterpret_cast<const C*>(p);
    }
  }
  void set(int64_t r, int64_t c, C v) const {
    char* const p = data + static_cast<size_t>(c * ld + r) * item(type);
    switch (type) {
      case kR32:
        *reinterpret_cast<float*>(p) = static_cast<float>(v.real());
        break;
      case kR64:
        *reinterpret_cast<double*>(p) = v.real();
        break;
      case kC32:
        reinterpret_cast<float*>(p)[0] = static_cast<float>(v.real()), reinterpret_cast<float*>(p)[1] = static_cast<float>(v.imag());
        break;
      default:
        *reinterpret_cast<C*>(p) = v;
    }
  }
};
inline size_t bytes(int64_t rows, int64_t cols, int64_t ld, int type) { return static_cast<size_t>((cols - 1) * ld + rows) * item(type); }

// Checks common to all calls except size queries; returns 0 if all hold.
inline int trouble(const char* name, const Handle* h, const Params* p) {
  if (const int code = called(name)) return code;
  if (!h || !p) return kNotInitialized;
  if (h->context != context()) return kNotInitialized;
  if (!h->stream) return kInternalError;  // naru never uses stream 0
  return capturing(h->context) ? kInternalError : 0;
}
inline bool has_room(const void* device, size_t bytes, size_t wanted, const void* host, size_t host_bytes) {
  return device && aligned(device, 16) && bytes >= wanted && host && host_bytes >= kHostBytes;
}
inline size_t wanted(int64_t m, int64_t n, int type) { return static_cast<size_t>(m + n) * item(type) + 64; }

inline int put_info(void* c, int* info, int value) {
  if (char* const there = host(c, info, sizeof value)) memcpy(there, &value, sizeof value);
  return value;
}
inline int given(int code) { return code == 0 ? 0 : kExecutionFailed; }

// A matrix in device memory, by its host address; null if it is not in that memory.
inline Matrix there(void* context, const void* p, int64_t rows, int64_t cols, int64_t ld, int type) {
  return {host(context, p, bytes(rows, cols, ld, type)), ld, type};
}

}  // namespace cusolver
