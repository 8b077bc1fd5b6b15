/* The rest of the cuSOLVER for tests (cusolver.cpp): reflectors as LAPACK has them, singular values and eigenvalues by Jacobi's rotations. */
#include "cusolver.h"

using namespace cusolver;

namespace {

using Column = std::vector<C>;
using Columns = std::vector<Column>;

Columns columns_of(const Matrix& a, int64_t rows, int64_t cols) {
  Columns x(static_cast<size_t>(cols), Column(static_cast<size_t>(rows)));
  for (int64_t c = 0; c < cols; ++c)
    for (int64_t r = 0; r < rows; ++r) x[static_cast<size_t>(c)][static_cast<size_t>(r)] = a.get(r, c);
  return x;
}
C dot(const Column& a, const Column& b) {
  C sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += std::conj(a[i]) * b[i];
  return sum;
}
void put_real(const Matrix& a, int64_t i, double v) { a.set(i, 0, v); }
int real_of(int type) { return type == kC32 ? int{kR32} : type == kC64 ? int{kR64} : type; }

// x -= tau v (v^H x)
void reflect(const Column& v, C tau, Column& x) {
  const C factor = tau * dot(v, x);
  for (size_t i = 0; i < x.size(); ++i) x[i] -= factor * v[i];
}

void qr(const Matrix& a, int64_t m, int64_t n, const Matrix& taus) {
  for (int64_t k = 0; k < std::min(m, n); ++k) {
    const C alpha = a.get(k, k);
    double below = 0;
    for (int64_t r = k + 1; r < m; ++r) below += std::norm(a.get(r, k));
    if (below == 0 && alpha.imag() == 0) {
      taus.set(k, 0, 0);
      continue;
    }
    const double beta = -std::copysign(std::sqrt(std::norm(alpha) + below), alpha.real());
    const C tau((beta - alpha.real()) / beta, -alpha.imag() / beta);
    for (int64_t r = k + 1; r < m; ++r) a.set(r, k, a.get(r, k) / (alpha - beta));
    a.set(k, k, beta), taus.set(k, 0, tau);
    for (int64_t c = k + 1; c < n; ++c) {
      C sum = a.get(k, c);
      for (int64_t r = k + 1; r < m; ++r) sum += std::conj(a.get(r, k)) * a.get(r, c);
      sum *= std::conj(tau);
      a.set(k, c, a.get(k, c) - sum);
      for (int64_t r = k + 1; r < m; ++r) a.set(r, c, a.get(r, c) - sum * a.get(r, k));
    }
  }
}

// Q x (or Q^H x) for each column of x.
void apply(const Matrix& a, int64_t m, int64_t k, const Matrix& taus, bool adjoint, Columns& x) {
  for (int64_t step = 0; step < k; ++step) {
    const int64_t i = adjoint ? step : k - 1 - step;
    Column v(static_cast<size_t>(m));
    v[static_cast<size_t>(i)] = 1;
    for (int64_t r = i + 1; r < m; ++r) v[static_cast<size_t>(r)] = a.get(r, i);
    const C tau = taus.get(i, 0);
    for (Column& each : x) reflect(v, adjoint ? std::conj(tau) : tau, each);
  }
}
void put(const Matrix& a, const Columns& x) {
  for (size_t c = 0; c < x.size(); ++c)
    for (size_t r = 0; r < x[c].size(); ++r) a.set(static_cast<int64_t>(r), static_cast<int64_t>(c), x[c][r]);
}

// Rotates columns p and q of all matrices so that a hermitian matrix with the elements (p, p), (q, q) and (p, q) gets 0 at (p, q).
void rotate(double pp, double qq, C pq, size_t p, size_t q, std::initializer_list<Columns*> all) {
  const double angle = 0.5 * std::atan2(2 * std::abs(pq), pp - qq), c = std::cos(angle), s = std::sin(angle);
  const C phase = std::conj(pq) / std::abs(pq);
  for (Columns* x : all)
    for (size_t i = 0; i < (*x)[p].size(); ++i) {
      const C left = (*x)[p][i], right = (*x)[q][i] * phase;
      (*x)[p][i] = c * left + s * right, (*x)[q][i] = c * right - s * left;
    }
}

Columns identity(size_t n) {
  Columns x(n, Column(n));
  for (size_t i = 0; i < n; ++i) x[i][i] = 1;
  return x;
}

std::vector<size_t> order_of(const std::vector<double>& values, bool down) {
  std::vector<size_t> order(values.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) { return down ? values[i] > values[j] : values[i] < values[j]; });
  return order;
}

