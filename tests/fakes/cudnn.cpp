/* cuDNN for tests, over the driver beside this (cuda.cpp): convolutions by their definition, summed in float64, on that driver's memory when the stream
   gets there. As strict as the library is: descriptors that are whole and of one type and layout, sizes that go together, dense strides, memory to work
   in. Of the algorithms that it offers first, one gives other bits each time, one is not for this device, and one, of float32, rounds to TF32: whoever takes
   one of these is found out. Besides what cuda.cpp reads:
     NARU_FAKE_CONV_WORKSPACE   bytes that the quickest algorithm works in
     NARU_FAKE_CONV_REFUSES     "nhwc": there are no algorithms for channels that are last; "run": the quickest one is refused when it is to run */
#include <vector>

#include "cudnn.h"

namespace {

enum { kDefaultMath = 0, kTensorMath = 1, kFma = 3 };
enum Number { kRandom = 0, kForeign = 1, kRounded = 2, kQuick = 3, kModest = 4 };

// Of a tensor or a filter; dims 0: not set.
struct Array {
  int type = -1, dims = 0, size[5] = {}, stride[5] = {}, format = -1;

  size_t elements() const {
    size_t n = 1;
    for (int d = 0; d < dims; ++d) n *= static_cast<size_t>(size[d]);
    return n;
  }
  void set_strides(bool last) {
    int next = last ? size[1] : 1;
    for (int d = dims; d-- > 2;) stride[d] = next, next *= size[d];
    stride[1] = last ? 1 : next;
    stride[0] = last ? next : next * size[1];
  }
  // Whether all channels are neighbours; -1 where elements do not lie densely one way or the other.
  bool lies(bool last) const {
    Array dense = *this;
    dense.set_strides(last);
    for (int d = 0; d < dims; ++d)
      if (size[d] != 1 && stride[d] != dense.stride[d]) return false;
    return true;
  }
};
struct Window {
  int dims = 0, padding[3] = {}, stride[3] = {}, dilation[3] = {}, compute = -1, groups = 1, math = kDefaultMath;
};
struct Perf {
  int algo, status;
  float time;
  size_t memory;
  int determinism, math, reserved[3];
};

bool known(int type) { return type == kFloat || type == kDouble || type == kHalf || type == kBfloat16; }

// What goes together, as the library says it.
int trouble(const Array& x, const Array& w, const Array& y, const Window& c) {
  if (x.dims == 0 || w.dims != x.dims || y.dims != x.dims || c.dims != x.dims - 2) return kBadParam;
  if (!known(x.type) || w.type != x.type || y.type != x.type) return kBadParam;
  if (c.compute != (x.type == kDouble ? kDouble : kFloat)) return kNotSupported;
  if (c.groups < 1 || x.size[1] != w.size[1] * c.groups || w.size[0] != y.size[1] || w.size[0] % c.groups || x.size[0] != y.size[0])
    return kMisfit;
  for (int d = 0; d < c.dims; ++d) {
    const int rest = x.size[2 + d] + 2 * c.padding[d] - ((w.size[2 + d] - 1) * c.dilation[d] + 1);
    if (rest < 0 || y.size[2 + d] != 1 + rest / c.stride[d]) return kMisfit;
  }
  const bool last = w.format == 1;
  if (!x.lies(last) || !y.lies(last)) return kNotSupported;
  return last && x.type == kDouble ? kNotSupported : 0;
}

size_t workspace_of(int number, const Array& x) {
  const char* const bytes = getenv("NARU_FAKE_CONV_WORKSPACE");
  return number == kQuick ? (bytes ? static_cast<size_t>(atoll(bytes)) : 64 + x.elements() * item(x.type)) : 0;
}
bool refuses(const char* what) {
  const char* const said = getenv("NARU_FAKE_CONV_REFUSES");
  return said && strcmp(said, what) == 0;
}

int offer(const char* name, Handle* h, const Array* x, const Array* w, const Array* y, const Window* c, int wanted, int* found,
          Perf* perfs) {
  if (const int code = called(name)) return code;
  if (!h || h->context != context()) return kNotInitialized;
  if (!x || !w || !y || !c || wanted < 1 || !found || !perfs) return kBadParam;
  if (const int code = trouble(*x, *w, *y, *c)) return code;
  if (x->type == kBfloat16 && capability(h->context) < 80) return kNotSupported;
  if (w->format == 1 && refuses("nhwc")) return kNotSupported;
  const bool fma = c->math == kFma && x->type == kFloat;
  const Perf all[] = {{kRandom, 0, 1, 0, 0, c->math, {}},
                      {kForeign, kNotSupported, -1, 0, 1, c->math, {}},
                      {kRounded, 0, 2, 0, 1, fma ? int{kTensorMath} : c->math, {}},
                      {kQuick, 0, 3, workspace_of(kQuick, *x), 1, c->math, {}},
                      {kModest, 0, 4, 0, 1, c->math, {}}};
  int count = 0;
  for (const Perf& p : all)
    if (count < wanted && (p.algo != kRounded || fma)) perfs[count++] = p;
  *found = count;
  return 0;
}
int room(const char* name, Handle* h, const Array* x, const Array* w, const Array* y, const Window* c, int number, size_t* bytes) {
  if (const int code = called(name)) return code;
  if (!h || h->context != context()) return kNotInitialized;
  if (!x || !w || !y || !c || !bytes || number < kRandom || number > kModest) return kBadParam;
  if (const int code = trouble(*x, *w, *y, *c)) return code;
  *bytes = workspace_of(number, *x);
  return number == kForeign ? int{kNotSupported} : 0;
}

enum class Use { Forward, Data, Filter };

struct Memory {
  char *x, *w, *y;
};

// TF32: 10 bits behind the point.
double seen(double v, bool tf32) { return tf32 ? rounded(v, 11, -149) : v; }

void convolve(Use use, const Array& x, const Array& w, const Array& y, const Window& c, const Memory& at, bool mine, double noise) {
  const bool tf32 = x.type == kFloat && c.math != kFma;
  const Array& out = use == Use::Forward ? y : use == Use::Data ? x : w;
  char* const to = use == Use::Forward ? at.y : use == Use::Data ? at.x : at.w;
  // Over elements and strides of the result; sums of products by the definition, element by element of y and w.
  size_t reach = 0;
  for (int d = 0; d < out.dims; ++d) reach += static_cast<size_t>(out.size[d] - 1) * static_cast<size_t>(out.stride[d]);
  std::vector<double> sums(reach + 1, 0);
  const int spatial = c.dims, in = w.size[1], each = w.size[0] / c.groups;
  size_t places = 1, kernel = 1;
  for (int d = 0; d < spatial; ++d) places *= static_cast<size_t>(y.size[2 + d]), kernel *= static_cast<size_t>(w.size[2 + d]);
  for (int n = 0; n < y.size[0]; ++n)
    for (int o = 0; o < y.size[1]; ++o)
      for (size_t p = 0; p < places; ++p)
        for (size_t k = 0; k < kernel; ++k) {
          size_t iy = static_cast<size_t>(n * y.stride[0] + o * y.stride[1]), iw = static_cast<size_t>(o * w.stride[0]);
          size_t ix = static_cast<size_t>(n * x.stride[0] + o / each * in * x.stride[1]), p_left = p, k_left = k;
          bool inside = true;
          for (int d = spatial; d-- > 0;) {
            const auto py = static_cast<int>(p_left % static_cast<size_t>(y.size[2 + d])),
                       kd = static_cast<int>(k_left % static_cast<size_t>(w.size[2 + d]));
            p_left /= static_cast<size_t>(y.size[2 + d]), k_left /= static_cast<size_t>(w.size[2 + d]);
            const int px = py * c.stride[d] - c.padding[d] + kd * c.dilation[d];
            inside = inside && px >= 0 && px < x.size[2 + d];
            iy += static_cast<size_t>(py * y.stride[2 + d]), iw += static_cast<size_t>(kd * w.stride[2 + d]);
            ix += static_cast<size_t>((inside ? px : 0) * x.stride[2 + d]);
          }
          for (int i = 0; inside && i < in; ++i) {
            const size_t jx = ix + static_cast<size_t>(i * x.stride[1]), jw = iw + static_cast<size_t>(i * w.stride[1]);
            if (use == Use::Forward)
              sums[iy] += seen(get(at.x, x.type, jx), tf32) * seen(get(at.w, w.type, jw), tf32);
            else if (use == Use::Data)
              sums[jx] += seen(get(at.y, y.type, iy), tf32) * seen(get(at.w, w.type, jw), tf32);
            else
              sums[jw] += seen(get(at.y, y.type, iy), tf32) * seen(get(at.x, x.type, jx), tf32);
          }
        }
  for (size_t i = 0; i < sums.size(); ++i) put(to, out.type, i, mine ? sums[i] * noise : NAN);
}

int run(const char* name, Use use, Handle* h, const void* alpha, const Array* x, const void* px, const Array* w, const void* pw,
        const Array* y, const void* py, const Window* c, int number, void* workspace, size_t bytes, const void* beta) {
  if (const int code = called(name)) return code;
  if (!h || h->context != context()) return kNotInitialized;
  if (!x || !w || !y || !c || !px || !pw || !py || !alpha || !beta || number < kRandom || number > kModest) return kBadParam;
  if (const int code = trouble(*x, *w, *y, *c)) return code;
  if (number == kForeign || (number == kQuick && refuses("run"))) return kNotSupported;
  const bool wide = x->type == kDouble;
  if (wide ? *static_cast<const double*>(alpha) != 1 || *static_cast<const double*>(beta) != 0
           : *static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0)
    return kBadParam;
  if (!h->stream) return kInternal;  // naru has no stream 0
  for (const void* p : {px, pw, py})
    if (!aligned(p, item(x->type))) return kBadParam;
  const size_t wanted = workspace_of(number, *x);
  if (wanted > 0 && (!workspace || !aligned(workspace, 16) || bytes < wanted)) return kTooSmall;
  void* const where = h->context;
  static int calls = 0;
  const double noise = number == kRandom ? 1 + 0.01 * ++calls : 1;
  return give_with_workspace(h->stream, where, workspace, wanted,
                             [=, x = *x, w = *w, y = *y, c = *c](bool mine) {
                               const Memory at{host(where, px, x.elements() * item(x.type)), host(where, pw, w.elements() * item(w.type)),
                                               host(where, py, y.elements() * item(y.type))};
                               if (at.x && at.w && at.y) convolve(use, x, w, y, c, at, mine, noise);
                             }) == 0
             ? 0
             : int{kFailed};
}

}  // namespace

