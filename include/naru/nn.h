// Layers of neural networks in C++. Semantics, state-dict names and initialization are torch.nn's; the computation is in naru/ops.h. See
// also naru/nn/module.h (Module), naru/nn/activations.h (layers without parameters), naru/nn/losses.h and naru/nn/images.h.
//
//   nn::Sequential model{nn::Linear(784, 256), nn::ReLU(), nn::Linear(256, 10)};
//   model.to("cuda");
//   Tensor scores = model(x);
#pragma once

#include <optional>
#include <string>

#include "naru/nn/activations.h"
#include "naru/nn/functional.h"
#include "naru/nn/init.h"
#include "naru/nn/losses.h"
#include "naru/nn/module.h"
#include "naru/nn/utils.h"
#include "naru/standard.h"

namespace naru::nn {

// y = x wᵀ + b: (..., in) to (..., out). weight (out, in) and bias (out) are initialized uniformly in ± 1 / sqrt(in).
class Linear : public Module {
 public:
  Linear(int64_t in_features, int64_t out_features, bool bias = true, const Options& options = {});
  void reset_parameters();
  Tensor forward(const Tensor& x) override { return linear(x, weight, bias); }
  std::string name() const override { return "Linear"; }
  std::string details() const override;
  Tensor weight, bias;  // bias is undefined if there is none

 protected:
  std::shared_ptr<Module> remake() const override;
};

// out[..., k] = a weight[k] b + bias[k]: (..., in1) and (..., in2) to (..., out). Initialized uniformly in ± 1 / sqrt(in1).
class Bilinear : public Module {
 public:
  Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features, bool bias = true, const Options& options = {});
  void reset_parameters();
  using Module::forward;
  Tensor forward(const Tensor& a, const Tensor& b) { return bilinear(a, b, weight, bias); }
  Tensor operator()(const Tensor& a, const Tensor& b);
  std::string name() const override { return "Bilinear"; }
  std::string details() const override;
  Tensor weight, bias;

 protected:
  std::shared_ptr<Module> remake() const override;
};

// Looks up rows of weight (count, width) by integer indices. Rows are initialized from normal(0, 1); the row padding_idx is zero and gets
// no gradient. max_norm: see functional::embedding. sparse: the gradient is a sparse tensor (naru/ops/sparse.h).
class Embedding : public Module {
 public:
  Embedding(int64_t count, int64_t width, int64_t padding_idx = -1, const Options& options = {}, std::optional<double> max_norm = {},
            double norm_type = 2, bool sparse = false);
  void reset_parameters();
  Tensor forward(const Tensor& index) override;
  std::string name() const override { return "Embedding"; }
  std::string details() const override;
  Tensor weight;

 protected:
  std::shared_ptr<Module> remake() const override;

 private:
  int64_t padding_;
  std::optional<double> max_norm_;
  double norm_type_;
  bool sparse_;
};

// Sums, means or maxima of the rows of weight (count, width) over bags of indices: see functional::embedding_bag. Rows are initialized from
// normal(0, 1); the row padding_idx is zero.
class EmbeddingBag : public Module {
 public:
  struct Settings {
    std::string mode = "mean";
    bool include_last_offset = false;
    std::optional<int64_t> padding_idx = {};
    std::optional<double> max_norm = {};
    double norm_type = 2;
    bool scale_grad_by_freq = false;
    bool sparse = false;
  };
  EmbeddingBag(int64_t count, int64_t width, Settings settings, const Options& options = {});
  EmbeddingBag(int64_t count, int64_t width) : EmbeddingBag(count, width, Settings()) {}
  void reset_parameters();
  Tensor forward(const Tensor& index) override { return forward(index, {}); }
  Tensor forward(const Tensor& index, const Tensor& offsets, const Tensor& per_sample_weights = {});
  using Module::operator();
  Tensor operator()(const Tensor& index, const Tensor& offsets, const Tensor& per_sample_weights = {});
  std::string name() const override { return "EmbeddingBag"; }
  std::string details() const override;
  Tensor weight;

 protected:
  std::shared_ptr<Module> remake() const override;

 private:
  Settings settings_;
};

// (x - mean) / sqrt(variance + eps) * weight + bias, with statistics over the last dimensions, whose sizes are normalized_shape.
class LayerNorm : public Module {
 public:
  explicit LayerNorm(DimList normalized_shape, double eps = 1e-5, bool elementwise_affine = true, bool bias = true,
                     const Options& options = {});
  explicit LayerNorm(int64_t width) : LayerNorm(Dims{width}) {}
  Tensor forward(const Tensor& x) override { return layer_norm(x, shape_, weight, bias, eps_); }
  std::string name() const override { return "LayerNorm"; }
  std::string details() const override;
  Tensor weight, bias;

 protected:
  std::shared_ptr<Module> remake() const override;

 private:
  Dims shape_;
  double eps_;
};

// x / sqrt(mean(x²) + eps) * weight over the last dimensions. The default eps is the machine epsilon of x's dtype.
class RMSNorm : public Module {
 public:
  explicit RMSNorm(DimList normalized_shape, std::optional<double> eps = {}, bool elementwise_affine = true, const Options& options = {});
  explicit RMSNorm(int64_t width) : RMSNorm(Dims{width}) {}
  Tensor forward(const Tensor& x) override { return functional::rms_norm(x, shape_, weight, eps_); }
  std::string name() const override { return "RMSNorm"; }
  std::string details() const override;
  Tensor weight;

 protected:
  std::shared_ptr<Module> remake() const override;

 private:
  Dims shape_;
  std::optional<double> eps_;
};

// Uniform in ± gain · sqrt(3 / fan_in), gain = sqrt(2 / (1 + a²)), where a is the negative slope of the leaky ReLU that follows. Expects at
// least 2 dimensions. The same as init::kaiming_uniform_.
void kaiming_uniform_(const Tensor& t, double a = 0);

}  // namespace naru::nn
