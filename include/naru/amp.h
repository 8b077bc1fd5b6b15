// Mixed precision: products in 16 bits, what needs range or digits in float32, and losses scaled so that small gradients survive.
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

// A block, from construction to destruction, on the calling thread: the floating-point tensors on one kind of device that are handed to a
// function are cast first, as PyTorch's lists say (docs/mixed-precision.md). float64 is never cast. Gradients are computed outside of it.
//
//   { Autocast block(DeviceType::Cuda); loss = cross_entropy(model(x), y); }
class Autocast {
 public:
  // dtype: float16 or bfloat16; by default float16, on cpu bfloat16. enabled = false: a block without it inside another.
  // cache: whether a weight is cast once in the outermost block. Throws TypeError for other types.
  explicit Autocast(DeviceType kind, std::optional<DType> dtype = {}, bool enabled = true, bool cache = true);
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;
  ~Autocast();

 private:
  DeviceType kind_;
  bool on_before_, cache_before_;
  DType dtype_before_;
};

// Multiplies losses by a scale, so that float16 gradients do not vanish; divides the gradients before the step; skips a step whose gradients
// are not finite, and then makes the scale smaller. As torch.amp.GradScaler.
class GradScaler {
 public:
  struct Options {
    double init_scale = 65536, growth_factor = 2, backoff_factor = 0.5;
    int growth_interval = 2000;
    bool enabled = true;
  };
  // ValueError unless growth_factor > 1 > backoff_factor > 0.
  explicit GradScaler(Options options);
  GradScaler() : GradScaler(Options{}) {}

  Tensor scale(const Tensor& loss);
  // Divides the optimizer's gradients by the scale and looks for those that are not finite; once between updates. RuntimeError for a second
  // time, or before scale(); ValueError for float16 gradients.
  void unscale_(optim::Optimizer& optimizer);
  // optimizer.step(), unless a gradient is not finite. Whether it was done; if not, why() says what was found.
  bool step(optim::Optimizer& optimizer);
  // Once an iteration, after all steps.
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
  int good_ = 0;  // steps in a row
  bool used_ = false;
  Progress& progress_of(const optim::Optimizer& optimizer);
  std::vector<std::pair<const optim::Optimizer*, Progress>> progress_;
  std::string why_;
};

}  // namespace naru
