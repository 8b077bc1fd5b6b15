// FlightRecorder: the last calls of this process between ranks, kept in a ring and written to a file when a group fails: a rank has died, did
// not come in time, or called something else. Every rank that still runs writes one, also if its program is busy elsewhere, so the files
// together say who was where. They have the format of PyTorch's flight recorder, whose tools (torchfrtrace) read them.
//
// TORCH_FR_BUFFER_SIZE: the calls that are kept (1000); 0: none. TORCH_FR_DUMP_TEMP_FILE: the beginning of the file's path, which the rank
// follows; otherwise calls_of_rank_ in naru's cache folder. TORCH_FR_DUMP_ON_TIMEOUT=0: no file. (Also by their older names, TORCH_NCCL_*.)
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace naru::distributed {

// The tensors that a call reads or writes on one rank.
struct TensorsOfCall {
  uint8_t type = 0, dims = 0;
  uint64_t elements = 0;
  int64_t sizes[4] = {};  // of a tensor of more dimensions only `elements` is told
};

struct RecordedCall {
  const char* what = "";   // PyTorch's name of the operation
  uint64_t number = 0;     // among the group's collectives, or among its messages here
  int from = -1, to = -1;  // of a message; -1: any rank
  bool is_message = false;
  TensorsOfCall in, out;
  uint32_t line = 0;  // of the program
  int64_t created = 0, timeout = 0;
};

class FlightRecorder {
 public:
  static FlightRecorder& of_process();

  // Groups have names and their members' ranks in the program. Returns the group's number.
  size_t add_group(int rank, int size, const std::string& library);
  void name_group(size_t group, const std::string& name, const std::string& description, const std::vector<int>& ranks);

  // Nanoseconds since 1970.
  static int64_t now() noexcept;
  // A call begins. Returns its number, which is never 0; 0 if nothing is recorded.
  uint64_t begin(size_t group, const RecordedCall& call);
  void complete(uint64_t id);

  // Writes the calls, because the group has failed for this reason; once for each group. Returns the file's path; "" if no file is wanted, or
  // can't be written.
  std::string write(size_t group, const std::string& reason) noexcept;

 private:
  struct Entry {
    uint64_t id = 0, collective = 0;  // collective: of the group, the last that had begun
    size_t group = 0;
    int64_t started = 0, completed = 0;
    RecordedCall call;
  };
  struct Group {
    std::string name, description, library, file;
    std::vector<int> ranks;
    int rank = 0;
    uint64_t last_started = 0, last_completed = 0;
    int global_rank() const { return ranks[static_cast<size_t>(rank)]; }
  };
  struct Calls {
    std::vector<Entry> ring;
    uint64_t next = 1;
    std::deque<Group> groups;
  };

  FlightRecorder();
  static std::string text(const Calls& calls, size_t group, const std::string& reason);

  std::mutex mutex_;
  std::mutex writing_;  // held while a file is written; before mutex_
  Calls calls_;
};

}  // namespace naru::distributed
