#include "core/sizes.h"

#include "naru/error.h"

namespace naru {
namespace {
[[noreturn]] void fail_overflow() { throw RuntimeError("numel: integer multiplication overflow"); }
}  // namespace

int64_t checked_product(std::span<const int64_t> sizes) {
  int64_t n = 1;
  bool overflow = false;
  for (int64_t d : sizes) overflow |= __builtin_mul_overflow(n, d, &n);
  if (overflow) [[unlikely]] {
    for (int64_t d : sizes)
      if (d == 0) return 0;
    fail_overflow();
  }
  return n;
}

int64_t times(int64_t a, int64_t b) {
  int64_t n = 0;
  if (__builtin_mul_overflow(a, b, &n)) fail_overflow();
  return n;
}

int64_t plus(int64_t a, int64_t b) {
  int64_t n = 0;
  if (__builtin_add_overflow(a, b, &n)) throw RuntimeError("numel: integer addition overflow ({} + {})", a, b);
  return n;
}

}  // namespace naru
