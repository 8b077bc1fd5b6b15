#include "backends/cuda/dnn_graph.h"

#include <algorithm>
#include <utility>

namespace naru::backends::cuda {

Sizes4 dense_strides(const Sizes4& sizes) noexcept {
  Sizes4 strides{};
  int64_t next = 1;
  for (size_t d = 4; d-- > 0;) strides[d] = next, next *= sizes[d];
  return strides;
}

DnnDescriptor::DnnDescriptor(const Cudnn& functions, int kind, const DnnCheck& check) : functions_(&functions) {
  check(functions.cudnnBackendCreateDescriptor(kind, &descriptor_), "cudnnBackendCreateDescriptor");
}
DnnDescriptor::~DnnDescriptor() {
  if (descriptor_) functions_->cudnnBackendDestroyDescriptor(descriptor_);
}
DnnDescriptor::DnnDescriptor(DnnDescriptor&& other) noexcept
    : functions_(other.functions_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}
DnnDescriptor& DnnDescriptor::operator=(DnnDescriptor&& other) noexcept {
  std::swap(functions_, other.functions_), std::swap(descriptor_, other.descriptor_);
  return *this;
}

void DnnDescriptor::set(int attribute, int type, int64_t count, const void* elements, const DnnCheck& check) {
  check(functions_->cudnnBackendSetAttribute(descriptor_, attribute, type, count, elements), "cudnnBackendSetAttribute");
}
void DnnDescriptor::set(int attribute, const DnnDescriptor& other, const DnnCheck& check) {
  set(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &other.descriptor_, check);
}
void DnnDescriptor::finish(const DnnCheck& check) { check(functions_->cudnnBackendFinalize(descriptor_), "cudnnBackendFinalize"); }

DnnGraph::Tensor DnnGraph::tensor(int64_t number, int type, std::span<const int64_t> sizes, std::span<const int64_t> strides, bool is_inner,
                                  bool by_value) {
  constexpr int64_t kAlignment = 16;
  const auto dims = static_cast<int64_t>(sizes.size());
  DnnDescriptor t = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &number, check_);
  t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type, check_);
  t.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dims, sizes.data(), check_);
  t.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, dims, strides.data(), check_);
  t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &kAlignment, check_);
  t.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_inner, check_);
  if (by_value) t.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value, check_);
  t.finish(check_);
  tensors_.push_back(std::move(t));
  Tensor made{tensors_.size() - 1};
  std::copy_n(sizes.begin(), std::min(sizes.size(), made.sizes.size()), made.sizes.begin());
  return made;
}
DnnGraph::Tensor DnnGraph::in_memory(int64_t number, int type, std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  return tensor(number, type, sizes, strides, false, false);
}
DnnGraph::Tensor DnnGraph::of_host(int64_t number) {
  constexpr Sizes4 kOne{1, 1, 1, 1};
  return tensor(number, CUDNN_DATA_FLOAT, kOne, kOne, false, true);
}
DnnGraph::Tensor DnnGraph::inner(int type, const Sizes4& sizes) { return inner(type, sizes, dense_strides(sizes)); }
DnnGraph::Tensor DnnGraph::inner(int type, const Sizes4& sizes, const Sizes4& strides) {
  return tensor(next_++, type, sizes, strides, true, false);
}

void DnnGraph::add(DnnDescriptor operation, DnnDescriptor about) {
  operation.finish(check_);
  operations_.push_back(std::move(operation)), about_.push_back(std::move(about));
}

void DnnGraph::matmul(Tensor a, Tensor b, Tensor into) {
  const int computed = CUDNN_DATA_FLOAT;
  DnnDescriptor about = make(CUDNN_BACKEND_MATMUL_DESCRIPTOR), operation = make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  about.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &computed, check_);
  about.finish(check_);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, about, check_);
  set_tensor(operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a), set_tensor(operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
  set_tensor(operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC, into);
  add(std::move(operation), std::move(about));
}

void DnnGraph::pointwise(int mode, std::initializer_list<Tensor> operands, Tensor into, int computed, int64_t axis) {
  constexpr int kOperands[] = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                               CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
  DnnDescriptor about = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR), operation = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  about.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode, check_);
  about.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &computed, check_);
  if (axis >= 0) about.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis, check_);
  about.finish(check_);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, about, check_);
  const int* attribute = kOperands;
  for (const Tensor& t : operands) set_tensor(operation, *attribute++, t);
  set_tensor(operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, into);
  add(std::move(operation), std::move(about));
}

void DnnGraph::reduction(int op, Tensor x, Tensor into) {
  const int computed = CUDNN_DATA_FLOAT;
  DnnDescriptor about = make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR), operation = make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  about.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &op, check_);
  about.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &computed, check_);
  about.finish(check_);
  operation.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, about, check_);
  set_tensor(operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x), set_tensor(operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, into);
  add(std::move(operation), std::move(about));
}

void DnnGraph::reshape(Tensor x, Tensor into) {
  DnnDescriptor operation = make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  set_tensor(operation, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x), set_tensor(operation, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, into);
  operation.finish(check_);
  operations_.push_back(std::move(operation));
}

void DnnGraph::convolution(int use, std::span<const int64_t> padding, std::span<const int64_t> stride, std::span<const int64_t> dilation,
                           int computed, Tensor x, Tensor w, Tensor y) {
  // Attributes of a convolution operation; `of` is in the order of w, x, y.
  struct Attributes {
    int alpha, beta, about, of[3];
  };
  const Attributes a = use == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR
                           ? Attributes{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y}}
                       : use == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
                           ? Attributes{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY}}
                           : Attributes{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                                        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY}};
  const auto dims = static_cast<int64_t>(padding.size());
  const int mode = CUDNN_CROSS_CORRELATION;
  DnnDescriptor about = make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR), operation = make(use);
  about.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dims, check_);
  about.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &computed, check_);
  about.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode, check_);
  about.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, dims, padding.data(), check_);
  about.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, dims, padding.data(), check_);
  about.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, dims, stride.data(), check_);
  about.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, dims, dilation.data(), check_);
  about.finish(check_);
  const float one = 1, zero = 0;
  const double one64 = 1, zero64 = 0;
  const bool wide = computed == CUDNN_DATA_DOUBLE;
  const int type = wide ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
  operation.set(a.alpha, type, 1, wide ? static_cast<const void*>(&one64) : &one, check_);
  operation.set(a.beta, type, 1, wide ? static_cast<const void*>(&zero64) : &zero, check_);
  operation.set(a.about, about, check_);
  set_tensor(operation, a.of[0], w), set_tensor(operation, a.of[1], x), set_tensor(operation, a.of[2], y);
  add(std::move(operation), std::move(about));
}

DnnDescriptor DnnGraph::finish(cudnnHandle_t handle) {
  DnnDescriptor graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  std::vector<cudnnBackendDescriptor_t> all;
  for (const DnnDescriptor& d : operations_) all.push_back(d.get());
  if (handle) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle, check_);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(all.size()), all.data(), check_);
  graph.finish(check_);
  return graph;
}

}  // namespace naru::backends::cuda