// Appends columns to the existing ones so that all are orthonormal.
void complete(Columns& x, size_t wanted, size_t rows) {
  for (size_t unit = 0; x.size() < wanted && unit < rows; ++unit) {
    Column e(rows);
    e[unit] = 1;
    for (int twice = 0; twice < 2; ++twice)
      for (const Column& other : x) {
        const C along = dot(other, e);
        for (size_t i = 0; i < rows; ++i) e[i] -= along * other[i];
      }
    const double norm = std::sqrt(dot(e, e).real());
    if (norm < 1e-6) continue;
    for (C& v : e) v /= norm;
    x.push_back(e);
  }
}

constexpr int kSweeps = 60;

void svd(const Matrix& a, int64_t m, int64_t n, const Matrix& s, const Matrix* u, const Matrix* vt, bool all) {
  Columns x = columns_of(a, m, n), v = identity(static_cast<size_t>(n));
  const double zero = 1e-15;
  for (int sweep = 0, turned = 1; sweep < kSweeps && turned; ++sweep) {
    turned = 0;
    for (size_t p = 0; p < x.size(); ++p)
      for (size_t q = p + 1; q < x.size(); ++q) {
        const double pp = dot(x[p], x[p]).real(), qq = dot(x[q], x[q]).real();
        const C pq = dot(x[p], x[q]);
        if (std::abs(pq) <= zero * std::sqrt(pp * qq) || std::abs(pq) == 0) continue;
        rotate(pp, qq, pq, p, q, {&x, &v}), turned = 1;
      }
  }
  std::vector<double> values;
  for (const Column& c : x) values.push_back(std::sqrt(dot(c, c).real()));
  const std::vector<size_t> order = order_of(values, true);
  Columns left;
  for (size_t i = 0; i < order.size(); ++i) {
    const double value = values[order[i]];
    put_real(s, static_cast<int64_t>(i), value);
    if (left.size() < i || value <= 1e-14 * values[order[0]] || value == 0) continue;
    left.push_back(x[order[i]]);
    for (C& e : left.back()) e /= value;
  }
  if (!u) return;
  complete(left, static_cast<size_t>(all ? m : n), static_cast<size_t>(m));
  put(*u, left);
  for (size_t i = 0; i < order.size(); ++i)
    for (size_t k = 0; k < order.size(); ++k) vt->set(static_cast<int64_t>(i), static_cast<int64_t>(k), std::conj(v[order[i]][k]));
}

void eigh(const Matrix& a, int64_t n, const Matrix& w, bool vectors, bool upper) {
  const auto size = static_cast<size_t>(n);
  Columns x(size, Column(size)), v = identity(size);
  for (int64_t c = 0; c < n; ++c)
    for (int64_t r = 0; r < n; ++r) {
      const C e = (upper ? r <= c : r >= c) ? a.get(r, c) : std::conj(a.get(c, r));
      x[static_cast<size_t>(c)][static_cast<size_t>(r)] = r == c ? C(e.real()) : e;
    }
  double total = 0;
  for (const Column& c : x) total += dot(c, c).real();
  for (int sweep = 0; sweep < kSweeps; ++sweep)
    for (size_t p = 0; p < size; ++p)
      for (size_t q = p + 1; q < size; ++q) {
        const C pq = x[q][p];
        if (std::norm(pq) <= 1e-34 * total) continue;
        const double pp = x[p][p].real(), qq = x[q][q].real();
        rotate(pp, qq, pq, p, q, {&x, &v});
        // Then the rows.
        Columns turned(size, Column(size));
        for (size_t c = 0; c < size; ++c)
          for (size_t r = 0; r < size; ++r) turned[r][c] = std::conj(x[c][r]);
        rotate(pp, qq, pq, p, q, {&turned});
        for (size_t c = 0; c < size; ++c)
          for (size_t r = 0; r < size; ++r) x[c][r] = std::conj(turned[r][c]);
      }
  std::vector<double> values;
  for (size_t i = 0; i < size; ++i) values.push_back(x[i][i].real());
  const std::vector<size_t> order = order_of(values, false);
  for (size_t i = 0; i < size; ++i) {
    put_real(w, static_cast<int64_t>(i), values[order[i]]);
    for (size_t r = 0; r < size; ++r)
      a.set(static_cast<int64_t>(r), static_cast<int64_t>(i), vectors ? v[order[i]][r] : C(77));  // otherwise unspecified
  }
}

// A size query of the typed functions: the workspace is counted in elements.
int sized(const char* name, Handle* h, bool fits, int64_t numbers, int* work) {
  if (const int code = called(name)) return code;
  if (!h || h->context != context()) return kNotInitialized;
  if (!fits || !work) return kInvalidValue;
  *work = static_cast<int>(numbers) + 8;
  return 0;
}
template <class Work>
int typed(const char* name, Handle* h, bool fits, int type, int64_t numbers, void* work, int size, int* info, Work&& compute) {
  static const Params none;
  if (const int code = trouble(name, h, &none)) return code;
  if (!fits || !info || !work || !aligned(work, 16) || size < numbers + 8) return kInvalidValue;
  void* const c = h->context;
  return given(give_with_workspace(h->stream, c, work, static_cast<size_t>(numbers + 8) * item(type), [=](bool mine) {
    if (mine) compute(c);
    put_info(c, info, mine ? 0 : -99);
  }));
}

