// Memory statistics for users (torch.cuda.memory_stats and the like).
#include <fmt/format.h>

#include <algorithm>

#include "core/tensor_impl.h"
#include "naru/device/devices.h"
#include "naru/device/memory.h"
#include "naru/error.h"
#include "runtime/device/registry.h"
#include "runtime/memory/allocator.h"
#include "runtime/queue/queue.h"

namespace naru {
namespace {

runtime::CachingAllocator& allocator(Device device) {
  const Device d = runtime::resolve(device);
  runtime::flush_all();
  return runtime::allocator_of(d);
}

struct FigureName {
  const char* name;
  runtime::MemoryFigure runtime::PoolStats::*figure;
};
// PyTorch's names. A block is active while it serves a request: pending work on a free block does not prevent its reuse.
constexpr FigureName kFigures[] = {
    {"allocation", &runtime::PoolStats::allocations},
    {"segment", &runtime::PoolStats::slabs},
    {"active", &runtime::PoolStats::allocations},
    {"inactive_split", &runtime::PoolStats::splits},
    {"allocated_bytes", &runtime::PoolStats::allocated_bytes},
    {"reserved_bytes", &runtime::PoolStats::reserved_bytes},
    {"active_bytes", &runtime::PoolStats::allocated_bytes},
    {"inactive_split_bytes", &runtime::PoolStats::split_bytes},
    {"requested_bytes", &runtime::PoolStats::requested_bytes},
};
constexpr struct {
  const char* name;
  runtime::PoolStats runtime::MemoryStats::*pool;
} kPools[] = {
    {"all", &runtime::MemoryStats::all}, {"large_pool", &runtime::MemoryStats::large}, {"small_pool", &runtime::MemoryStats::small}};

using Figures = std::map<std::string, int64_t>;

void put(Figures& out, const std::string& prefix, const runtime::MemoryFigure& f) {
  out[prefix + ".current"] = f.current, out[prefix + ".peak"] = f.peak, out[prefix + ".allocated"] = f.added,
               out[prefix + ".freed"] = f.removed;
}

// Rows of the summary table: PyTorch's name of the figure, and the row's title.
constexpr std::pair<const char*, const char*> kRows[] = {
    {"allocated_bytes", "Allocated memory"},
    {"active_bytes", "Active memory"},
    {"requested_bytes", "Requested memory"},
    {"reserved_bytes", "GPU reserved memory"},
    {"inactive_split_bytes", "Non-releasable memory"},
    {"allocation", "Allocations"},
    {"active", "Active allocs"},
    {"segment", "GPU reserved segments"},
    {"inactive_split", "Non-releasable allocs"},
    {"oversize_allocations", "Oversize allocations"},
    {"oversize_segments", "Oversize GPU segments"},
};
constexpr std::pair<const char*, const char*> kTablePools[] = {
    {".all", ""}, {".large_pool", "      from large pool"}, {".small_pool", "      from small pool"}};

// Formats `value` in the smallest unit in which `by` fits into PyTorch's column width.
std::string cell(int64_t value, int64_t by, bool is_bytes) {
  constexpr const char* kBytes[] = {"B  ", "KiB", "MiB", "GiB", "TiB", "PiB"};
  constexpr const char* kCounts[] = {" ", "K", "M"};
  const int64_t step = is_bytes ? 1024 : 1000, most = (is_bytes ? 768 : 750) * step;
  const size_t units = is_bytes ? std::size(kBytes) : std::size(kCounts);
  size_t at = 0;
  while (at + 1 < units && by >= most) value /= step, by /= step, ++at;
  return is_bytes ? fmt::format("{:6d} {}", value, kBytes[at]) : fmt::format("{:7d} {} ", value, kCounts[at]);
}

// Like Python's str.center for an odd width.
std::string centered(const std::string& text) {
  constexpr size_t kWidth = 75;
  if (text.size() >= kWidth) return text.substr(0, kWidth);
  const size_t left = (kWidth - text.size() + 1) / 2;
  return std::string(left, ' ') + text + std::string(kWidth - text.size() - left, ' ');
}

}  // namespace

size_t memory_allocated(Device device) { return allocator(device).stats().allocated(); }
size_t memory_reserved(Device device) { return allocator(device).stats().reserved(); }
size_t max_memory_allocated(Device device) { return allocator(device).stats().peak_allocated(); }
size_t max_memory_reserved(Device device) { return allocator(device).stats().peak_reserved(); }
void reset_peak_memory_stats(Device device) { allocator(device).reset_peak(); }
void reset_accumulated_memory_stats(Device device) { allocator(device).reset_accumulated(); }
void empty_cache(Device device) { allocator(device).empty_cache(); }
void set_memory_limit(Device device, size_t bytes) { allocator(device).set_limit(bytes); }

std::pair<size_t, size_t> mem_get_info(Device device) {
  allocator(device);
  const Device d = runtime::resolve(device);
  return {runtime::free_memory(d), runtime::properties(d).total_memory};
}

void set_per_process_memory_fraction(double fraction, Device device) {
  if (!(fraction >= 0 && fraction <= 1)) throw ValueError("Invalid fraction value: {}. Allowed range: 0~1", fraction);
  set_memory_limit(device, std::max<size_t>(1, static_cast<size_t>(fraction * static_cast<double>(mem_get_info(device).second))));
}

std::map<std::string, int64_t> memory_stats(Device device) {
  const runtime::MemoryStats s = allocator(device).stats();
  Figures out;
  for (const FigureName& f : kFigures)
    for (const auto& p : kPools) put(out, fmt::format("{}.{}", f.name, p.name), s.*p.pool.*f.figure);
  // There is no maximum size for splitting or caching blocks.
  put(out, "oversize_allocations", {}), put(out, "oversize_segments", {});
  out["max_split_size"] = -1;
  out["num_alloc_retries"] = static_cast<int64_t>(s.retries);
  out["num_ooms"] = static_cast<int64_t>(s.failures);
  out["num_sync_all_streams"] = 0;
  out["num_device_alloc"] = static_cast<int64_t>(s.driver_allocations);
  out["num_device_free"] = static_cast<int64_t>(s.driver_releases);
  out["limit_bytes"] = static_cast<int64_t>(s.limit);
  const auto [free, total] = mem_get_info(device);
  const auto reserved = static_cast<int64_t>(s.reserved());
  // The system still counts allocated memory as free until it is touched.
  const int64_t used = std::max(static_cast<int64_t>(total) - static_cast<int64_t>(free), reserved);
  out["cached_bytes"] = reserved - static_cast<int64_t>(s.allocated());
  out["driver_used_bytes"] = used;
  out["other_bytes"] = used - reserved;
  return out;
}

std::string memory_summary(Device device, bool abbreviated) {
  const Device d = runtime::resolve(device);
  const Figures s = memory_stats(d);
  const std::string rule(75, '-'), twice(75, '=');
  std::string kind(name_of(d.type));
  for (char& c : kind) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::vector<std::string> lines{twice, centered(fmt::format("PyTorch {} memory summary, device ID {}", kind, std::max<int>(d.index, 0))),
                                 centered(d.str() + ": " + runtime::properties(d).name), rule};
  const char* retries = d.type == DeviceType::Cuda ? "cudaMalloc retries" : "malloc retries";
  lines.push_back(fmt::format("{:^36}|{:^38}", fmt::format("{} OOMs: {}", kind, s.at("num_ooms")),
                              fmt::format("{}: {}", retries, s.at("num_alloc_retries"))));
  lines.push_back(twice);
  lines.push_back("        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  ");
  for (const auto& [key, title] : kRows) {
    lines.push_back(rule);
    const std::string name(key);
    const bool bytes = name.find("bytes") != std::string::npos, single = name.starts_with("oversize");
    for (size_t p = 0; p < (single || abbreviated ? 1u : std::size(kTablePools)); ++p) {
      const auto& [pool, inner] = kTablePools[p];
      std::string line = fmt::format(" {:<21} |", *inner ? inner : title);
      for (const char* column : {"current", "peak", "allocated", "freed"}) {
        const int64_t value = s.at(fmt::format("{}{}.{}", name, single ? "" : pool, column));
        const int64_t by = s.at(fmt::format("{}{}.{}", name, single ? "" : ".all", column));
        line += " " + cell(value, by, bytes) + " |";
      }
      line.back() = ' ';
      line.pop_back();
      lines.push_back(line);
    }
  }
  lines.push_back(twice);
  const int64_t limit = s.at("limit_bytes") ? s.at("limit_bytes") : static_cast<int64_t>(mem_get_info(d).second);
  for (const auto& [title, size] : {std::pair<const char*, int64_t>{"Held by others", s.at("other_bytes")}, {"Limit", limit}})
    lines.push_back(fmt::format(" {:<21} | {} |{:38}", title, cell(size, size, true), ""));
  lines.push_back(twice);
  std::string text;
  for (const std::string& line : lines) text += "|" + line + "|\n";
  return text;
}

MemoryHistory::MemoryHistory(Device device) : device_(runtime::resolve(device)) {
  runtime::synchronize(device_);
  allocator(device_).record_history(true);
}

MemoryHistory::~MemoryHistory() {
  try {
    allocator(device_).record_history(false);
  } catch (...) {  // errors of the device are reported where it is used
  }
}

std::vector<MemoryChange> MemoryHistory::events() const {
  runtime::synchronize(device_);
  std::vector<MemoryChange> list;
  for (const runtime::MemoryEvent& e : allocator(device_).history().events)
    list.push_back({e.seconds, e.bytes, e.number, e.allocated, e.reserved, e.origin.op ? e.origin.op : "", line_text(e.origin.where),
                    runtime::name_of(e.role), reinterpret_cast<uintptr_t>(e.address)});
  return list;
}

std::vector<MemoryHolder> memory_holders(const std::vector<MemoryChange>& events) {
  std::map<std::string, std::pair<int64_t, MemoryHolder>> held;  // current bytes; and the holder, which has the peak
  std::map<uint64_t, std::pair<std::string, int64_t>> made;
  for (const MemoryChange& e : events) {
    if (e.bytes > 0) {
      std::string name = e.line.empty() ? "(small, or made by the library)" : e.line;
      if (!e.op.empty()) name += " · " + e.op;
      auto& [now, holder] = held[name];
      holder.name = name;
      ++holder.allocations;
      holder.most = std::max(holder.most, now += e.bytes);
      made[e.number] = {name, e.bytes};
    } else if (const auto at = made.find(e.number); at != made.end()) {
      held[at->second.first].first -= at->second.second;
      made.erase(at);
    }
  }
  std::vector<MemoryHolder> list;
  for (const auto& [name, entry] : held) list.push_back(entry.second);
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.most > b.most; });
  return list;
}

}  // namespace naru
