// A log of the instructions submitted to streams, with the times at which devices ran them; for the profiler. Without a log it costs one
// check of a flag per instruction.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "core/small_vector.h"
#include "runtime/device/backend.h"

namespace naru::runtime {

struct LoggedInstruction {
  Device device;
  int stream = 0;
  std::string name;    // "add+mul" for a fused group, "matmul", "copy cpu to cuda:0"
  uint32_t where = 0;  // source location that made the first result (see core/storage.h: Origin)
  // Microseconds on the host's steady clock: time of submission; start and end on the device.
  double given = 0, begun = 0, ended = 0;
};

inline std::atomic<bool> logging_instructions{false};

// Microseconds on the host's steady clock.
double host_microseconds() noexcept;
// Starts a log and deletes an earlier one. There is one log per process.
void begin_instruction_log();
// Ends the log: waits for the streams it has seen.
std::vector<LoggedInstruction> end_instruction_log();

// Wraps a submission to a stream while there is a log.
class LoggedSubmit {
 public:
  LoggedSubmit(DeviceStream& stream, int number, std::string name, uint32_t where);
  // Call after the submission.
  void done();

 private:
  DeviceStream& stream_;
  LoggedInstruction entry_;
  std::unique_ptr<TimeStamp> begun_;
};
// The name of an instruction in a log.
std::string name_in_log(const ir::Instruction& instruction);

}  // namespace naru::runtime
