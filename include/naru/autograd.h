// Automatic differentiation: gradient mode, gradients of given inputs, hooks.
#pragma once

#include <vector>

#include "naru/tensor.h"

namespace naru {

// Whether operators record their history on this thread (true unless switched off).
bool grad_enabled() noexcept;
// Returns what it was.
bool set_grad_enabled(bool on) noexcept;

// Within its life no history is recorded on this thread.
class NoGrad {
 public:
  NoGrad() : before_(set_grad_enabled(false)) {}
  ~NoGrad() { set_grad_enabled(before_); }
  NoGrad(const NoGrad&) = delete;

 private:
  bool before_;
};
class EnableGrad {
 public:
  EnableGrad() : before_(set_grad_enabled(true)) {}
  ~EnableGrad() { set_grad_enabled(before_); }
  EnableGrad(const EnableGrad&) = delete;

 private:
  bool before_;
};

// Within its life this thread records no history, and what it makes are inference tensors: outside of it they may be read, but not written to,
// nor saved for backward, nor made to require gradients (RuntimeError; a clone may). With false: an EnableGrad within an InferenceMode.
class InferenceMode {
 public:
  explicit InferenceMode(bool on = true);
  ~InferenceMode();
  InferenceMode(const InferenceMode&) = delete;

 private:
  bool inference_, grad_;
};
// Whether this thread is within one.
bool is_inference_mode_enabled() noexcept;

// While anomaly detection is on, operators remember the program's stack. A backward that fails shows, as a warning, where the operator was called;
// with check_nan, a gradient with NaN in it is such a failure (RuntimeError). For all threads; slow.
void set_detect_anomaly(bool on, bool check_nan = true) noexcept;
bool anomaly_enabled() noexcept;
bool anomaly_check_nan_enabled() noexcept;
class DetectAnomaly {
 public:
  explicit DetectAnomaly(bool check_nan = true) : before_(anomaly_enabled()), check_before_(anomaly_check_nan_enabled()) {
    set_detect_anomaly(true, check_nan);
  }
  ~DetectAnomaly() { set_detect_anomaly(before_, check_before_); }
  DetectAnomaly(const DetectAnomaly&) = delete;

 private:
  bool before_, check_before_;
};

// Gradients of `outputs` (weighted by `gradients`; undefined ones count as 1, for one element) with respect to `inputs`, without touching
// anyone's grad. An input the outputs do not depend on gives an undefined tensor if allow_unused, else a RuntimeError.
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs, const std::vector<Tensor>& gradients = {},
                         bool retain_graph = false, bool create_graph = false, bool allow_unused = false);
// Accumulates the gradients into the leaves' grad (only of `inputs`, if any are named).
void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients = {}, bool retain_graph = false,
              bool create_graph = false, const std::vector<Tensor>& inputs = {});

}  // namespace naru
