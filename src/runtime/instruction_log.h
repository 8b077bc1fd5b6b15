// A log of the instructions that streams are given, with the times at which devices did them: for the profiler. Without a log it costs a look at a
// flag an instruction.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "core/small_vector.h"
#include "runtime/backend.h"

namespace naru::runtime {

struct LoggedInstruction {
  Device device;
  int stream = 0;
  std::string name;    // "add+mul" of what was fused, "matmul", "copy cpu to cuda:0"
  uint32_t where = 0;  // the line that made the first result (see core/storage.h: Origin)
  // Microseconds on the host's steady clock: handed over; begun and ended by the device.
  double given = 0, begun = 0, ended = 0;
};

inline std::atomic<bool> logging_instructions{false};

// Microseconds on the host's steady clock.
double host_microseconds() noexcept;
// Begins a log, and forgets an earlier one. One at a time in the process.
void begin_instruction_log();
// Ends it: waits for the streams it has seen.
std::vector<LoggedInstruction> end_instruction_log();

// Around what hands work to a stream while there is a log.
class LoggedSubmit {
 public:
  LoggedSubmit(DeviceStream& stream, int number, std::string name, uint32_t where);
  // Behind it.
  void done();

 private:
  DeviceStream& stream_;
  LoggedInstruction entry_;
  std::unique_ptr<TimeStamp> begun_;
};
// The name of an instruction in a log.
std::string name_in_log(const ir::Instruction& instruction);

}  // namespace naru::runtime
