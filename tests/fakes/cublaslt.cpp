/* cuBLASLt for tests, over the driver beside this (cuda.cpp): products are computed on that driver's memory when its stream gets there, in float64 and
   rounded once, so that their bits are not those of a chain in float32. It is as strict as the library is: sizes of attributes, shapes, leading
   dimensions, types that go together, alignment, memory to work in (written in a first step; a second one computes nothing but NaN if something else has been written there since). Besides what cuda.cpp reads:
     NARU_FAKE_ERROR        "cublasLtMatmul=13@2": only the second call fails
     NARU_FAKE_NO_ALGORITHM no product has one
     NARU_FAKE_WORKSPACE    bytes that each product needs (4096); those who allow less get no algorithm
   With FAKE_HIP it is hipBLASLt, which has other numbers and no preferences of alignment. */
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cuda_library.h"
#include "numbers.h"

namespace {

#ifdef FAKE_HIP
#define LT(name) hipblasLt##name
constexpr bool kIsHip = true;
enum { kNotInitialized = 1, kInvalidValue = 3, kExecutionFailed = 5, kInternalError = 6, kNotSupported = 7 };
enum { kCompute32 = 2, kCompute64 = 7, kComputeTf32 = 6 };
enum { kAsItIs = 111, kTransposed = 112 };
enum { kTransposeA = 0, kTransposeB = 1, kEpilogue = 2, kBias = 3, kBatchCount = 0, kBatchStride = 1 };
#else
#define LT(name) cublasLt##name
constexpr bool kIsHip = false;
enum { kNotInitialized = 1, kInvalidValue = 7, kExecutionFailed = 13, kInternalError = 14, kNotSupported = 15 };
enum { kCompute32 = 68, kCompute64 = 70, kComputeTf32 = 77 };
enum { kAsItIs = 0, kTransposed = 1 };
enum { kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBias = 8, kBatchCount = 5, kBatchStride = 6 };
#endif
#define NAMED(name) TEXT(LT(name))
#define TEXT(name) TEXT_OF(name)
#define TEXT_OF(name) #name
enum { kF32 = 0, kF64 = 1, kF16 = 2, kBF16 = 14 };
enum { kDefaultEpilogue = 1, kBiasEpilogue = 4 };

// --- descriptors -----------------------------------------------------------------------------------------------------

struct Operation {
  int32_t compute, scale;
  int32_t operation_a = kAsItIs, operation_b = kAsItIs;
  int32_t epilogue = kDefaultEpilogue;
  const void* bias = nullptr;
  bool transposed_a() const { return operation_a == kTransposed; }
  bool transposed_b() const { return operation_b == kTransposed; }
};
struct Layout {
  int32_t type;
  uint64_t rows, cols;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t reductions = 7, alignment[4] = {256, 256, 256, 256};
};
// Parts of each sum are added in the result's type.
struct Algorithm {
  uint32_t magic, alignment, parts, workspace;
  uint64_t product;
};
constexpr size_t kAlgorithmBytes = kIsHip ? 24 : 64;
static_assert(sizeof(Algorithm) <= kAlgorithmBytes);
struct Result {
  union {
    char data[kAlgorithmBytes];
    Algorithm algorithm;
  };
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};
struct Handle {
  void* context;
};

template <class T>
int put(T& to, const void* value, size_t bytes) {
  if (bytes != sizeof to || !value) return kInvalidValue;
  memcpy(&to, value, bytes);
  return 0;
}

// --- numbers ---------------------------------------------------------------------------------------------------------

size_t size_of(int type) { return type == kF64 ? 8 : type == kF32 ? 4 : 2; }

double load(const char* p, int type, int64_t i) {
  switch (type) {
    case kF64:
      return reinterpret_cast<const double*>(p)[i];
    case kF32:
      return reinterpret_cast<const float*>(p)[i];
    case kF16:
      return from_half(reinterpret_cast<const uint16_t*>(p)[i]);
    default:
      return with_bits(static_cast<uint32_t>(reinterpret_cast<const uint16_t*>(p)[i]) << 16);
  }
}
void store(char* p, int type, int64_t i, double v) {
  switch (type) {
    case kF64:
      reinterpret_cast<double*>(p)[i] = v;
      break;
    case kF32:
      reinterpret_cast<float*>(p)[i] = static_cast<float>(v);
      break;
    case kF16:
      reinterpret_cast<uint16_t*>(p)[i] = to_half(v);
      break;
    default:
      reinterpret_cast<uint16_t*>(p)[i] = static_cast<uint16_t>(bits_of(shortened(static_cast<float>(v), 16)) >> 16);
  }
}

// --- products --------------------------------------------------------------------------------------------------------

struct Product {
  Operation op;
  Layout a, b, c, d;

