// The errors naru throws. All derive from Error; Python sees the built-in kind that PyTorch raises.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace naru {

// What Python raises for an error.
enum class ErrorKind { Runtime, Type, Value, Index, NotImplemented, OutOfMemory, Import, Key };

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

template <ErrorKind K>
class ErrorOf : public Error {
 public:
  explicit ErrorOf(const std::string& text) : Error(K, text) {}
  template <class... Args>
  requires(sizeof...(Args) > 0) explicit ErrorOf(fmt::format_string<Args...> format, Args&&... args)
      : Error(K, fmt::format(format, std::forward<Args>(args)...)) {}
};

using RuntimeError = ErrorOf<ErrorKind::Runtime>;
using TypeError = ErrorOf<ErrorKind::Type>;
using ValueError = ErrorOf<ErrorKind::Value>;
using IndexError = ErrorOf<ErrorKind::Index>;
using NotImplementedError = ErrorOf<ErrorKind::NotImplemented>;
using OutOfMemoryError = ErrorOf<ErrorKind::OutOfMemory>;

// Operands live on different devices.
class DeviceMismatchError : public Error {
 public:
  explicit DeviceMismatchError(const std::string& text) : Error(ErrorKind::Runtime, text) {}
};

// A device was asked for that this machine does not have, or that does not work.
class DeviceUnavailableError : public Error {
 public:
  explicit DeviceUnavailableError(const std::string& text) : Error(ErrorKind::Runtime, text) {}
};

// A device stopped working; everything on it is gone.
class DeviceLostError : public Error {
 public:
  explicit DeviceLostError(const std::string& text) : Error(ErrorKind::Runtime, text) {}
};

// The host was about to wait for a device where that is forbidden (see naru/sync.h).
class SynchronizationError : public Error {
 public:
  explicit SynchronizationError(const std::string& text) : Error(ErrorKind::Runtime, text) {}
};

// A matrix is not what a function of linear algebra can work with: singular, not positive-definite, or its algorithm does not converge.
class LinAlgError : public Error {
 public:
  explicit LinAlgError(const std::string& text) : Error(ErrorKind::Runtime, text) {}
};

// Throws the class of that kind: for errors that are told again elsewhere.
[[noreturn]] inline void throw_error(ErrorKind kind, const std::string& text) {
  switch (kind) {
    case ErrorKind::Type:
      throw TypeError(text);
    case ErrorKind::Value:
      throw ValueError(text);
    case ErrorKind::Index:
      throw IndexError(text);
    case ErrorKind::NotImplemented:
      throw NotImplementedError(text);
    case ErrorKind::OutOfMemory:
      throw OutOfMemoryError(text);
    case ErrorKind::Runtime:
      throw RuntimeError(text);
    case ErrorKind::Import:
    case ErrorKind::Key:
      break;
  }
  throw Error(kind, text);
}

// What the library warns of (fallbacks, synchronizations, deprecated uses ...) goes to the warner; to stderr where none is set. It may throw, and
// take locks of its own (Python does): nothing is locked meanwhile.
void warn(const std::string& text);
void set_warner(void (*warner)(const std::string& text));

}  // namespace naru
