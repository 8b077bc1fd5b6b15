#include "naru/scalar.h"

#include "naru/error.h"

namespace naru {

int64_t Scalar::too_great() const {
  throw RuntimeError("value cannot be converted to type int64_t without overflow (got {})", static_cast<uint64_t>(int_));
}

double Scalar::without_imaginary(const char* type) const {
  if (imag_ != 0)
    throw RuntimeError("value cannot be converted to type {} without overflow (got {}{:+}j; take its real or its imaginary part)", type,
                       float_, imag_);
  return float_;
}

}  // namespace naru
