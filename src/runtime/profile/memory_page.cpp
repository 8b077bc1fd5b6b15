// Writes the data of the page that shows a memory history and other data over time: one file without external resources. page.html draws
// it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>

#include "naru/device/memory.h"
#include "runtime/os/atomic_file.h"
#include "runtime/profile/page.h"

// The text of page.html (src/CMakeLists.txt converts it to C++).
extern const char* const naru_page_text;

namespace naru {
namespace {

// As a JSON string that is safe within an HTML script: it contains no "</script>".
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

// By address: the offset of a block when all memory ever held is laid out without gaps.
std::map<uint64_t, uint64_t> offsets_of(const std::vector<MemoryChange>& events) {
  std::map<uint64_t, uint64_t> sizes, offsets;
  for (const MemoryChange& e : events) {
    uint64_t& size = sizes[e.address];
    size = std::max(size, static_cast<uint64_t>(std::abs(e.bytes)));
  }
  uint64_t end = 0, offset = 0;  // the address past the end of the blocks laid out so far, and its offset
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
  // Origins are written once; rows refer to them by index.
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
