/* cuSOLVER for tests, over the driver beside this (cuda.cpp): factors by the textbook, in complex float64 rounded at the end, on that driver's memory when
   the stream gets there. As strict as the library is: handles of one context and, but for sizes, of a stream; types that go together, leading dimensions,
   memory to work in on both sides; nothing of the device's memory is looked at within a call, `info` the device writes. Nothing is done in captures. */
#include "cusolver.h"

using namespace cusolver;

namespace {

int cholesky(const Matrix& a, int64_t n, bool upper) {
  const auto at = [&](int64_t r, int64_t c) { return upper ? std::conj(a.get(c, r)) : a.get(r, c); };
  const auto put = [&](int64_t r, int64_t c, C v) { upper ? a.set(c, r, std::conj(v)) : a.set(r, c, v); };
  for (int64_t c = 0; c < n; ++c) {
    double d = at(c, c).real();
    for (int64_t k = 0; k < c; ++k) d -= std::norm(at(c, k));
    if (!(d > 0)) return static_cast<int>(c) + 1;
    put(c, c, std::sqrt(d));
    for (int64_t r = c + 1; r < n; ++r) {
      C sum = at(r, c);
      for (int64_t k = 0; k < c; ++k) sum -= at(r, k) * std::conj(at(c, k));
      put(r, c, sum / at(c, c).real());
    }
    // The other triangle is unspecified afterwards.
    for (int64_t r = c + 1; r < n; ++r) upper ? a.set(r, c, 77) : a.set(c, r, 77);
  }
  return 0;
}

int lu(const Matrix& a, int64_t m, int64_t n, long* pivots) {
  int info = 0;
  for (int64_t c = 0; c < std::min(m, n); ++c) {
    int64_t best = c;
    const auto size = [&](int64_t r) { return std::abs(a.get(r, c).real()) + std::abs(a.get(r, c).imag()); };
    for (int64_t r = c + 1; r < m; ++r)
      if (size(r) > size(best)) best = r;
    pivots[c] = best + 1;
    for (int64_t k = 0; k < n && best != c; ++k) {
      const C x = a.get(c, k);
      a.set(c, k, a.get(best, k)), a.set(best, k, x);
    }
    if (a.get(c, c) == 0.0) {
      if (info == 0) info = static_cast<int>(c) + 1;
      continue;
    }
    for (int64_t r = c + 1; r < m; ++r) {
      const C factor = a.get(r, c) / a.get(c, c);
      a.set(r, c, factor);
      for (int64_t k = c + 1; k < n; ++k) a.set(r, k, a.get(r, k) - factor * a.get(c, k));
    }
  }
  return info;
}

// b = T^-1 b for the triangular matrix at(r, c).
template <class At>
void solve(const Matrix& b, int64_t n, int64_t columns, bool lower, bool ones, At at) {
  for (int64_t c = 0; c < columns; ++c)
    for (int64_t i = 0; i < n; ++i) {
      const int64_t r = lower ? i : n - 1 - i;
      C sum = b.get(r, c);
      for (int64_t k = lower ? 0 : r + 1; k < (lower ? r : n); ++k) sum -= at(r, k) * b.get(k, c);
      b.set(r, c, ones ? sum : sum / at(r, r));
    }
}

void lu_solve(const Matrix& a, const long* pivots, const Matrix& b, int64_t n, int64_t columns, int way) {
  const auto exchange = [&](int64_t i) {
    if (pivots[i] < 1 || pivots[i] > n) abort();
    for (int64_t c = 0; c < columns; ++c) {
      const C x = b.get(i, c);
      b.set(i, c, b.get(pivots[i] - 1, c)), b.set(pivots[i] - 1, c, x);
    }
  };
  const auto plain = [&](int64_t r, int64_t c) { return a.get(r, c); };
  const auto turned = [&](int64_t r, int64_t c) { return way == 2 ? std::conj(a.get(c, r)) : a.get(c, r); };
  if (way == 0) {
    for (int64_t i = 0; i < n; ++i) exchange(i);
    solve(b, n, columns, true, true, plain), solve(b, n, columns, false, false, plain);
  } else {
    solve(b, n, columns, true, false, turned), solve(b, n, columns, false, true, turned);
    for (int64_t i = n; i-- > 0;) exchange(i);
  }
}

// The array of pointers is in device memory too, and is read when the stream reaches the work.
int cholesky_of_all(const char* name, Handle* h, int triangle, int n, void** matrices, int lda, int* info, int batch, int type) {
  const static Params none;
  if (const int code = trouble(name, h, &none)) return code;
  if (triangle < 0 || triangle > 1 || n < 1 || lda < n || batch < 1 || !matrices || !info || !aligned(matrices, 8)) return kInvalidValue;
  void* const c = h->context;
  return given(give(h->stream, [=] {
    const auto count = static_cast<size_t>(batch);
    char *const list = host(c, matrices, count * 8), *const numbers = host(c, info, count * 4);
    for (size_t i = 0; list && numbers && i < count; ++i) {
      const Matrix a = there(c, reinterpret_cast<void**>(list)[i], n, n, lda, type);
      if (a.data) reinterpret_cast<int*>(numbers)[i] = cholesky(a, n, triangle == 1);
    }
  }));
}

}  // namespace

