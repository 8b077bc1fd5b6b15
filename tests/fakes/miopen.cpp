/* MIOpen for tests, over the driver beside this (cuda.cpp under HIP's names): convolutions of its immediate mode, computed by their definition
   (cudnn_convolution.cpp) on that driver's memory when the stream gets there. It is as strict as the library is: sizes that go together, dense tensors of one
   layout, solutions that were compiled for the same descriptors, memory to work in. It has a solution that gives different bits each time, which it offers
   only to those who do not ask for deterministic ones. Besides what cuda.cpp reads:
     NARU_FAKE_CONV_WORKSPACE   bytes that the quickest solution works in
     NARU_FAKE_CONV_REFUSES     "nhwc": there are no solutions for channels that are last; "all": none at all; "run": the quickest is refused when it is to run;
                                "compile": when it is to be compiled */
#include <set>
#include <string>
#include <vector>

#include "cudnn_convolution.h"

namespace {

enum Status { kOk = 0, kUninitialized = 1, kBad = 3, kInternalError = 5, kNotImplemented = 6, kUnknown = 7 };
enum Solution : uint64_t { kRandomly = 11, kQuickly = 12, kModestly = 13 };

struct Tensor {
  int type = -1;
  std::vector<int64_t> size, stride;
};
struct Window {
  std::vector<int64_t> padding, stride, dilation;
  int groups = 1;
  bool deterministic = false;
};
struct MiHandle {
  void *context, *stream;
  std::set<std::string> compiled;
};
struct Proposal {
  float time;
  size_t workspace;
  uint64_t id;
  int algorithm;
};

int objects = 0;

// The type's number among the fake cuDNN's; -1 if convolutions of it are not supported.
int type_of(int type) { return type == 1 ? kFloat : type == 0 ? kHalf : type == 5 ? kBfloat16 : -1; }
ConvTensor as_cudnn(const Tensor& t) { return {0, type_of(t.type), t.size, t.stride}; }

Convolution described(Use use, const Tensor& x, const Tensor& w, const Tensor& y, const Window& window) {
  Convolution c;
  c.use = use, c.computed = kFloat;
  c.padding = window.padding, c.stride = window.stride, c.dilation = window.dilation;
  c.x = as_cudnn(x), c.w = as_cudnn(w), c.y = as_cudnn(y);
  return c;
}
int trouble(const MiHandle* h, const Convolution& c, const Window& window) {
  if (!h || h->context != context()) return kUninitialized;
  if (c.x.type < 0 || c.x.size.size() < 4 || c.w.size.size() < 2 || c.w.size[1] == 0) return kBad;
  if (c.x.size[1] / c.w.size[1] != window.groups) return kBad;
  const int said = c.trouble();
  return said == kNotSupported ? kNotImplemented : said ? kBad : kOk;
}
std::vector<uint64_t> solutions(const Window& window) {
  if (refuses_convolution("all")) return {};
  return window.deterministic ? std::vector<uint64_t>{kQuickly, kModestly} : std::vector<uint64_t>{kRandomly, kQuickly, kModestly};
}
size_t workspace_of(const Convolution& c, uint64_t id) { return c.workspace_of(id == kQuickly ? kQuick : kModest); }
std::string key(const Convolution& c, uint64_t id) {
  std::string k = std::to_string(static_cast<int>(c.use)) + ' ' + std::to_string(id) + ' ' + std::to_string(c.x.type);
  for (const auto* numbers : {&c.x.size, &c.x.stride, &c.w.size, &c.w.stride, &c.y.size, &c.y.stride, &c.padding, &c.stride, &c.dilation})
    for (const int64_t n : *numbers) k += ' ' + std::to_string(n);
  return k;
}

int count_of(const char* name, MiHandle* h, const Convolution& c, const Window& window, size_t* count) {
  if (const int code = called(name)) return code;
  if (const int code = trouble(h, c, window)) return code;
  *count = solutions(window).size();
  return kOk;
}
int solutions_of(const char* name, MiHandle* h, const Convolution& c, const Window& window, size_t most, size_t* count, Proposal* to) {
  if (const int code = called(name)) return code;
  if (const int code = trouble(h, c, window)) return code;
  const std::vector<uint64_t> all = solutions(window);
  *count = std::min(most, all.size());
  for (size_t i = 0; i < *count; ++i) to[i] = {static_cast<float>(i + 1), workspace_of(c, all[i]), all[i], 1};
  return kOk;
}
int compile(const char* name, MiHandle* h, const Convolution& c, const Window& window, uint64_t id) {
  if (const int code = called(name)) return code;
  if (const int code = trouble(h, c, window)) return code;
  if (capturing(h->context)) return kInternalError;  // it loads kernels
  if (id == kQuickly && refuses_convolution("compile")) return kNotImplemented;
  h->compiled.insert(key(c, id));
  return kOk;
}
int run(const char* name, MiHandle* h, const Convolution& c, const Window& window, const void* x, const void* w, const void* y,
        void* workspace, size_t bytes, uint64_t id) {
  if (const int code = called(name)) return code;
  if (const int code = trouble(h, c, window)) return code;
  if (!x || !w || !y || !h->stream || !h->compiled.count(key(c, id))) return kBad;
  if (id == kQuickly && refuses_convolution("run")) return kNotImplemented;
  const size_t wanted = workspace_of(c, id);
  if (bytes < wanted || (wanted > 0 && (!workspace || !aligned(workspace, 16)))) return kBad;
  void* const where = h->context;
  static std::atomic<int> runs{0};
  const double noise = id == kRandomly ? 1 + 1e-6 * ++runs : 1;
  const auto bytes_of = [](const ConvTensor& t) { return t.elements() * item(t.type); };
  return give_with_workspace(h->stream, where, workspace, wanted,
                             [=](bool mine) {
                               char *const px = host(where, x, bytes_of(c.x)), *const pw = host(where, w, bytes_of(c.w)),
                                           *const py = host(where, y, bytes_of(c.y));
                               if (px && pw && py) c.compute(px, pw, py, kQuick, mine, noise);
                             }) == 0
             ? kOk
             : kUnknown;
}

}  // namespace

