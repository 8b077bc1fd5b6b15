// libtorch's functional layers with options. Included by naru/torch.h.
#pragma once

#include "naru/torch/modules.h"

namespace torch::nn {

namespace functional {

using namespace naru::nn::functional;
using DropoutFuncOptions = DropoutOptions;
using MaxPool2dFuncOptions = PoolOptions;
using AvgPool2dFuncOptions = PoolOptions;
using SoftmaxFuncOptions = DimOptions;
using LogSoftmaxFuncOptions = DimOptions;
using CrossEntropyFuncOptions = LossOptions;
using NLLLossFuncOptions = LossOptions;
using MSELossFuncOptions = LossOptions;
using naru::dropout;
inline Tensor dropout(const Tensor& x, const DropoutFuncOptions& o) { return naru::dropout(x, o.p_, o.training_); }
using naru::max_pool2d;
inline Tensor max_pool2d(const Tensor& x, const PoolOptions& o) {
  return naru::max_pool2d(x, o.kernel, o.stride_, o.padding_, Dims{1}, o.ceil_);
}
using naru::avg_pool2d;
inline Tensor avg_pool2d(const Tensor& x, const PoolOptions& o) {
  return naru::avg_pool2d(x, o.kernel, o.stride_, o.padding_, o.ceil_, o.count_);
}
inline Tensor softmax(const Tensor& x, const DimOptions& o) { return naru::softmax(x, o.dim); }
inline Tensor log_softmax(const Tensor& x, const DimOptions& o) { return naru::log_softmax(x, o.dim); }
using naru::cross_entropy;
inline Tensor cross_entropy(const Tensor& x, const Tensor& y, const LossOptions& o) {
  return naru::cross_entropy(x, y, o.weight_, o.reduction_, o.ignore_, o.smoothing_);
}
using naru::nll_loss;
inline Tensor nll_loss(const Tensor& x, const Tensor& y, const LossOptions& o) {
  return naru::nll_loss(x, y, o.weight_, o.reduction_, o.ignore_);
}
using naru::mse_loss;
inline Tensor mse_loss(const Tensor& x, const Tensor& y, const LossOptions& o) { return naru::mse_loss(x, y, o.reduction_); }

}  // namespace functional

}  // namespace torch::nn
