// libtorch's checks and warnings. Their messages are the values after the condition, one behind the other, as << writes them.
#pragma once

#include <sstream>
#include <string>

#include "naru/error.h"
#include "naru/print.h"

namespace torch::detail {

template <class T>
void write(std::ostream& out, const T& value) {
  // ScalarTypes as libtorch writes them: Float, Long.
  if constexpr (std::is_same_v<T, naru::DType>)
    out << naru::traits_of(value).scalar_type;
  else
    out << value;
}

template <class... A>
std::string text_of(const A&... parts) {
  std::ostringstream text;
  (write(text, parts), ...);
  return text.str();
}

template <class... A>
std::string text_or(const char* condition, const A&... parts) {
  if constexpr (sizeof...(A) == 0)
    return std::string("Expected ") + condition + " to be true, but got false.";
  else
    return text_of(parts...);
}

template <class A, class B, class... Rest>
std::string comparison_text(const char* text, const A& a, const B& b, const Rest&... rest) {
  return text_of("Check failed: ", text, " (", a, " vs. ", b, "). ", rest...);
}

}  // namespace torch::detail

// clang-format off
#define NARU_TORCH_CHECK(error, condition, ...)                                                             \
  do {                                                                                                      \
    if (!(condition)) throw naru::error("{}", torch::detail::text_or(#condition __VA_OPT__(,) __VA_ARGS__)); \
  } while (false)
#define NARU_TORCH_COMPARE(op, a, b, ...)                                                                                    \
  do {                                                                                                                       \
    if (!((a) op (b)))                                                                                                       \
      throw naru::RuntimeError("{}", torch::detail::comparison_text(#a " " #op " " #b, a, b __VA_OPT__(,) __VA_ARGS__)); \
  } while (false)
// clang-format on

#define TORCH_CHECK(...) NARU_TORCH_CHECK(RuntimeError, __VA_ARGS__)
#define TORCH_CHECK_INDEX(...) NARU_TORCH_CHECK(IndexError, __VA_ARGS__)
#define TORCH_CHECK_VALUE(...) NARU_TORCH_CHECK(ValueError, __VA_ARGS__)
#define TORCH_CHECK_TYPE(...) NARU_TORCH_CHECK(TypeError, __VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(...) NARU_TORCH_CHECK(NotImplementedError, __VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(...) NARU_TORCH_CHECK(RuntimeError, __VA_ARGS__)
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...) NARU_TORCH_CHECK(RuntimeError, __VA_ARGS__)
#define TORCH_CHECK_EQ(a, ...) NARU_TORCH_COMPARE(==, a, __VA_ARGS__)
#define TORCH_CHECK_NE(a, ...) NARU_TORCH_COMPARE(!=, a, __VA_ARGS__)
#define TORCH_CHECK_LT(a, ...) NARU_TORCH_COMPARE(<, a, __VA_ARGS__)
#define TORCH_CHECK_LE(a, ...) NARU_TORCH_COMPARE(<=, a, __VA_ARGS__)
#define TORCH_CHECK_GT(a, ...) NARU_TORCH_COMPARE(>, a, __VA_ARGS__)
#define TORCH_CHECK_GE(a, ...) NARU_TORCH_COMPARE(>=, a, __VA_ARGS__)
#define AT_ASSERT(...) TORCH_CHECK(__VA_ARGS__)
#define AT_ASSERTM(...) TORCH_CHECK(__VA_ARGS__)
#define AT_CHECK(...) TORCH_CHECK(__VA_ARGS__)
#define AT_ERROR(...) throw naru::RuntimeError("{}", torch::detail::text_of(__VA_ARGS__))
#define TORCH_WARN(...) naru::warn(torch::detail::text_of(__VA_ARGS__))
#define TORCH_WARN_ONCE(...)                                                     \
  do {                                                                           \
    [[maybe_unused]] static const bool warned = (TORCH_WARN(__VA_ARGS__), true); \
  } while (false)
#define TORCH_API
#define C10_EXPORT
#define C10_ALWAYS_INLINE inline
#define C10_UNUSED [[maybe_unused]]
#define C10_HOST_DEVICE
#define C10_RESTRICT __restrict