EXPORT size_t cudnnGetVersion() { return 91900; }
EXPORT size_t cudnnGetCudartVersion() { return 12090; }
EXPORT int cudnnCreate(Handle** h) {
  if (const int code = called("cudnnCreate")) return code;
  if (!context()) return kNotInitialized;
  if (capturing(context())) return kInternal;  // it takes memory
  *h = new Handle{context(), nullptr};
  return 0;
}
EXPORT int cudnnDestroy(Handle* h) {
  if (const int code = called("cudnnDestroy")) return code;
  if (h->context != context()) return kNotInitialized;
  delete h;
  return 0;
}
EXPORT int cudnnSetStream(Handle* h, void* stream) {
  if (const int code = called("cudnnSetStream")) return code;
  if (!h || h->context != context()) return kNotInitialized;
  h->stream = stream;
  return 0;
}

// How many descriptors there are: the tests ask.
static std::atomic<int> descriptors{0};
EXPORT int fake_cudnn_descriptors() { return descriptors; }
template <class T>
static int create(const char* name, T** made) {
  if (const int code = called(name)) return code;
  *made = new T;
  ++descriptors;
  return 0;
}
template <class T>
static int destroy(const char* name, T* old) {
  const int code = called(name);
  delete old;
  --descriptors;
  return code;
}
EXPORT int cudnnCreateTensorDescriptor(Array** a) { return create("cudnnCreateTensorDescriptor", a); }
EXPORT int cudnnDestroyTensorDescriptor(Array* a) { return destroy("cudnnDestroyTensorDescriptor", a); }
EXPORT int cudnnCreateFilterDescriptor(Array** a) { return create("cudnnCreateFilterDescriptor", a); }
EXPORT int cudnnDestroyFilterDescriptor(Array* a) { return destroy("cudnnDestroyFilterDescriptor", a); }
EXPORT int cudnnCreateConvolutionDescriptor(Window** c) { return create("cudnnCreateConvolutionDescriptor", c); }
EXPORT int cudnnDestroyConvolutionDescriptor(Window* c) { return destroy("cudnnDestroyConvolutionDescriptor", c); }