int columns(const char* name, Handle* h, int m, int n, int k, void* a, int lda, const void* tau, void* work, int size, int* info,
            int type) {
  const bool fits = m >= n && n >= k && k >= 1 && lda >= m && a && tau;
  return typed(name, h, fits, type, n, work, size, info, [=](void* c) {
    const Matrix q = there(c, a, m, n, lda, type), taus = there(c, tau, k, 1, k, type);
    if (!q.data || !taus.data) return;
    Columns x = identity(static_cast<size_t>(m));
    x.resize(static_cast<size_t>(n));
    apply(q, m, k, taus, false, x);
    put(q, x);
  });
}
int product(const char* name, Handle* h, int side, int way, int m, int n, int k, const void* a, int lda, const void* tau, void* c, int ldc,
            void* work, int size, int* info, int type) {
  const bool fits =
      side == 0 && (way == 0 || way == (type < kC32 ? 1 : 2)) && m >= k && k >= 1 && n >= 1 && lda >= m && ldc >= m && a && tau && c;
  return typed(name, h, fits, type, n, work, size, info, [=](void* where) {
    const Matrix q = there(where, a, m, k, lda, type), taus = there(where, tau, k, 1, k, type), x = there(where, c, m, n, ldc, type);
    if (!q.data || !taus.data || !x.data) return;
    Columns all = columns_of(x, m, n);
    apply(q, m, k, taus, way != 0, all);
    put(x, all);
  });
}

bool svd_fits(int u_job, int vt_job, int64_t m, int64_t n, int type, int64_t lda, int type_s, int type_u, int64_t ldu, int type_vt,
              int64_t ldvt, int compute) {
  const bool known_jobs = (u_job == 'N' || u_job == 'S' || u_job == 'A') && vt_job == u_job;
  return known_jobs && n >= 1 && m >= n && lda >= m && known(type) && type_s == real_of(type) && type_u == type && type_vt == type &&
         ldu >= m && ldvt >= n && compute == type;
}
bool eigh_fits(int vectors, int triangle, int64_t n, int type, int64_t lda, int type_w, int compute) {
  return (vectors == 0 || vectors == 1) && (triangle == 0 || triangle == 1) && n >= 1 && lda >= n && known(type) &&
         type_w == real_of(type) && compute == type;
}
int room_for(const char* name, Handle* h, Params* p, bool fits, size_t wanted, size_t* device, size_t* host_bytes) {
  if (const int code = called(name)) return code;
  if (!h || !p || h->context != context()) return kNotInitialized;
  if (!fits) return kInvalidValue;
  *device = wanted, *host_bytes = kHostBytes;
  return 0;
}
template <class Work>
int compute_in(const char* name, Handle* h, Params* p, bool fits, void* device, size_t device_bytes, size_t wanted, void* host_memory,
               size_t host_bytes, int* info, Work&& work) {
  if (const int code = trouble(name, h, p)) return code;
  if (!fits || !info) return kInvalidValue;
  if (!has_room(device, device_bytes, wanted, host_memory, host_bytes)) return kInvalidWorkspace;
  void* const c = h->context;
  return given(give_with_workspace(h->stream, c, device, wanted, [=](bool mine) {
    if (mine) work(c);
    put_info(c, info, mine ? 0 : -99);
  }));
}

}  // namespace

EXPORT int cusolverDnXgeqrf_bufferSize(Handle* h, Params* p, int64_t m, int64_t n, int type, const void*, int64_t lda, int type_tau,
                                       const void*, int compute, size_t* device, size_t* host_bytes) {
  const bool fits = m >= 1 && n >= 1 && lda >= m && known(type) && type_tau == type && compute == type;
  return room_for("cusolverDnXgeqrf_bufferSize", h, p, fits, wanted(m, n, type), device, host_bytes);
}
EXPORT int cusolverDnXgeqrf(Handle* h, Params* p, int64_t m, int64_t n, int type, void* a, int64_t lda, int type_tau, void* tau,
                            int compute, void* device, size_t device_bytes, void* host_memory, size_t host_bytes, int* info) {
  const bool fits = m >= 1 && n >= 1 && lda >= m && known(type) && type_tau == type && compute == type && a && tau;
  return compute_in("cusolverDnXgeqrf", h, p, fits, device, device_bytes, wanted(m, n, type), host_memory, host_bytes, info, [=](void* c) {
    const Matrix x = there(c, a, m, n, lda, type), taus = there(c, tau, std::min(m, n), 1, m, type);
    if (x.data && taus.data) qr(x, m, n, taus);
  });
}