EXPORT int cusolverGetVersion(int* version) {
  *version = 11701;
  return 0;
}
EXPORT int cusolverDnCreate(Handle** h) {
  if (const int code = called("cusolverDnCreate")) return code;
  if (!context()) return kNotInitialized;
  *h = new Handle{context(), nullptr};
  return 0;
}
EXPORT int cusolverDnDestroy(Handle* h) {
  if (const int code = called("cusolverDnDestroy")) return code;
  if (h->context != context()) return kNotInitialized;
  delete h;
  return 0;
}
EXPORT int cusolverDnSetStream(Handle* h, void* stream) {
  if (const int code = called("cusolverDnSetStream")) return code;
  h->stream = stream;
  return 0;
}
EXPORT int cusolverDnCreateParams(Params** p) {
  *p = new Params;
  return 0;
}
EXPORT int cusolverDnDestroyParams(Params* p) {
  delete p;
  return 0;
}

EXPORT int cusolverDnXpotrf_bufferSize(Handle* h, Params* p, int triangle, int64_t n, int type, const void*, int64_t lda, int compute,
                                       size_t* device, size_t* host_bytes) {
  if (const int code = called("cusolverDnXpotrf_bufferSize")) return code;
  if (!h || !p || h->context != context()) return kNotInitialized;
  if (triangle < 0 || triangle > 1 || n < 1 || lda < n || !known(type) || compute != type) return kInvalidValue;
  *device = wanted(n, n, type), *host_bytes = kHostBytes;
  return 0;
}
EXPORT int cusolverDnXpotrf(Handle* h, Params* p, int triangle, int64_t n, int type, void* a, int64_t lda, int compute, void* device,
                            size_t device_bytes, void* host_memory, size_t host_bytes, int* info) {
  if (const int code = trouble("cusolverDnXpotrf", h, p)) return code;
  if (triangle < 0 || triangle > 1 || n < 1 || lda < n || !known(type) || compute != type || !a || !info) return kInvalidValue;
  if (!has_room(device, device_bytes, wanted(n, n, type), host_memory, host_bytes)) return kInvalidWorkspace;
  void* const c = h->context;
  return given(give_with_workspace(h->stream, c, device, wanted(n, n, type), [=](bool mine) {
    if (char* const there = host(c, a, bytes(n, n, lda, type)))
      put_info(c, info, mine ? cholesky({there, lda, type}, n, triangle == 1) : -99);
  }));
}
EXPORT int cusolverDnXpotrs(Handle* h, Params* p, int triangle, int64_t n, int64_t columns, int type, const void* a, int64_t lda,
                            int type_b, void* b, int64_t ldb, int* info) {
  if (const int code = trouble("cusolverDnXpotrs", h, p)) return code;
  if (triangle < 0 || triangle > 1 || n < 1 || columns < 1 || lda < n || ldb < n || !known(type) || type_b != type || !a || !b || !info)
    return kInvalidValue;
  void* const c = h->context;
  return given(give(h->stream, [=] {
    char *const there = host(c, a, bytes(n, n, lda, type)), *const right = host(c, b, bytes(n, columns, ldb, type));
    if (!there || !right) return;
    const Matrix m{there, lda, type}, x{right, ldb, type};
    const bool upper = triangle == 1;
    const auto plain = [&](int64_t r, int64_t col) { return m.get(r, col); };
    const auto turned = [&](int64_t r, int64_t col) { return std::conj(m.get(col, r)); };
    upper ? solve(x, n, columns, true, false, turned) : solve(x, n, columns, true, false, plain);
    upper ? solve(x, n, columns, false, false, plain) : solve(x, n, columns, false, false, turned);
    put_info(c, info, 0);
  }));
}

