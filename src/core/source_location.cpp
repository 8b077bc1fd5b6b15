#include "naru/source_location.h"

#include <deque>
#include <map>
#include <mutex>
#include <string_view>

#include "core/language.h"

namespace naru {
namespace {

constinit thread_local const SourceLocationScope* innermost = nullptr;

// Source locations by number, as storages and instructions store them.
struct Places {
  std::mutex mutex;
  std::map<std::pair<std::string_view, unsigned>, uint32_t> numbers;
  std::deque<SourceLocation> list{SourceLocation()};
};
Places& places() {
  static Places& all = *new Places;  // storages outlive statics
  return all;
}

struct Numbered {
  const char* file;
  uint32_t line;
  uint32_t number;
};

uint32_t line_here() noexcept {
  const SourceLocation place = current_location();
  if (place.line == 0) return 0;
  static thread_local constinit Numbered last{};  // consecutive tensors often come from one line
  if (last.file == place.file && last.line == place.line) return last.number;
  Places& all = places();
  const std::lock_guard lock(all.mutex);
  const auto [at, fresh] = all.numbers.try_emplace({place.file, place.line}, static_cast<uint32_t>(all.list.size()));
  if (fresh) all.list.push_back(place);
  last = {place.file, place.line, at->second};
  return at->second;
}
std::string text_of(uint32_t number) {
  Places& all = places();
  const std::lock_guard lock(all.mutex);
  return number < all.list.size() ? all.list[number].str() : std::string();
}

// Of a C++ program: the scopes' lines.
class ScopedLines final : public Language {
 public:
  bool is_python() const noexcept override { return false; }
  uint32_t line() noexcept override { return line_here(); }
  std::string line_text(uint32_t line) override { return text_of(line); }
};
constinit ScopedLines scoped_lines;

}  // namespace

std::string SourceLocation::str() const {
  if (line == 0) return "";
  const std::string_view path(file);
  return std::string(path.substr(path.rfind('/') + 1)) + ":" + std::to_string(line);
}

SourceLocationScope::SourceLocationScope(SourceLocation where) noexcept : place_(where), outer_(innermost) {
  if (where.line == 0) return;
  innermost = this;
  Language* none = nullptr;
  if (!language()) program_language.compare_exchange_strong(none, &scoped_lines, std::memory_order_release, std::memory_order_relaxed);
}
SourceLocationScope::~SourceLocationScope() {
  if (place_.line != 0) innermost = outer_;
}
SourceLocation current_location() noexcept { return innermost ? innermost->place_ : SourceLocation(); }

}  // namespace naru
