// The page of a memory history: a timeline of bytes in tensors and bytes taken, and the largest holders. It asks for nothing from outside.
#include <fmt/format.h>

#include <algorithm>

#include "naru/memory.h"
#include "runtime/allocator.h"
#include "runtime/atomic_file.h"

namespace naru {
namespace {

constexpr std::string_view kPage = R"html(<!doctype html>
<html lang="en"><meta charset="utf-8"><title>naru: memory of $DEVICE</title>
<style>body{font:15px system-ui,sans-serif;margin:2rem auto;max-width:60rem;color:#222}svg{width:100%;height:18rem;border:1px solid #ccc}
table{border-collapse:collapse;width:100%}td,th{padding:.3rem .6rem;text-align:left;border-bottom:1px solid #ddd}td:nth-child(n+2){white-space:nowrap}
.a{fill:#4a90d9;opacity:.6}.r{fill:none;stroke:#d9534f;stroke-width:1.5}</style>
<h1>Memory of $DEVICE</h1>
<p>Peak in tensors: <b id="peak">$PEAK</b>. Blue: bytes in tensors. Red: bytes taken from the device. <span id="at"></span></p>
<svg id="timeline" viewBox="0 0 1000 300" preserveAspectRatio="none"></svg>
<h2>The largest holders</h2>
<table id="holders"><tr><th>line and operator</th><th>most at one time</th><th>allocations</th></tr>$ROWS</table>
<script>
const points = $POINTS, svg = document.getElementById("timeline");
const end = points.length ? Math.max(points[points.length - 1][0], 0.001) : 1;
const top_ = Math.max(1, ...points.map(p => Math.max(p[1], p[2])));
const x = t => 1000 * t / end, y = b => 295 - 285 * b / top_;
let area = "M0 295", line = "";
points.forEach((p, i) => {
  const to = i + 1 < points.length ? points[i + 1][0] : end;
  area += `L${x(p[0])} ${y(p[1])}L${x(to)} ${y(p[1])}`;
  line += `${i ? "L" : "M"}${x(p[0])} ${y(p[2])}L${x(to)} ${y(p[2])}`;
});
svg.innerHTML = `<path class="a" d="${area}L1000 295Z"/><path class="r" d="${line}"/>`;
svg.onmousemove = e => {
  const t = end * e.offsetX / svg.clientWidth, p = points.filter(q => q[0] <= t).pop();
  if (p) document.getElementById("at").textContent = `At ${t.toFixed(2)} ms: ${(p[1] / 1048576).toFixed(2)} MiB in tensors.`;
};
</script></html>
)html";

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
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#x27;";
        break;
      default:
        out += c;
    }
  return out;
}

}  // namespace

std::string memory_page(Device device, const std::vector<MemoryChange>& events) {
  std::string rows, points;
  const std::vector<MemoryHolder> holders = memory_holders(events);
  for (size_t i = 0; i < std::min<size_t>(holders.size(), 20); ++i)
    rows += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td></tr>", escaped(holders[i].name),
                        runtime::size_text(static_cast<size_t>(holders[i].most)), holders[i].allocations);
  size_t peak = 0;
  for (const MemoryChange& e : events) {
    points += fmt::format("{}[{:.3f}, {}, {}]", points.empty() ? "" : ", ", e.seconds * 1e3, e.allocated, e.reserved);
    peak = std::max(peak, e.allocated);
  }
  const std::pair<std::string_view, std::string> values[] = {
      {"$DEVICE", escaped(device.str())}, {"$ROWS", rows}, {"$PEAK", runtime::size_text(peak)}, {"$POINTS", "[" + points + "]"}};
  std::string text;
  for (size_t at = 0; at < kPage.size();) {
    const auto value =
        std::find_if(std::begin(values), std::end(values), [&](const auto& v) { return kPage.substr(at).starts_with(v.first); });
    if (value == std::end(values)) {
      text += kPage[at++];
    } else {
      text += value->second;
      at += value->first.size();
    }
  }
  return text;
}

void MemoryHistory::save_page(const std::string& path) const {
  const std::string text = memory_page(device_, events());
  runtime::AtomicFile file(path);
  file.write(text);
  file.commit();
}

}  // namespace naru