EXPORT int cusolverDnXgetrf_bufferSize(Handle* h, Params* p, int64_t m, int64_t n, int type, const void*, int64_t lda, int compute,
                                       size_t* device, size_t* host_bytes) {
  if (const int code = called("cusolverDnXgetrf_bufferSize")) return code;
  if (!h || !p || h->context != context()) return kNotInitialized;
  if (m < 1 || n < 1 || lda < m || !known(type) || compute != type) return kInvalidValue;
  *device = wanted(m, n, type), *host_bytes = kHostBytes;
  return 0;
}
EXPORT int cusolverDnXgetrf(Handle* h, Params* p, int64_t m, int64_t n, int type, void* a, int64_t lda, long* pivots, int compute,
                            void* device, size_t device_bytes, void* host_memory, size_t host_bytes, int* info) {
  if (const int code = trouble("cusolverDnXgetrf", h, p)) return code;
  if (m < 1 || n < 1 || lda < m || !known(type) || compute != type || !a || !pivots || !info || !aligned(pivots, 8)) return kInvalidValue;
  if (!has_room(device, device_bytes, wanted(m, n, type), host_memory, host_bytes)) return kInvalidWorkspace;
  void* const c = h->context;
  return given(give_with_workspace(h->stream, c, device, wanted(m, n, type), [=](bool mine) {
    char *const there = host(c, a, bytes(m, n, lda, type)), *const exchanges = host(c, pivots, static_cast<size_t>(std::min(m, n)) * 8);
    if (there && exchanges) put_info(c, info, mine ? lu({there, lda, type}, m, n, reinterpret_cast<long*>(exchanges)) : -99);
  }));
}
EXPORT int cusolverDnXgetrs(Handle* h, Params* p, int way, int64_t n, int64_t columns, int type, const void* a, int64_t lda,
                            const long* pivots, int type_b, void* b, int64_t ldb, int* info) {
  if (const int code = trouble("cusolverDnXgetrs", h, p)) return code;
  if (way < 0 || way > 2 || n < 1 || columns < 1 || lda < n || ldb < n || !known(type) || type_b != type || !a || !b || !pivots || !info)
    return kInvalidValue;
  void* const c = h->context;
  return given(give(h->stream, [=] {
    char *const there = host(c, a, bytes(n, n, lda, type)), *const right = host(c, b, bytes(n, columns, ldb, type)),
                *const exchanges = host(c, pivots, static_cast<size_t>(n) * 8);
    if (!there || !right || !exchanges) return;
    lu_solve({there, lda, type}, reinterpret_cast<const long*>(exchanges), {right, ldb, type}, n, columns, way);
    put_info(c, info, 0);
  }));
}

#define POTRF_BATCHED(letter, number)                                                                                           \
  EXPORT int cusolverDn##letter##potrfBatched(Handle* h, int triangle, int n, void** matrices, int lda, int* info, int batch) { \
    return cholesky_of_all("cusolverDn" #letter "potrfBatched", h, triangle, n, matrices, lda, info, batch, number);            \
  }
POTRF_BATCHED(S, kR32)
POTRF_BATCHED(D, kR64)
POTRF_BATCHED(C, kC32)
POTRF_BATCHED(Z, kC64)
