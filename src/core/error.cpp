#include "naru/error.h"

#include <fmt/args.h>
#include <fmt/format.h>

namespace naru {

std::string detail::message(const char* format, std::initializer_list<MessageValue> values) {
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  for (const MessageValue& v : values) switch (v.kind) {
      case MessageValue::Kind::Int:
        store.push_back(v.whole);
        break;
      case MessageValue::Kind::Unsigned:
        store.push_back(v.count);
        break;
      case MessageValue::Kind::Float:
        store.push_back(v.small);
        break;
      case MessageValue::Kind::Double:
        store.push_back(v.number);
        break;
      case MessageValue::Kind::Bool:
        store.push_back(v.truth);
        break;
      case MessageValue::Kind::Char:
        store.push_back(v.letter);
        break;
      case MessageValue::Kind::Text:
        store.push_back(v.text);
        break;
    }
  return fmt::vformat(format, store);
}

Error::Error(ErrorKind kind, const std::string& text) : std::runtime_error(text), kind_(kind) { set_location(current_location()); }

const char* Error::what() const noexcept { return placed_ ? placed_->c_str() : std::runtime_error::what(); }

void Error::set_location(SourceLocation place) {
  // Locations in naru's own headers are not locations in the user's program.
  const std::string_view file = place.line ? place.file : "";
  if (file.empty() || (file.ends_with(".h") && file.find("naru/") != std::string_view::npos)) return;
  const std::string text = std::runtime_error::what(), known = " (at " + place.str() + ")";
  // An error that is thrown again may already contain the location.
  if (text.find(known) == std::string::npos) placed_ = std::make_shared<const std::string>(text + known);
}

void throw_error(ErrorKind kind, const std::string& text) {
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
    case ErrorKind::Buffer:
      throw BufferError(text);
    case ErrorKind::Import:
    case ErrorKind::Key:
      break;
  }
  throw Error(kind, text);
}

}  // namespace naru
