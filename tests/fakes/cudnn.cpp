/* cuDNN for tests, over the driver beside this (cuda.cpp): graphs of operations (cudnn_graph.cpp), which are convolutions (cudnn_convolution.cpp) or attention
   (cudnn_operations.cpp), computed on that driver's memory when the stream gets there. As strict as the library is: descriptors that are whole and of one
   type and layout, sizes that go together, memory to work in. Besides what cuda.cpp reads:
     NARU_FAKE_CONV_WORKSPACE   bytes that the quickest engine for convolutions works in
     NARU_FAKE_CONV_REFUSES     "nhwc": there are no engines for channels that are last; "all": none at all; "run": the quickest is refused when it is to run */
#include "cudnn.h"

EXPORT size_t cudnnGetVersion() { return 91900; }
EXPORT size_t cudnnGetCudartVersion() { return 12090; }
EXPORT int cudnnCreate(Handle** h) {
  if (const int code = called("cudnnCreate")) return code;
  if (!context()) return kNotInitialized;
  if (capturing(context())) return kInternal;  // it allocates memory
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