  int64_t m() const { return static_cast<int64_t>(d.rows); }
  int64_t n() const { return static_cast<int64_t>(d.cols); }
  int64_t k() const { return static_cast<int64_t>(op.transposed_a() ? a.rows : a.cols); }

  // 0, or the reason why the library does not support it.
  int trouble(int capability) const {
    const uint64_t ar = op.transposed_a() ? a.cols : a.rows, bc = op.transposed_b() ? b.rows : b.cols,
                   br = op.transposed_b() ? b.cols : b.rows;
    if (ar != d.rows || bc != d.cols || br != static_cast<uint64_t>(k()) || c.rows != d.rows || c.cols != d.cols) return kInvalidValue;
    for (const Layout* l : {&a, &b, &c, &d}) {
      if (l->rows == 0 || l->cols == 0 || l->ld < static_cast<int64_t>(l->rows) || l->batch != d.batch || l->batch < 1)
        return kInvalidValue;
      if (l->type != d.type) return kNotSupported;
    }
    if (d.batch > 1 && d.stride < d.ld * (n() - 1) + m()) return kInvalidValue;  // overlapping results
    if ((op.operation_a != kAsItIs && op.operation_a != kTransposed) || (op.operation_b != kAsItIs && op.operation_b != kTransposed))
      return kInvalidValue;
    const bool wide = d.type == kF64;
    if (wide ? op.compute != kCompute64 || op.scale != kF64 : op.scale != kF32 || (op.compute != kCompute32 && op.compute != kComputeTf32))
      return kNotSupported;
    if (op.compute == kComputeTf32 && d.type != kF32) return kNotSupported;
    if (!kIsHip && d.type == kBF16 && capability < 80) return kNotSupported;
    if (op.epilogue != kDefaultEpilogue && (op.epilogue != kBiasEpilogue || getenv("NARU_FAKE_NO_BIAS"))) return kNotSupported;
    return op.epilogue == kBiasEpilogue && !op.bias ? kInvalidValue : 0;
  }
  uint64_t hash() const {
    uint64_t h = 0xcbf29ce484222325u;
    const auto mix = [&](auto v) { h = (h ^ static_cast<uint64_t>(v)) * 0x100000001b3u; };
    mix(op.compute), mix(op.scale), mix(op.operation_a), mix(op.operation_b), mix(op.epilogue);
    for (const Layout* l : {&a, &b, &c, &d}) mix(l->type), mix(l->rows), mix(l->cols), mix(l->ld), mix(l->batch), mix(l->stride);
    return h;
  }
  size_t bytes(const Layout& l) const {
    return static_cast<size_t>(l.ld * static_cast<int64_t>(l.cols - 1) + static_cast<int64_t>(l.rows) + l.stride * (l.batch - 1)) *
           size_of(l.type);
  }
  void run(void* context, double alpha, double beta, const void* pa, const void* pb, const void* pc, void* pd, int64_t parts) const {
    const char *const ha = host(context, pa, bytes(a)), *const hb = host(context, pb, bytes(b)), *const hc = host(context, pc, bytes(c));
    char* const hd = host(context, pd, bytes(d));
    const char* const bias = op.epilogue == kBiasEpilogue ? host(context, op.bias, d.rows * size_of(d.type)) : nullptr;
    if (!ha || !hb || !hc || !hd || (op.epilogue == kBiasEpilogue && !bias)) return;
    const bool tf32 = op.compute == kComputeTf32;
    const auto factor = [&](const char* p, const Layout& l, bool turned, int64_t item, int64_t row, int64_t col) {
      const double x = load(p, l.type, item * l.stride + (turned ? col + row * l.ld : row + col * l.ld));
      return tf32 ? shortened(static_cast<float>(x), 13) : x;
    };
    for (int64_t item = 0; item < d.batch; ++item)
      for (int64_t col = 0; col < n(); ++col)
        for (int64_t row = 0; row < m(); ++row) {
          const int64_t at = item * d.stride + row + col * d.ld;
          double sum = 0;
          for (int64_t part = 0; part < parts; ++part) {
            for (int64_t i = k() * (part + 1) / parts; i-- > k() * part / parts;)
              sum += factor(ha, a, op.transposed_a(), item, row, i) * factor(hb, b, op.transposed_b(), item, i, col);
            if (parts == 1) break;
            store(hd, d.type, at, sum);
            sum = load(hd, d.type, at);
          }
          sum *= alpha;
          if (beta != 0) sum += beta * load(hc, c.type, item * c.stride + row + col * c.ld);
          if (bias) sum += load(bias, d.type, row);
          store(hd, d.type, at, sum);
        }
  }
};

constexpr uint32_t kMagic = 0x6e617275;

}  // namespace

