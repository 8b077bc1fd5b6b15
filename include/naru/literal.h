// Literal: the argument of tensor(...): a number, nested braces of numbers of any depth, vectors, spans and arrays.
//
//   tensor({{1, 2}, {3, 4}})            int64, shape (2, 2)
//   tensor({{1.5, 2}, {3, 4}})          the default floating-point dtype, as in Python
//   tensor({true, false})               bool
//   tensor(std::vector<uint8_t>{1, 2})  uint8: integers of int's size and larger become int64, smaller ones keep their type
#pragma once

#include <array>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "naru/dims.h"
#include "naru/dtype.h"
#include "naru/error.h"
#include "naru/scalar.h"

namespace naru {

template <class T>
concept LiteralNumber = std::is_arithmetic_v<T> && !std::same_as<T, char>;

class Literal {
 public:
  Literal() = default;  // {}: no elements
  template <LiteralNumber T>
  Literal(T number) : kind_(Kind::Number), dtype_(type_of<T>()), number_(checked(number)) {}
  Literal(Scalar number) : kind_(Kind::Number), dtype_(number.dtype()), number_(number) {}
  template <ComplexNumber C>
  Literal(const C& number) : Literal(Scalar(number)) {}
  Literal(std::initializer_list<Literal> parts);
  // Vectors, spans and arrays of numbers are referenced, not copied; they must outlive the expression.
  template <class R>
  requires LiteralNumber<std::remove_cvref_t<decltype(*std::data(std::declval<const R&>()))>> Literal(const R& numbers)
      : Literal(std::data(numbers), std::size(numbers)) {}
  Literal(const std::vector<bool>& numbers);
  template <class T>
  requires(!LiteralNumber<T>) Literal(const std::vector<T>& parts) : parts_(parts.begin(), parts.end()) {}

  // Throws ValueError if sibling lists differ in length, TypeError if a number and a list are siblings.
  Dims shape() const;
  // The dtype that represents all elements; the default floating-point dtype if there are none.
  DType dtype() const;
  // Calls f(Scalar) for each element, in row-major order.
  template <class F>
  void each(const F& f) const {
    if (kind_ == Kind::Number) f(number_);
    for (size_t i = 0; i < count_; ++i) f(read_(numbers_, i));
    for (const Literal& p : parts_) p.each(f);
  }
  // The value, if the literal is a single number; else null.
  const Scalar* number() const noexcept { return kind_ == Kind::Number ? &number_ : nullptr; }
  // The numbers, if their memory layout is that of a tensor of dtype number_type(); else null.
  const void* numbers() const noexcept { return as_they_lie_ ? numbers_ : nullptr; }
  DType number_type() const noexcept { return dtype_; }

 private:
  enum class Kind : uint8_t { Braces, Number, Numbers };

  template <class T>
  Literal(const T* numbers, size_t count)
      : kind_(Kind::Numbers),
        dtype_(type_of<T>()),
        as_they_lie_(sizeof(T) == size_of(type_of<T>()) && !(std::is_unsigned_v<T> && sizeof(T) > 1)),
        count_(count),
        numbers_(numbers),
        read_([](const void* all, size_t i) { return checked(static_cast<const T*>(all)[i]); }) {}
  template <class T>
  static constexpr DType type_of() {
    if (std::is_same_v<T, bool>) return DType::Bool;
    if (std::is_floating_point_v<T>) return sizeof(T) == 4 ? DType::F32 : DType::F64;
    if (sizeof(T) == 1) return std::is_signed_v<T> ? DType::I8 : DType::U8;
    return sizeof(T) == 2 && std::is_signed_v<T> ? DType::I16 : DType::I64;
  }
  template <class T>
  static Scalar checked(T v) {
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8)
      if (v > static_cast<T>(INT64_MAX)) throw RuntimeError("tensor: value cannot be converted to type int64_t without overflow");
    return Scalar(v);
  }
  void add_type(DType& all, bool& any) const;

  Kind kind_ = Kind::Braces;
  DType dtype_ = DType::F32;  // of number_ or numbers_
  bool as_they_lie_ = false;
  std::vector<Literal> parts_;  // of nested braces
  Scalar number_;
  size_t count_ = 0;
  const void* numbers_ = nullptr;
  Scalar (*read_)(const void*, size_t) = nullptr;
};

}  // namespace naru
