// Printing tensors, the same in C++ and Python: std::cout << t, t.str(), repr(t). naru/format.h has the formatters for fmt and std::format.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "naru/tensor.h"

namespace naru {

// How tensors are printed. Printing a tensor on a device copies it to the host; of a summarized tensor, only the edges.
struct PrintOptions {
  int precision = 4;                  // digits after the decimal point
  double threshold = 1000;            // tensors with more elements are summarized
  int64_t edgeitems = 3;              // elements printed at each end of a summarized dimension
  int64_t linewidth = 80;             // characters
  std::optional<bool> sci_mode = {};  // scientific notation; unset: chosen by the values

  // "default", "short" or "full". Throws ValueError for any other name.
  static PrintOptions profile(std::string_view name);
};

// The default options, for all threads.
PrintOptions print_options();
// Throws ValueError if precision, edgeitems or linewidth is negative.
void set_print_options(const PrintOptions& options);

// Sets options, and restores the previous ones at the end of the scope.
class WithPrintOptions {
 public:
  explicit WithPrintOptions(const PrintOptions& options) : former_(print_options()) { set_print_options(options); }
  WithPrintOptions(const WithPrintOptions&) = delete;
  WithPrintOptions& operator=(const WithPrintOptions&) = delete;
  ~WithPrintOptions() { set_print_options(former_); }

 private:
  PrintOptions former_;
};

// "tensor([1., 2.])": the elements, then what differs from the defaults: device, size, dtype, requires_grad or grad_fn. An undefined tensor
// is "tensor(undefined)".
std::string str(const Tensor& t, const PrintOptions& options = print_options());
std::string str(const Tensor& t, const PrintOptions& options, std::string_view prefix);

std::ostream& operator<<(std::ostream& out, const Tensor& t);
std::ostream& operator<<(std::ostream& out, const Dims& dims);      // [2, 3]
std::ostream& operator<<(std::ostream& out, Device device);         // cuda:0
std::ostream& operator<<(std::ostream& out, DType dtype);           // float32
std::ostream& operator<<(std::ostream& out, const Scalar& number);  // 2.5, 3, true

}  // namespace naru