static bool set(Array* a, int type, int dims, const int* sizes) {
  if (!a || !known(type) || dims < 4 || dims > 5 || !sizes) return false;
  a->type = type, a->dims = dims;
  for (int d = 0; d < dims; ++d)
    if ((a->size[d] = sizes[d]) < 1) return false;
  return true;
}
EXPORT int cudnnSetTensorNdDescriptor(Array* a, int type, int dims, const int* sizes, const int* strides) {
  if (const int code = called("cudnnSetTensorNdDescriptor")) return code;
  if (!strides || !set(a, type, dims, sizes)) return kBadParam;
  for (int d = 0; d < dims; ++d)
    if ((a->stride[d] = strides[d]) < 1) return kBadParam;
  return 0;
}
EXPORT int cudnnSetFilterNdDescriptor(Array* a, int type, int format, int dims, const int* sizes) {
  if (const int code = called("cudnnSetFilterNdDescriptor")) return code;
  if (format < 0 || format > 1 || !set(a, type, dims, sizes)) return kBadParam;
  a->format = format;
  a->set_strides(format == 1);
  return 0;
}
EXPORT int cudnnSetConvolutionNdDescriptor(Window* c, int dims, const int* padding, const int* stride, const int* dilation, int mode,
                                           int compute) {
  if (const int code = called("cudnnSetConvolutionNdDescriptor")) return code;
  if (!c || dims < 2 || dims > 3 || mode != 1 || (compute != kFloat && compute != kDouble)) return kBadParam;
  c->dims = dims, c->compute = compute;
  for (int d = 0; d < dims; ++d) {
    c->padding[d] = padding[d], c->stride[d] = stride[d], c->dilation[d] = dilation[d];
    if (padding[d] < 0 || stride[d] < 1 || dilation[d] < 1) return kBadParam;
  }
  return 0;
}
EXPORT int cudnnSetConvolutionGroupCount(Window* c, int groups) {
  if (const int code = called("cudnnSetConvolutionGroupCount")) return code;
  if (!c || groups < 1) return kBadParam;
  c->groups = groups;
  return 0;
}
EXPORT int cudnnSetConvolutionMathType(Window* c, int math) {
  if (const int code = called("cudnnSetConvolutionMathType")) return code;
  if (!c || math < 0 || math > 3) return kBadParam;
  c->math = math;
  return 0;
}

