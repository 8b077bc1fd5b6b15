// The errors naru throws. All derive from Error; Python sees the built-in kind that PyTorch raises. What Python calls a RuntimeError is one here.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "naru/place.h"
#include "naru/standard.h"

namespace naru {

// What Python raises for an error.
enum class ErrorKind { Runtime, Type, Value, Index, NotImplemented, OutOfMemory, Import, Key, Buffer };

namespace detail {

// One value of a message.
struct MessageValue {
  enum class Kind : uint8_t { Int, Unsigned, Float, Double, Bool, Char, Text } kind;
  union {
    long long whole;
    unsigned long long count;
    float small;
    double number;
    bool truth;
    char letter;
    std::string_view text;
  };
  MessageValue(bool v) : kind(Kind::Bool), truth(v) {}
  MessageValue(char v) : kind(Kind::Char), letter(v) {}
  MessageValue(float v) : kind(Kind::Float), small(v) {}
  MessageValue(double v) : kind(Kind::Double), number(v) {}
  MessageValue(std::string_view v) : kind(Kind::Text), text(v) {}
  MessageValue(const std::string& v) : kind(Kind::Text), text(v) {}
  MessageValue(const char* v) : kind(Kind::Text), text(v) {}
  template <class T>
  requires std::is_integral_v<T> MessageValue(T v)
      : kind(std::is_signed_v<T> ? Kind::Int : Kind::Unsigned), whole(static_cast<long long>(v)) {}
};

// A format in the language of fmt and std::format, with as many fields as there are values; does not compile with more or fewer.
template <size_t Values>
struct MessageFormat {
  const char* text;
  consteval MessageFormat(const char* format) : text(format) {
    size_t fields = 0, greatest = 0;
    bool numbered = false;
    for (const char* p = format; *p; ++p) {
      if (*p != '{' && *p != '}') continue;
      if (p[0] == p[1]) {
        ++p;
        continue;
      }
      if (*p == '}') throw "a '}' that closes nothing";
      ++fields;
      if (p[1] >= '0' && p[1] <= '9') {
        numbered = true;
        const auto n = static_cast<size_t>(p[1] - '0') + 1;
        if (n > greatest) greatest = n;
      }
      while (*p && *p != '}')
        if (*++p == '{') ++fields;  // {:{}}
      if (!*p) throw "a '{' that is not closed";
    }
    if ((numbered ? greatest : fields) != Values) throw "not as many fields as values";
  }
};

std::string message(const char* format, std::initializer_list<MessageValue> values);

}  // namespace detail

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& text);
  ErrorKind kind() const noexcept { return kind_; }
  // The message, and behind it the place in the program, where that is known (naru/place.h).
  const char* what() const noexcept override;
  void set_place(Place place);

 private:
  ErrorKind kind_;
  std::shared_ptr<const std::string> placed_;
};

namespace detail {
// f(); its errors name the place.
template <class F>
decltype(auto) at_place(Place where, const F& f) {
  try {
    return f();
  } catch (Error& e) {
    e.set_place(where);
    throw;
  }
}
}  // namespace detail

template <ErrorKind K, class Base = Error>
class ErrorOf : public Base {
 public:
  explicit ErrorOf(const std::string& text) : ErrorOf(K, text) {}
  // RuntimeError("wanted {}, got {}", 1, n)
  template <class... Args>
  requires(sizeof...(Args) > 0) explicit ErrorOf(detail::MessageFormat<sizeof...(Args)> format, const Args&... args)
      : ErrorOf(K, detail::message(format.text, {detail::MessageValue(args)...})) {}

 protected:
  ErrorOf(ErrorKind kind, const std::string& text) : Base(kind, text) {}
};

using RuntimeError = ErrorOf<ErrorKind::Runtime>;
using TypeError = ErrorOf<ErrorKind::Type>;
using ValueError = ErrorOf<ErrorKind::Value>;
using IndexError = ErrorOf<ErrorKind::Index>;
using BufferError = ErrorOf<ErrorKind::Buffer>;  // memory that can't be lent or borrowed
using NotImplementedError = ErrorOf<ErrorKind::NotImplemented, RuntimeError>;
using OutOfMemoryError = ErrorOf<ErrorKind::OutOfMemory, RuntimeError>;

// Operands live on different devices.
class DeviceMismatchError : public RuntimeError {
 public:
  explicit DeviceMismatchError(const std::string& text) : RuntimeError(text) {}
};

// A device was asked for that this machine does not have, or that does not work.
class DeviceUnavailableError : public RuntimeError {
 public:
  explicit DeviceUnavailableError(const std::string& text) : RuntimeError(text) {}
};

// A device stopped working; everything on it is gone.
class DeviceLostError : public RuntimeError {
 public:
  explicit DeviceLostError(const std::string& text) : RuntimeError(text) {}
};

// The host was about to wait for a device where that is forbidden (see naru/sync.h).
class SynchronizationError : public RuntimeError {
 public:
  explicit SynchronizationError(const std::string& text) : RuntimeError(text) {}
};

// A matrix is not what a function of linear algebra can work with: singular, not positive-definite, or its algorithm does not converge.
class LinAlgError : public Error {
 public:
  explicit LinAlgError(const std::string& text) : Error(ErrorKind::Runtime, text) {}
};

// Throws the class of that kind: for errors that are told again elsewhere.
[[noreturn]] void throw_error(ErrorKind kind, const std::string& text);

// What the library warns of (fallbacks, synchronizations, deprecated uses ...) goes to the warner; to stderr where none is set. It may throw, and
// take locks of its own (Python does): nothing is locked meanwhile.
void warn(const std::string& text);
void set_warner(void (*warner)(const std::string& text));

}  // namespace naru
