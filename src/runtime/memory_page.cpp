// The page of a memory history, and of what else is shown over time: one file that asks for nothing from outside. page.html draws; here its data
// are written.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>

#include "naru/memory.h"
#include "runtime/atomic_file.h"
#include "runtime/page.h"

// page.html (src/CMakeLists.txt makes text of C++ of it).
extern const char* const naru_page_text;

namespace naru {
namespace {

// As a string of JSON, within a script of HTML: no "</script>" ends it.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (static_cast<unsigned char>(c) < 0x20 || c == '<' || c == '&')
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + '"';
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  return out;
}

// By address: where a block lies when all memory that was ever held is put together without gaps.
std::map<uint64_t, uint64_t> offsets_of(const std::vector<MemoryChange>& events) {
  std::map<uint64_t, uint64_t> sizes, offsets;
  for (const MemoryChange& e : events) {
    uint64_t& size = sizes[e.address];
    size = std::max(size, static_cast<uint64_t>(std::abs(e.bytes)));
  }
  uint64_t end = 0, offset = 0;  // the address behind what has been put, and its offset
  for (const auto& [address, size] : sizes) {
    if (address < end)
      offsets[address] = offset - (end - address);
    else
      offsets[address] = offset;
    if (address + size > end) {
      offset = offsets[address] + size;
      end = address + size;
    }
  }
  return offsets;
}

}  // namespace

std::string runtime::page_of(const std::string& title, const std::string& json) {
  std::string text(naru_page_text);
  const auto put = [&](std::string_view mark, const std::string& value) {
    if (const size_t at = text.find(mark); at != std::string::npos) text.replace(at, mark.size(), value);
  };
  put("$DATA", json);
  put("$TITLE", escaped(title));
  return text;
}

std::string memory_page(Device device, const std::vector<MemoryChange>& events) {
  // Places are written once, and rows name them by number.
  std::map<std::string, size_t> numbers;
  std::string places, rows;
  const std::map<uint64_t, uint64_t> offsets = offsets_of(events);
  for (const MemoryChange& e : events) {
    const std::string place = fmt::format("{{\"line\":{},\"op\":{},\"role\":{}}}", quoted(e.line), quoted(e.op), quoted(e.role));
    const auto [at, added] = numbers.try_emplace(place, numbers.size());
    if (added) places += (places.empty() ? "" : ",") + place;
    fmt::format_to(std::back_inserter(rows), "{}[{:.6f},{},{},{},{},{},{}]", rows.empty() ? "" : ",", e.seconds * 1e3, e.bytes, e.number,
                   e.allocated, e.reserved, at->second, offsets.at(e.address));
  }
  const std::string title = fmt::format("naru: memory of {}", device.str());
  return runtime::page_of(
      title,
      fmt::format(
          R"({{"title":{},"runs":[{{"name":"","panels":[{{"kind":"memory","device":{},"places":[{}],"events":[{}],"steps":[]}}]}}]}})",
          quoted(title), quoted(device.str()), places, rows));
}

void MemoryHistory::save_page(const std::string& path) const {
  const std::string text = memory_page(device_, events());
  runtime::AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace naru
