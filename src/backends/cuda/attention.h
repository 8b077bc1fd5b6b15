// Attention by cuDNN, where there is one that takes it; elsewhere it is products and a softmax (ops/attention.h).
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

// An attention as cuDNN is told of it. Strides of sizes of 1 are those of row-major order, so that equal work has one plan; the bias has sizes of 1
// where it repeats. What Forward has no use for is 0.
struct DnnAttention {
  ir::Attention::Use use = ir::Attention::Use::Forward;
  int type = 0, bias_type = -1;  // -1: no bias
  bool causal = false;
  Sizes4 q_sizes{}, k_sizes{}, v_sizes{}, out_sizes{}, bias_sizes{};
  Sizes4 q{}, k{}, v{}, out{}, bias{}, dout{}, dq{}, dk{}, dv{};  // strides
  auto operator<=>(const DnnAttention&) const = default;
};
// Nothing where it is not for the library: types, sizes and strides that it does not take. version: 91900 is cuDNN 9.19.0.
std::optional<DnnAttention> for_cudnn(const ir::Attention& op, int version) noexcept;

// By these its operations' tensors are told apart.
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
  Sums,       // float32, of each query: its gradient times its result
  QuerySums,  // float32: the query's gradient before it is rounded
  Scale,      // numbers of the host's: float32
  Hidden,     // minus infinity
  One,
  Inner,  // the first of those that are nowhere but within the kernel
};
// The operations, as the library's engines for attention know them.
void add_attention(DnnGraph& graph, const DnnAttention& attention);

// The attentions of one device: a handle, and a plan of each shape. Thread-safe. The device's context must be current.
class Attentions {
 public:
  // Plans kept; beyond that no more are made.
  static constexpr size_t kMostPlans = 512;
  // A plan is compiled, which takes half a second: at once for so many scores, of fewer when the shape is met so often; and never for so few queries
  // (of text that grows word by word, each length is met once).
  static constexpr int64_t kMany = int64_t{1} << 22, kFewQueries = 16;
  static constexpr int kOften = 3;

  Attentions(const CudaDevice& device, const VendorLibrary<Cudnn>& library) : device_(device), library_(library) {}
  ~Attentions();
  Attentions(const Attentions&) = delete;

  // Whether the library has a plan for it; made here and kept, as is that it has none.
  bool takes(const ir::Attention& op);
  // Bytes that it works in: the plan's own, the sums of Backward and its query's gradient in float32.
  struct Room {
    size_t plan = 0, sums = 0, query = 0;
  };
  // Throws RuntimeError where there is no plan.
  Room room(const ir::Attention& op);
  // Puts it on the stream. Throws RuntimeError where the library fails, and takes the shape no more.
  void start(const ir::Attention& op, void* workspace, void* sums, void* query, CUstream stream);

 private:
  struct Plan;
  std::shared_ptr<Plan> plan_of(const DnnAttention& attention);
  std::shared_ptr<Plan> must_have(const ir::Attention& op);
  void make(Plan& plan, const DnnAttention& attention);
  bool open();
  void check(int status, const char* function) const;

  const CudaDevice& device_;
  const VendorLibrary<Cudnn>& library_;
  std::mutex mutex_;
  bool opened_ = false;
  int version_ = 0;
  const Cudnn* functions_ = nullptr;
  cudnnHandle_t handle_ = nullptr;
  std::map<DnnAttention, std::shared_ptr<Plan>> plans_;
};

}  // namespace naru::backends::cuda
