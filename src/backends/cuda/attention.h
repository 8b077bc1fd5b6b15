// Attention by cuDNN where the library supports it; otherwise attention is products and a softmax (ops/nn/attention.h).
#pragma once

#include <array>
#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "backends/cuda/dnn_plan.h"
#include "ir/attention.h"

namespace naru::backends::cuda {

class CudaDevice;

// An attention as it is described to cuDNN. Dimensions of size 1 get row-major strides, so that equal work has one plan. The bias has size
// 1 where it is broadcast. Fields that Forward does not use are 0.
struct DnnAttention {
  ir::Attention::Use use = ir::Attention::Use::Forward;
  int type = 0, bias_type = -1;  // -1: no bias
  bool causal = false;
  Sizes4 q_sizes{}, k_sizes{}, v_sizes{}, out_sizes{}, bias_sizes{};
  Sizes4 q{}, k{}, v{}, out{}, bias{}, dout{}, dq{}, dk{}, dv{};  // strides
  auto operator<=>(const DnnAttention&) const = default;
};
// nullopt if the library does not support its types, sizes or strides. version: 91900 is cuDNN 9.19.0.
std::optional<DnnAttention> for_cudnn(const ir::Attention& op, int version) noexcept;

// Unique ids of the graph's tensors.
enum class DnnOperand : int64_t {
  Query = 1,
  Key,
  Value,
  Result,
  Statistics,
  Bias,
  ResultGradient,
  QueryGradient,
  KeyGradient,
  ValueGradient,
  Sums,       // float32, per query: sum of result gradient times result
  QuerySums,  // float32: the query gradient before it is rounded
  Scale,      // float32 scalars on the host
  Hidden,     // minus infinity
  One,
  Inner,  // first id of the virtual tensors, which exist only within the kernel
};
// Adds the operations in the pattern that the library's attention engines recognise.
void add_attention(DnnGraph& graph, const DnnAttention& attention);

// The attentions of one device: a handle, and one plan per shape. Thread-safe. The device's context must be current.
class Attentions {
 public:
  // Limit of cached plans; beyond it no more are made.
  static constexpr size_t kMostPlans = 512;
  // Compiling a plan takes half a second. A shape with kMany scores or more is compiled at once, others when the shape is seen for the
  // kOften-th time. Shapes with fewer than kFewQueries queries are never compiled: in text generation each length occurs once.
  static constexpr int64_t kMany = int64_t{1} << 22, kFewQueries = 16;
  static constexpr int kOften = 3;

  Attentions(const CudaDevice& device, const gpu::VendorLibrary<Cudnn>& library) : device_(device), library_(library) {}
  ~Attentions();
  Attentions(const Attentions&) = delete;

  // True if the library has a plan for it. Makes and caches the plan, or the fact that there is none.
  bool takes(const ir::Attention& op);
  // Work memory in bytes: the plan's own, the sums of Backward, and its query gradient in float32.
  struct Room {
    size_t plan = 0, sums = 0, query = 0;
  };
  // Throws RuntimeError if there is no plan.
  Room room(const ir::Attention& op);
  // Enqueues it on the stream. If the library fails, throws RuntimeError and does not use the library for this shape again.
  void start(const ir::Attention& op, void* workspace, void* sums, void* query, CUstream stream);

 private:
  struct Plan;
  std::shared_ptr<Plan> plan_of(const DnnAttention& attention);
  std::shared_ptr<Plan> must_have(const ir::Attention& op);
  void make(Plan& plan, const DnnAttention& attention);
  bool open();
  void check(int status, const char* function) const;

  const CudaDevice& device_;
  const gpu::VendorLibrary<Cudnn>& library_;
  std::mutex mutex_;
  bool opened_ = false;
  int version_ = 0;
  const Cudnn* functions_ = nullptr;
  cudnnHandle_t handle_ = nullptr;
  std::map<DnnAttention, std::shared_ptr<Plan>> plans_;
};

}  // namespace naru::backends::cuda