EXPORT int cusolverDnXgesvd_bufferSize(Handle* h, Params* p, signed char u_job, signed char vt_job, int64_t m, int64_t n, int type,
                                       const void*, int64_t lda, int type_s, const void*, int type_u, const void*, int64_t ldu, int type_vt,
                                       const void*, int64_t ldvt, int compute, size_t* device, size_t* host_bytes) {
  const bool fits = svd_fits(u_job, vt_job, m, n, type, lda, type_s, type_u, ldu, type_vt, ldvt, compute);
  return room_for("cusolverDnXgesvd_bufferSize", h, p, fits, wanted(m, n, type), device, host_bytes);
}
EXPORT int cusolverDnXgesvd(Handle* h, Params* p, signed char u_job, signed char vt_job, int64_t m, int64_t n, int type, void* a,
                            int64_t lda, int type_s, void* s, int type_u, void* u, int64_t ldu, int type_vt, void* vt, int64_t ldvt,
                            int compute, void* device, size_t device_bytes, void* host_memory, size_t host_bytes, int* info) {
  const bool vectors = u_job != 'N';
  const bool fits =
      svd_fits(u_job, vt_job, m, n, type, lda, type_s, type_u, ldu, type_vt, ldvt, compute) && a && s && (!vectors || (u && vt));
  return compute_in("cusolverDnXgesvd", h, p, fits, device, device_bytes, wanted(m, n, type), host_memory, host_bytes, info, [=](void* c) {
    const Matrix x = there(c, a, m, n, lda, type), values = there(c, s, n, 1, n, type_s);
    if (!x.data || !values.data) return;
    if (!vectors) return svd(x, m, n, values, nullptr, nullptr, false);
    const Matrix left = there(c, u, m, u_job == 'A' ? m : n, ldu, type), right = there(c, vt, n, n, ldvt, type);
    if (left.data && right.data) svd(x, m, n, values, &left, &right, u_job == 'A');
  });
}

EXPORT int cusolverDnXsyevd_bufferSize(Handle* h, Params* p, int vectors, int triangle, int64_t n, int type, const void*, int64_t lda,
                                       int type_w, const void*, int compute, size_t* device, size_t* host_bytes) {
  return room_for("cusolverDnXsyevd_bufferSize", h, p, eigh_fits(vectors, triangle, n, type, lda, type_w, compute), wanted(n, n, type),
                  device, host_bytes);
}
EXPORT int cusolverDnXsyevd(Handle* h, Params* p, int vectors, int triangle, int64_t n, int type, void* a, int64_t lda, int type_w, void* w,
                            int compute, void* device, size_t device_bytes, void* host_memory, size_t host_bytes, int* info) {
  const bool fits = eigh_fits(vectors, triangle, n, type, lda, type_w, compute) && a && w;
  return compute_in("cusolverDnXsyevd", h, p, fits, device, device_bytes, wanted(n, n, type), host_memory, host_bytes, info, [=](void* c) {
    const Matrix x = there(c, a, n, n, lda, type), values = there(c, w, n, 1, n, type_w);
    if (x.data && values.data) eigh(x, n, values, vectors == 1, triangle == 1);
  });
}

#define TYPED(name, type)                                                                                                                \
  EXPORT int cusolverDn##name##gqr_bufferSize(Handle* h, int m, int n, int k, const void*, int lda, const void*, int* work) {            \
    return sized("cusolverDn" #name "gqr_bufferSize", h, m >= n && n >= k && k >= 1 && lda >= m, n, work);                               \
  }                                                                                                                                      \
  EXPORT int cusolverDn##name##gqr(Handle* h, int m, int n, int k, void* a, int lda, const void* tau, void* work, int size, int* info) { \
    return columns("cusolverDn" #name "gqr", h, m, n, k, a, lda, tau, work, size, info, type);                                           \
  }                                                                                                                                      \
  EXPORT int cusolverDn##name##mqr_bufferSize(Handle* h, int, int, int m, int n, int k, const void*, int lda, const void*, const void*,  \
                                              int ldc, int* work) {                                                                      \
    return sized("cusolverDn" #name "mqr_bufferSize", h, m >= k && k >= 1 && n >= 1 && lda >= m && ldc >= m, n, work);                   \
  }                                                                                                                                      \
  EXPORT int cusolverDn##name##mqr(Handle* h, int side, int way, int m, int n, int k, const void* a, int lda, const void* tau, void* c,  \
                                   int ldc, void* work, int size, int* info) {                                                           \
    return product("cusolverDn" #name "mqr", h, side, way, m, n, k, a, lda, tau, c, ldc, work, size, info, type);                        \
  }
TYPED(Sor, kR32)
TYPED(Dor, kR64)
TYPED(Cun, kC32)
TYPED(Zun, kC64)
