#include "distributed/flight_recorder.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/language.h"
#include "data/pickle.h"
#include "distributed/socket.h"
#include "naru/dtype.h"
#include "runtime/os/fork.h"
#include "runtime/os/system.h"

namespace naru::distributed {
namespace {

constexpr size_t kCalls = 1000;

// The first of these variables that is set; null if none is.
const char* variable(const char* name, const char* older) {
  const char* const value = std::getenv(name);
  return value ? value : std::getenv(older);
}

size_t calls_to_keep() {
  const char* const text = variable("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE");
  if (!text) return kCalls;
  char* end = nullptr;
  const long long n = std::strtoll(text, &end, 10);
  if (end == text || *end || n < 0 || n > 10'000'000)
    throw ValueError("TORCH_FR_BUFFER_SIZE must be a number of calls, 0 to 10000000, got \"{}\"", text);
  return static_cast<size_t>(n);
}

// The beginning of the path; "" if no file is wanted.
std::string file_prefix() {
  const char* const wanted = variable("TORCH_FR_DUMP_ON_TIMEOUT", "TORCH_NCCL_DUMP_ON_TIMEOUT");
  if (wanted && (std::string(wanted) == "0" || std::string(wanted) == "false")) return "";
  if (const char* const chosen = variable("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")) return chosen;
  if (const char* const folder = std::getenv("NARU_CACHE_DIR")) return *folder ? std::string(folder) + "/calls_of_rank_" : "";
  const char* const home = std::getenv("HOME");
  return home && *home ? std::string(home) + "/.cache/naru/calls_of_rank_" : "";
}

Value sizes_of(const TensorsOfCall& t) {
  if (!t.type && !t.elements && !t.dims) return Value::List{};
  Value::List sizes;
  if (t.dims > std::size(t.sizes)) {
    sizes.push_back(t.elements);
  } else {
    for (size_t i = 0; i < t.dims; ++i) sizes.push_back(t.sizes[i]);
  }
  return Value::List{sizes};
}

Value types_of(const TensorsOfCall& t) {
  if (!t.type && !t.elements && !t.dims) return Value::List{};
  return Value::List{std::string(t.type < kElementTypes ? kDTypeTraits[t.type].name : "?")};
}

// "train.py:12" as PyTorch's list of frames.
Value frames_of(uint32_t line) {
  const std::string text = line_text(line);
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return Value::List{};
  return Value::List{
      Value(Value::Dict{{"name", "<program>"}, {"filename", text.substr(0, colon)}, {"line", std::atoll(text.c_str() + colon + 1)}})};
}

std::string rank_text(int rank) { return rank < 0 ? "?" : std::to_string(rank); }

}  // namespace

FlightRecorder& FlightRecorder::of_process() {
  static auto& one = *new FlightRecorder;
  return one;
}

FlightRecorder::FlightRecorder() : calls_{std::vector<Entry>(calls_to_keep()), 1, {}} { runtime::hold_at_fork(mutex_); }

int64_t FlightRecorder::now() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

size_t FlightRecorder::add_group(int rank, int size, const std::string& library) {
  Group g;
  g.library = library, g.rank = rank, g.description = "undefined";
  for (int r = 0; r < size; ++r) g.ranks.push_back(r);
  const std::lock_guard lock(mutex_);
  g.name = std::to_string(calls_.groups.size());
  calls_.groups.push_back(std::move(g));
  return calls_.groups.size() - 1;
}

void FlightRecorder::name_group(size_t group, const std::string& name, const std::string& description, const std::vector<int>& ranks) {
  const std::lock_guard lock(mutex_);
  Group& g = calls_.groups[group];
  if (ranks.size() != g.ranks.size()) throw ValueError("a group of {} ranks can't have {} members", g.ranks.size(), ranks.size());
  g.name = name, g.description = description, g.ranks = ranks;
}

uint64_t FlightRecorder::begin(size_t group, const RecordedCall& call) {
  if (calls_.ring.empty()) return 0;
  const int64_t started = now();
  const std::lock_guard lock(mutex_);
  Entry& e = calls_.ring[calls_.next % calls_.ring.size()];
  e.id = calls_.next, e.group = group, e.started = started, e.completed = 0;
  e.call = call;
  Group& g = calls_.groups[group];
  if (!call.is_message) g.last_started = call.number;
  e.collective = g.last_started;
  return calls_.next++;
}

void FlightRecorder::complete(uint64_t id) {
  if (!id) return;
  const int64_t completed = now();
  const std::lock_guard lock(mutex_);
  Entry& e = calls_.ring[id % calls_.ring.size()];
  if (e.id != id) return;  // newer calls have taken its place
  e.completed = completed;
  if (!e.call.is_message) calls_.groups[e.group].last_completed = e.call.number;
}

std::string FlightRecorder::text(const Calls& calls, size_t group, const std::string& reason) {
  Value config = Value::dict({}), status = Value::dict({});
  for (const Group& g : calls.groups) {
    std::string ranks = "[";
    for (const int r : g.ranks) ranks += (ranks.size() > 1 ? ", " : "") + std::to_string(r);
    config.insert(g.name, Value::Dict{{"name", g.name}, {"desc", g.description}, {"ranks", ranks + "]"}});
    status.insert(g.name, Value::Dict{{"last_enqueued_collective", g.last_started},
                                      {"last_started_collective", g.last_started},
                                      {"last_completed_collective", g.last_completed}});
  }
  Value::List entries;
  const uint64_t first = calls.next > calls.ring.size() ? calls.next - calls.ring.size() : 1;
  for (uint64_t id = first; id < calls.next; ++id) {
    const Entry& e = calls.ring[id % calls.ring.size()];
    const Group& g = calls.groups[e.group];
    const RecordedCall& c = e.call;
    std::string name = g.library + ":" + c.what;
    if (c.is_message) name += " " + rank_text(g.rank) + (c.to == g.rank ? "<-" + rank_text(c.from) : "->" + rank_text(c.to));
    const bool done = e.completed != 0;
    entries.push_back(Value(Value::Dict{
        {"frames", frames_of(c.line)},
        {"record_id", id - 1},
        {"pg_id", e.group},
        {"process_group", Value::tuple({g.name, g.description})},
        {"collective_seq_id", e.collective},
        {"p2p_seq_id", c.is_message ? c.number : 0},
        {"op_id", id},
        {"profiling_name", name},
        {"time_created_ns", c.created},
        {"duration_ms", done ? Value(static_cast<double>(e.completed - e.started) / 1e6) : Value()},
        {"input_sizes", sizes_of(c.in)},
        {"input_dtypes", types_of(c.in)},
        {"output_sizes", sizes_of(c.out)},
        {"output_dtypes", types_of(c.out)},
        {"state", done ? "completed" : "started"},
        {"time_discovered_started_ns", e.started},
        {"time_discovered_completed_ns", done ? Value(e.completed) : Value()},
        {"retired", done},
        {"timeout_ms", c.timeout},
        {"is_p2p", c.is_message},
    }));
  }
  const Value all = Value::Dict{{"version", "2.10"},
                                {"pg_config", config},
                                {"pg_status", status},
                                {"entries", entries},
                                {"reason", reason},
                                {"failed_group", calls.groups[group].name},
                                {"rank", calls.groups[group].global_rank()}};
  return data::pickle(all).text;
}

std::string FlightRecorder::write(size_t group, const std::string& reason) noexcept {
  try {
    const std::string prefix = file_prefix();
    if (prefix.empty()) return "";
    const std::lock_guard writes(writing_);  // the calling thread and the one that receives other ranks' failures may both write
    Calls copy;
    {
      const std::lock_guard lock(mutex_);
      if (!calls_.groups[group].file.empty()) return calls_.groups[group].file;
      copy = calls_;
    }
    if (copy.ring.empty()) return "";
    const std::string bytes = text(copy, group, reason), path = prefix + std::to_string(copy.groups[group].global_rank());
    const std::filesystem::path target(path);
    if (target.has_parent_path()) std::filesystem::create_directories(target.parent_path());
    // Renamed when it is whole: another rank's tool, or the next failure, never finds half a file.
    const std::string half = path + "." + std::to_string(runtime::system::process_id()) + ".part";
    {
      std::ofstream out(half, std::ios::binary | std::ios::trunc);
      out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
      if (!out.flush()) return "";
    }
    std::filesystem::rename(half, target);
    const std::lock_guard lock(mutex_);
    calls_.groups[group].file = path;
    return path;
  } catch (...) {
    return "";  // the group's error matters more
  }
}

}  // namespace naru::distributed
