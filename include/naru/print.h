// Tensors as text, the same in C++ and Python: std::cout << t, t.str(), repr(t). naru/format.h has what fmt and std::format need.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "naru/tensor.h"

namespace naru {

// How tensors are written. A tensor on a device is copied to the host for it, of a large one the edges only.
struct PrintOptions {
  int precision = 4;                  // digits behind the point
  double threshold = 1000;            // a tensor with more elements is summarised
  int64_t edgeitems = 3;              // elements shown at each end of a summarised dimension
  int64_t linewidth = 80;             // characters
  std::optional<bool> sci_mode = {};  // scientific notation; unset: the values decide

  // "default", "short" or "full". Throws ValueError for any other name.
  static PrintOptions profile(std::string_view name);
};

// What is used where no options are given; for all threads.
PrintOptions print_options();
// Throws ValueError where precision, edgeitems or linewidth are negative.
void set_print_options(const PrintOptions& options);

// Sets options, and puts the former ones back at the end of its scope.
class WithPrintOptions {
 public:
  explicit WithPrintOptions(const PrintOptions& options) : former_(print_options()) { set_print_options(options); }
  WithPrintOptions(const WithPrintOptions&) = delete;
  WithPrintOptions& operator=(const WithPrintOptions&) = delete;
  ~WithPrintOptions() { set_print_options(former_); }

 private:
  PrintOptions former_;
};

// "tensor([1., 2.])": the elements, then what differs from the defaults: device, size, dtype, the graph. "tensor(undefined)" of an undefined one.
std::string str(const Tensor& t, const PrintOptions& options = print_options());
std::string str(const Tensor& t, const PrintOptions& options, std::string_view prefix);

std::ostream& operator<<(std::ostream& out, const Tensor& t);
std::ostream& operator<<(std::ostream& out, const Dims& dims);      // [2, 3]
std::ostream& operator<<(std::ostream& out, Device device);         // cuda:0
std::ostream& operator<<(std::ostream& out, DType dtype);           // float32
std::ostream& operator<<(std::ostream& out, const Scalar& number);  // 2.5, 3, true

}  // namespace naru