EXPORT int cudnnGetConvolutionForwardAlgorithm_v7(Handle* h, Array* x, Array* w, Window* c, Array* y, int wanted, int* found, Perf* perfs) {
  return offer("cudnnGetConvolutionForwardAlgorithm_v7", h, x, w, y, c, wanted, found, perfs);
}
EXPORT int cudnnGetConvolutionBackwardDataAlgorithm_v7(Handle* h, Array* w, Array* y, Window* c, Array* x, int wanted, int* found,
                                                       Perf* perfs) {
  return offer("cudnnGetConvolutionBackwardDataAlgorithm_v7", h, x, w, y, c, wanted, found, perfs);
}
EXPORT int cudnnGetConvolutionBackwardFilterAlgorithm_v7(Handle* h, Array* x, Array* y, Window* c, Array* w, int wanted, int* found,
                                                         Perf* perfs) {
  return offer("cudnnGetConvolutionBackwardFilterAlgorithm_v7", h, x, w, y, c, wanted, found, perfs);
}
EXPORT int cudnnGetConvolutionForwardWorkspaceSize(Handle* h, Array* x, Array* w, Window* c, Array* y, int number, size_t* bytes) {
  return room("cudnnGetConvolutionForwardWorkspaceSize", h, x, w, y, c, number, bytes);
}
EXPORT int cudnnGetConvolutionBackwardDataWorkspaceSize(Handle* h, Array* w, Array* y, Window* c, Array* x, int number, size_t* bytes) {
  return room("cudnnGetConvolutionBackwardDataWorkspaceSize", h, x, w, y, c, number, bytes);
}
EXPORT int cudnnGetConvolutionBackwardFilterWorkspaceSize(Handle* h, Array* x, Array* y, Window* c, Array* w, int number, size_t* bytes) {
  return room("cudnnGetConvolutionBackwardFilterWorkspaceSize", h, x, w, y, c, number, bytes);
}
EXPORT int cudnnConvolutionForward(Handle* h, const void* alpha, Array* x, const void* px, Array* w, const void* pw, Window* c, int number,
                                   void* workspace, size_t bytes, const void* beta, Array* y, void* py) {
  return run("cudnnConvolutionForward", Use::Forward, h, alpha, x, px, w, pw, y, py, c, number, workspace, bytes, beta);
}
EXPORT int cudnnConvolutionBackwardData(Handle* h, const void* alpha, Array* w, const void* pw, Array* y, const void* py, Window* c,
                                        int number, void* workspace, size_t bytes, const void* beta, Array* x, void* px) {
  return run("cudnnConvolutionBackwardData", Use::Data, h, alpha, x, px, w, pw, y, py, c, number, workspace, bytes, beta);
}
EXPORT int cudnnConvolutionBackwardFilter(Handle* h, const void* alpha, Array* x, const void* px, Array* y, const void* py, Window* c,
                                          int number, void* workspace, size_t bytes, const void* beta, Array* w, void* pw) {
  return run("cudnnConvolutionBackwardFilter", Use::Filter, h, alpha, x, px, w, pw, y, py, c, number, workspace, bytes, beta);
}
