// The errors that naru throws. All derive from Error. Each has the kind of Python exception that PyTorch raises; what is a RuntimeError in
// Python is a RuntimeError here.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "naru/source_location.h"
#include "naru/standard.h"

namespace naru {

// The Python exception that an error becomes.
enum class ErrorKind { Runtime, Type, Value, Index, NotImplemented, OutOfMemory, Import, Key, Buffer };

namespace detail {

// One argument of a message.
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

// A format string in the syntax of fmt and std::format. Does not compile unless it has exactly `Values` fields.
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
  // The message, followed by the source location if it is known (naru/source_location.h).
  const char* what() const noexcept override;
  void set_location(SourceLocation place);
  // libtorch's names.
  const char* what_without_backtrace() const noexcept { return what(); }
  std::string msg() const { return what(); }

 private:
  ErrorKind kind_;
  std::shared_ptr<const std::string> placed_;
};

namespace detail {
// Runs f(); attaches the source location to the errors that it throws.
template <class F>
decltype(auto) with_location(SourceLocation where, const F& f) {
  try {
    return f();
  } catch (Error& e) {
    e.set_location(where);
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
using BufferError = ErrorOf<ErrorKind::Buffer>;  // memory that can't be exported or imported
using NotImplementedError = ErrorOf<ErrorKind::NotImplemented, RuntimeError>;
using OutOfMemoryError = ErrorOf<ErrorKind::OutOfMemory, RuntimeError>;

// Operands are on different devices.
class DeviceMismatchError : public RuntimeError {
 public:
  explicit DeviceMismatchError(const std::string& text) : RuntimeError(text) {}
};

// The requested device does not exist on this machine, or does not work.
class DeviceUnavailableError : public RuntimeError {
 public:
  explicit DeviceUnavailableError(const std::string& text) : RuntimeError(text) {}
};

// A device stopped working; its contents are lost.
class DeviceLostError : public RuntimeError {
 public:
  explicit DeviceLostError(const std::string& text) : RuntimeError(text) {}
};

// The host was about to wait for a device where that is forbidden (naru/device/sync.h).
class SynchronizationError : public RuntimeError {
 public:
  explicit SynchronizationError(const std::string& text) : RuntimeError(text) {}
};

// A linear algebra function can't handle the matrix: it is singular, not positive-definite, or the algorithm does not converge.
class LinAlgError : public Error {
 public:
  explicit LinAlgError(const std::string& text) : Error(ErrorKind::Runtime, text) {}
};

// Throws an error of the class for `kind`, e.g. to rethrow an error elsewhere.
[[noreturn]] void throw_error(ErrorKind kind, const std::string& text);

// Warnings (fallbacks, synchronizations, deprecated uses ...) go to the warner, or to stderr if none is set. The warner may throw and may
// acquire locks (Python's does), so the library holds no lock while it calls it.
void warn(const std::string& text);
void set_warner(void (*warner)(const std::string& text));

}  // namespace naru
