#include "runtime/profile/instruction_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "ir/inspect.h"

namespace naru::runtime {
namespace {

constexpr size_t kNames = 6;  // operators that the log name of a group lists at most

// Relates a stream's clock to the host's.
struct Clock {
  std::unique_ptr<TimeStamp> stamp;
  double host = 0;
};
struct Timed {
  LoggedInstruction entry;
  DeviceStream* stream;
  std::unique_ptr<TimeStamp> begun, ended;
};
struct Log {
  std::mutex mutex;
  std::unordered_map<DeviceStream*, Clock> clocks;
  std::vector<Timed> entries;
};
Log& the_log() {
  static auto& log = *new Log;
  return log;
}

}  // namespace

double host_microseconds() noexcept {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string name_in_log(const ir::Instruction& instruction) {
  if (const auto* copy = std::get_if<ir::CopyBytes>(&instruction))
    return fmt::format("copy {} to {}", copy->source_device.is_cpu() ? "cpu" : copy->source_device.str(),
                       copy->target_device.is_cpu() ? "cpu" : copy->target_device.str());
  std::vector<std::string> names;
  ir::each_name(instruction, [&](const char* n) { names.emplace_back(n); });
  if (names.empty()) return "copy";
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kNames); ++i) text += (i ? "+" : "") + names[i];
  return names.size() > kNames ? fmt::format("{}+{} more", text, names.size() - kNames) : text;
}

LoggedSubmit::LoggedSubmit(DeviceStream& stream, int number, std::string name, uint32_t where) : stream_(stream) {
  entry_.device = stream.device(), entry_.stream = number, entry_.name = std::move(name), entry_.where = where;
  {
    Log& log = the_log();
    const std::lock_guard lock(log.mutex);
    if (Clock& clock = log.clocks[&stream]; !clock.stamp) {
      clock.stamp = stream.stamp();
      stream.reach(stream.submitted());
      clock.host = host_microseconds();
    }
  }
  entry_.given = host_microseconds();
  begun_ = stream.stamp();
}

void LoggedSubmit::done() {
  Timed timed{std::move(entry_), &stream_, std::move(begun_), stream_.stamp()};
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  log.entries.push_back(std::move(timed));
}

void begin_instruction_log() {
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  log.entries.clear(), log.clocks.clear();
  logging_instructions.store(true);
}

std::vector<LoggedInstruction> end_instruction_log() {
  logging_instructions.store(false);
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  for (auto& [stream, clock] : log.clocks) stream->reach(stream->submitted());
  std::vector<LoggedInstruction> out;
  for (Timed& t : log.entries) {
    const auto clock = log.clocks.find(t.stream);
    if (clock == log.clocks.end()) continue;  // another thread submitted it while an earlier log was ending
    const auto& [stamp, host] = clock->second;
    t.entry.begun = host + t.begun->milliseconds_since(*stamp) * 1e3;
    t.entry.ended = host + t.ended->milliseconds_since(*stamp) * 1e3;
    out.push_back(std::move(t.entry));
  }
  log.entries.clear(), log.clocks.clear();
  return out;
}

}  // namespace naru::runtime
