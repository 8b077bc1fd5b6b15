// Automatic differentiation: gradient mode and gradients with respect to given inputs.
#pragma once

#include <vector>

#include "naru/tensor.h"

namespace naru {

// True if operators record history on this thread (the default).
bool grad_enabled() noexcept;
// Returns the previous setting.
bool set_grad_enabled(bool on) noexcept;

// Disables recording of history on this thread within a scope.
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

// Within a scope, this thread records no history and creates inference tensors. Outside of the scope these may be read, but writing to
// them, saving them for backward or making them require gradients throws RuntimeError (a clone is a normal tensor). With false, enables
// gradients within an outer InferenceMode.
class InferenceMode {
 public:
  explicit InferenceMode(bool on = true);
  ~InferenceMode();
  InferenceMode(const InferenceMode&) = delete;

 private:
  bool inference_, grad_;
};
// True inside an InferenceMode on this thread.
bool is_inference_mode_enabled() noexcept;

// With anomaly detection, operators record the program's stack. If backward fails, a warning shows where the operator was called; with
// check_nan, a NaN in a gradient counts as a failure (RuntimeError). Applies to all threads; slow.
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

// Returns the gradients of `outputs` with respect to `inputs`, without changing any tensor's grad. `gradients` are the outputs' gradients
// (vector-Jacobian product); an undefined one means 1 and requires an output with one element. For an input that the outputs do not depend
// on, returns an undefined tensor if allow_unused, else throws RuntimeError.
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs, const std::vector<Tensor>& gradients = {},
                         bool retain_graph = false, bool create_graph = false, bool allow_unused = false);
// Accumulates gradients into the grad of the leaves, or only of `inputs` if that is not empty.
void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients = {}, bool retain_graph = false,
              bool create_graph = false, const std::vector<Tensor>& inputs = {});

}  // namespace naru
