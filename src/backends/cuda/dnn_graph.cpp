#include "backends/cuda/dnn_graph.h"

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

DnnGraph::Tensor DnnGraph::tensor(int64_t number, int type, const Sizes4& sizes, const Sizes4& strides, bool is_inner, bool by_value) {
  constexpr int64_t kAlignment = 16;
  DnnDescriptor t = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &number, check_);
  t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type, check_);
  t.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, sizes.data(), check_);
  t.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides.data(), check_);
  t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &kAlignment, check_);
  t.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_inner, check_);
  if (by_value) t.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value, check_);
  t.finish(check_);
  tensors_.push_back(std::move(t));
  return {tensors_.size() - 1, sizes};
}
DnnGraph::Tensor DnnGraph::in_memory(int64_t number, int type, const Sizes4& sizes, const Sizes4& strides) {
  return tensor(number, type, sizes, strides, false, false);
}
DnnGraph::Tensor DnnGraph::of_host(int64_t number) { return tensor(number, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, false, true); }
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
