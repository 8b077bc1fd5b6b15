// Formatting of tensors, shapes, dtypes and devices for fmt (if its headers are installed) and std::format (if the library has it):
//   fmt::print("{}\n", t);    std::format("{} of {}", t, t.dtype())
#pragma once

#include "naru/print.h"

#if __has_include(<fmt/format.h>)
#include <fmt/format.h>
#endif
#if __has_include(<format>)
#include <format>
#endif

namespace naru::detail {

inline std::string text_of(const Tensor& t) { return t.str(); }
inline std::string text_of(const Dims& d) { return d.str(); }
inline std::string text_of(Device d) { return d.str(); }
inline std::string_view text_of(DType t) { return name_of(t); }

// Width and alignment, as for any string.
template <class Base>
struct TextFormatter : Base {
  template <class T, class Context>
  auto format(const T& value, Context& context) const {
    const auto& text = text_of(value);
    return Base::format(text, context);
  }
};

}  // namespace naru::detail

#if __has_include(<fmt/format.h>)
template <>
struct fmt::formatter<naru::Tensor> : naru::detail::TextFormatter<fmt::formatter<std::string_view>> {};
template <>
struct fmt::formatter<naru::Dims> : naru::detail::TextFormatter<fmt::formatter<std::string_view>> {};
template <>
struct fmt::formatter<naru::Device> : naru::detail::TextFormatter<fmt::formatter<std::string_view>> {};
template <>
struct fmt::formatter<naru::DType> : naru::detail::TextFormatter<fmt::formatter<std::string_view>> {};
#endif

#ifdef __cpp_lib_format
template <>
struct std::formatter<naru::Tensor> : naru::detail::TextFormatter<std::formatter<std::string_view>> {};
template <>
struct std::formatter<naru::Dims> : naru::detail::TextFormatter<std::formatter<std::string_view>> {};
template <>
struct std::formatter<naru::Device> : naru::detail::TextFormatter<std::formatter<std::string_view>> {};
template <>
struct std::formatter<naru::DType> : naru::detail::TextFormatter<std::formatter<std::string_view>> {};
#endif
