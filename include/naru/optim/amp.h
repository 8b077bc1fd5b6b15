// Automatic mixed precision: autocasting to 16-bit types, and loss scaling that prevents small gradients from underflowing.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "naru/device.h"
#include "naru/dtype.h"
#include "naru/optim.h"
#include "naru/tensor.h"

namespace naru {

// Enables autocasting on the calling thread within a scope: functions cast their floating-point arguments on one kind of device first,
// according to PyTorch's lists (docs/mixed-precision.md). float64 is never cast. Run backward outside of the scope.
//
//   { Autocast block(DeviceType::Cuda); loss = cross_entropy(model(x), y); }
class Autocast {
 public:
  // dtype: float16 or bfloat16; the default is float16, on cpu bfloat16 (TypeError for others). enabled = false disables autocasting within
  // an outer scope. cache: cast each weight only once in the outermost scope.
  explicit Autocast(DeviceType kind, std::optional<DType> dtype = {}, bool enabled = true, bool cache = true);
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  ~Autocast();

 private:
  DeviceType kind_;
  bool on_before_, cache_before_;
  DType dtype_before_;
};

// Scales losses, so that float16 gradients do not underflow, and unscales the gradients before the step. Skips a step whose gradients are
// not finite, and then reduces the scale. Like torch.amp.GradScaler.
class GradScaler {
 public:
  struct Options {
    double init_scale = 65536, growth_factor = 2, backoff_factor = 0.5;
    int growth_interval = 2000;
    bool enabled = true;
  };
  // Throws ValueError unless growth_factor > 1 > backoff_factor > 0.
  explicit GradScaler(Options options);
  GradScaler() : GradScaler(Options{}) {}

  Tensor scale(const Tensor& loss);
  // Divides the optimizer's gradients by the scale and checks whether they are finite. Call it at most once between updates. Throws
  // RuntimeError if called again or before scale(), ValueError for float16 gradients.
  void unscale_(optim::Optimizer& optimizer);
  // Calls optimizer.step() if all gradients are finite. Returns whether it did; if not, why() gives the reason.
  bool step(optim::Optimizer& optimizer);
  // Call once per iteration, after all steps.
  void update();

  double get_scale() const noexcept { return options_.enabled ? scale_ : 1; }
  const std::string& why() const noexcept { return why_; }

 private:
  enum class Stage : uint8_t { Ready, Unscaled, Stepped };
  struct Progress {
    Stage stage = Stage::Ready;
    bool bad = false;
    std::string why;
  };
  Options options_;
  double scale_;
  int good_ = 0;  // consecutive steps with finite gradients
  bool used_ = false;
  Progress& progress_of(const optim::Optimizer& optimizer);
  std::vector<std::pair<const optim::Optimizer*, Progress>> progress_;
  std::string why_;
};

}  // namespace naru