#ifndef FAKE_HIP
EXPORT size_t cublasLtGetVersion() { return 120905; }
#endif

EXPORT int LT(Create)(Handle** h) {
  if (const int code = called(NAMED(Create))) return code;
  if (!context()) return kNotInitialized;
  if (capturing(context())) return kInternalError;  // it may synchronize the device
  *h = new Handle{context()};
  return 0;
}
EXPORT int LT(Destroy)(Handle* h) {
  if (const int code = called(NAMED(Destroy))) return code;
  if (h->context != context()) return kInvalidValue;
  delete h;
  return 0;
}

EXPORT int LT(MatmulDescCreate)(Operation** o, int compute, int scale) {
  *o = new Operation{compute, scale};
  return 0;
}
EXPORT int LT(MatmulDescDestroy)(Operation* o) {
  delete o;
  return 0;
}
EXPORT int LT(MatmulDescSetAttribute)(Operation* o, int attribute, const void* value, size_t bytes) {
  switch (attribute) {
    case kTransposeA:
      return put(o->operation_a, value, bytes);
    case kTransposeB:
      return put(o->operation_b, value, bytes);
    case kEpilogue:
      return put(o->epilogue, value, bytes);
    case kBias:
      return put(o->bias, value, bytes);
    default:
      return kInvalidValue;
  }
}

EXPORT int LT(MatrixLayoutCreate)(Layout** l, int type, uint64_t rows, uint64_t cols, int64_t ld) {
  *l = new Layout{type, rows, cols, ld};
  return 0;
}
EXPORT int LT(MatrixLayoutDestroy)(Layout* l) {
  delete l;
  return 0;
}
EXPORT int LT(MatrixLayoutSetAttribute)(Layout* l, int attribute, const void* value, size_t bytes) {
  switch (attribute) {
    case kBatchCount:
      return put(l->batch, value, bytes);
    case kBatchStride:
      return put(l->stride, value, bytes);
    default:
      return kInvalidValue;
  }
}