// Descriptors that exist.
EXPORT int fake_miopen_objects() { return objects; }

EXPORT int miopenGetVersion(size_t* major, size_t* minor, size_t* patch) {
  *major = 3, *minor = 4, *patch = 1;
  return kOk;
}
EXPORT const char* miopenGetErrorString(int status) { return status == kUnknown ? "an unknown error of the stand-in" : "an error"; }
EXPORT int miopenCreate(MiHandle** h) {
  if (const int code = called("miopenCreate")) return code;
  if (!context()) return kUninitialized;
  if (capturing(context())) return kInternalError;  // it allocates memory
  *h = new MiHandle{context(), nullptr, {}};
  return kOk;
}
EXPORT int miopenDestroy(MiHandle* h) {
  if (const int code = called("miopenDestroy")) return code;
  if (h->context != context()) return kUninitialized;
  delete h;
  return kOk;
}
EXPORT int miopenSetStream(MiHandle* h, void* stream) {
  if (const int code = called("miopenSetStream")) return code;
  if (!h || h->context != context()) return kUninitialized;
  h->stream = stream;
  return kOk;
}
EXPORT int miopenCreateTensorDescriptor(Tensor** t) {
  if (const int code = called("miopenCreateTensorDescriptor")) return code;
  *t = new Tensor, ++objects;
  return kOk;
}
EXPORT int miopenSetTensorDescriptor(Tensor* t, int type, int dims, const int* sizes, const int* strides) {
  if (const int code = called("miopenSetTensorDescriptor")) return code;
  if (dims < 1 || dims > 5) return kBad;
  t->type = type, t->size.assign(sizes, sizes + dims), t->stride.assign(strides, strides + dims);
  return kOk;
}
EXPORT int miopenDestroyTensorDescriptor(Tensor* t) {
  delete t, --objects;
  return kOk;
}
EXPORT int miopenCreateConvolutionDescriptor(Window** w) {
  if (const int code = called("miopenCreateConvolutionDescriptor")) return code;
  *w = new Window, ++objects;
  return kOk;
}
EXPORT int miopenInitConvolutionNdDescriptor(Window* w, int dims, const int* padding, const int* stride, const int* dilation, int mode) {
  if (const int code = called("miopenInitConvolutionNdDescriptor")) return code;
  if (mode != 0 || dims < 2 || dims > 3) return kBad;
  w->padding.assign(padding, padding + dims), w->stride.assign(stride, stride + dims), w->dilation.assign(dilation, dilation + dims);
  return kOk;
}
EXPORT int miopenSetConvolutionGroupCount(Window* w, int groups) {
  if (const int code = called("miopenSetConvolutionGroupCount")) return code;
  w->groups = groups;
  return kOk;
}
EXPORT int miopenSetConvolutionAttribute(Window* w, int attribute, int value) {
  if (const int code = called("miopenSetConvolutionAttribute")) return code;
  if (attribute != 1) return kBad;
  w->deterministic = value == 1;
  return kOk;
}
EXPORT int miopenDestroyConvolutionDescriptor(Window* w) {
  delete w, --objects;
  return kOk;
}

// Of each use: which of the two tensors that are read, and the one that is written, are x, w and y.
#define USE(name, use, x, w, y)                                                                                                            \
  EXPORT int miopenConvolution##name##GetSolutionCount(MiHandle* h, Tensor* a, Tensor* b, Window* window, Tensor* into, size_t* count) {   \
    return count_of("miopenConvolution" #name "GetSolutionCount", h, described(use, *x, *w, *y, *window), *window, count);                 \
  }                                                                                                                                        \
  EXPORT int miopenConvolution##name##GetSolution(MiHandle* h, Tensor* a, Tensor* b, Window* window, Tensor* into, size_t most,            \
                                                  size_t* count, Proposal* to) {                                                           \
    return solutions_of("miopenConvolution" #name "GetSolution", h, described(use, *x, *w, *y, *window), *window, most, count, to);        \
  }                                                                                                                                        \
  EXPORT int miopenConvolution##name##CompileSolution(MiHandle* h, Tensor* a, Tensor* b, Window* window, Tensor* into, uint64_t id) {      \
    return compile("miopenConvolution" #name "CompileSolution", h, described(use, *x, *w, *y, *window), *window, id);                      \
  }                                                                                                                                        \
  EXPORT int miopenConvolution##name##Immediate(MiHandle* h, Tensor* a, const void* a_data, Tensor* b, const void* b_data, Window* window, \
                                                Tensor* into, void* into_data, void* workspace, size_t bytes, uint64_t id) {               \
    return run("miopenConvolution" #name "Immediate", h, described(use, *x, *w, *y, *window), *window, x##_data, w##_data, y##_data,       \
               workspace, bytes, id);                                                                                                      \
  }
USE(Forward, Use::Forward, b, a, into)
USE(BackwardData, Use::Data, into, b, a)
USE(BackwardWeights, Use::Filter, b, into, a)