EXPORT int LT(MatmulPreferenceCreate)(Preference** p) {
  *p = new Preference;
  return 0;
}
EXPORT int LT(MatmulPreferenceDestroy)(Preference* p) {
  delete p;
  return 0;
}
EXPORT int LT(MatmulPreferenceSetAttribute)(Preference* p, int attribute, const void* value, size_t bytes) {
  if (attribute == 1) return put(p->workspace, value, bytes);
  if (kIsHip) return kInvalidValue;
  if (attribute == 3) return put(p->reductions, value, bytes);
  return attribute >= 5 && attribute <= 8 ? put(p->alignment[attribute - 5], value, bytes) : kInvalidValue;
}

EXPORT int LT(MatmulAlgoGetHeuristic)(Handle* h, Operation* o, Layout* a, Layout* b, Layout* c, Layout* d, Preference* p, int wanted,
                                      Result* results, int* found) {
  if (const int code = called(NAMED(MatmulAlgoGetHeuristic))) return code;
  if (!h || !o || !a || !b || !c || !d || !p || wanted <= 0 || !results || !found) return kInvalidValue;
  if (h->context != context()) return kNotInitialized;
  const Product product{*o, *a, *b, *c, *d};
  *found = 0;
  if (const int code = product.trouble(capability(h->context))) return code;
  const char* needs = getenv("NARU_FAKE_WORKSPACE");
  const uint64_t workspace = needs ? strtoull(needs, nullptr, 10) : 4096;
  if (getenv("NARU_FAKE_NO_ALGORITHM") || workspace > p->workspace) return 0;
  // The best algorithm requires 16-byte alignment; otherwise it is returned as unusable.
  bool all16 = kIsHip || !o->bias || aligned(o->bias, 16);
  for (const uint32_t bytes : p->alignment) all16 = all16 && (kIsHip || bytes >= 16);
  for (const uint32_t wants : {16u, 1u}) {
    if (*found == wanted) break;
    Result& r = results[(*found)++];
    memset(&r, 0xee, sizeof r);
    r.state = wants == 16 && !all16 ? kNotSupported : 0;
    if (r.state) continue;
    const bool shortened = !kIsHip && size_of(d->type) == 2 && (p->reductions & 4) && product.k() >= 1024;
    // hipBLASLt is not told how the operands are aligned, so its algorithms may not depend on it.
    r.algorithm = {kMagic, kIsHip ? 1u : wants, shortened ? 64u : 1u, static_cast<uint32_t>(workspace), product.hash()};
    r.workspace = workspace;
  }
  return 0;
}

EXPORT int LT(Matmul)(Handle* h, Operation* o, const void* alpha, const void* a, Layout* la, const void* b, Layout* lb, const void* beta,
                      const void* c, Layout* lc, void* d, Layout* ld, const Algorithm* algorithm, void* workspace, size_t bytes,
                      void* stream) {
  if (const int code = called(NAMED(Matmul))) return code;
  if (!h || !o || !alpha || !beta || !a || !b || !c || !d || !la || !lb || !lc || !ld || !stream) return kInvalidValue;
  if (h->context != context()) return kNotInitialized;
  const Product product{*o, *la, *lb, *lc, *ld};
  if (const int code = product.trouble(capability(h->context))) return code;
  if (!algorithm || algorithm->magic != kMagic || algorithm->product != product.hash() || bytes < algorithm->workspace)
    return kInvalidValue;
  const uint64_t element = size_of(ld->type);
  for (const void* p : {a, b, c, static_cast<const void*>(d), o->bias})
    if (!aligned(p, algorithm->alignment) || !aligned(p, element)) return kInvalidValue;
  if (algorithm->workspace > 0 && (!workspace || !aligned(workspace, 16))) return kInvalidValue;
  const bool wide = o->scale == kF64;
  const double times = wide ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha);
  const double plus = wide ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta);
  void* const where = h->context;
  const size_t used = algorithm->workspace;
  const int64_t parts = algorithm->parts;
  return give_with_workspace(stream, where, workspace, used,
                             [=](bool mine) { product.run(where, mine ? times : NAN, plus, a, b, c, d, parts); }) == 0
             ? 0
             : kExecutionFailed;
}
