// The machine that runs a decoded kernel: blocks one after another, their warps in turn, the threads of a warp in lock step. Each access to memory is
// checked: its bounds, its alignment, whether shared memory has been written, and whether another thread's access is ordered before it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backends/ptx/program.h"

namespace naru::backends::ptx {

// Windows of the generic address space. Addresses of global memory are the host's, which end below 2^56.
inline constexpr uint64_t kSharedWindow = uint64_t{1} << 60, kLocalWindow = uint64_t{2} << 60, kParameterWindow = uint64_t{3} << 60;
inline constexpr uint64_t kWindows = uint64_t{15} << 60;

enum class FaultKind : uint8_t {
  OutOfBounds,
  Misaligned,
  WriteToInput,
  Uninitialized,
  RaceInBlock,
  RaceBetweenBlocks,
  DivergentBarrier,
  Trap
};
// "out of bounds", "race between blocks".
const char* words_of(FaultKind kind) noexcept;

// An access to memory, in a word; 0: none. Two accesses of a block are ordered if a barrier of the block lies between them (`epoch` counts those), or, within a
// warp, one of the warp.
struct Stamp {
  uint64_t word = 0;
  static Stamp of(uint64_t block, unsigned thread, uint64_t epoch, uint64_t warp_epoch, bool strong) noexcept {
    return {uint64_t{1} << 63 | uint64_t{strong} << 62 | (block & 0xffffff) << 38 | uint64_t{thread} << 28 | (epoch & 0xfffff) << 8 |
            (warp_epoch & 0xff)};
  }
  explicit operator bool() const noexcept { return word != 0; }
  bool strong() const noexcept { return word >> 62 & 1; }
  uint64_t block() const noexcept { return word >> 38 & 0xffffff; }
  unsigned thread() const noexcept { return static_cast<unsigned>(word >> 28 & 1023); }
  uint64_t epoch() const noexcept { return word >> 8 & 0xfffff; }
  uint64_t warp_epoch() const noexcept { return word & 0xff; }
};

// The accesses to one element: the last write, the last strong one (atomic or volatile), and reads by two threads.
struct Cell {
  Stamp write, strong, read, other;
  uint32_t write_at = 0, strong_at = 0, read_at = 0, other_at = 0;  // the instructions
};

// Cells of a piece of memory, made at the first access, one for each element of the smallest size with which it has been accessed so far.
class Shadow {
 public:
  ~Shadow() { clear(); }
  Shadow() = default;
  Shadow(Shadow&& o) noexcept : cells_(o.cells_), count_(o.count_), shift_(o.shift_) { o.cells_ = nullptr; }
  Shadow& operator=(Shadow&& o) noexcept {
    std::swap(cells_, o.cells_), std::swap(count_, o.count_), std::swap(shift_, o.shift_);
    return *this;
  }
  // Calls f(cell) for each cell that the bytes [at, at + bytes) touch; the memory has `all` bytes.
  template <class F>
  void each(uint64_t at, unsigned bytes, uint64_t all, const F& f) {
    if (!cells_ || ((at | bytes) & ((uint64_t{1} << shift_) - 1)) != 0) prepare(at, bytes, all);
    for (uint64_t i = at >> shift_, end = (at + bytes - 1) >> shift_; i <= end; ++i) f(cells_[i]);
  }
  void clear() noexcept;

 private:
  void prepare(uint64_t at, unsigned bytes, uint64_t all);
  Cell* cells_ = nullptr;
  uint64_t count_ = 0;
  unsigned shift_ = 0;
};

// Global memory that a kernel may use.
struct Region {
  uintptr_t base = 0;
  uint64_t bytes = 0;
  bool written = true;
  std::function<std::string()> text;  // "`weight` (256, 784) float32, made by empty at train.py:7"
  Shadow shadow;
};

struct Three {
  unsigned x = 1, y = 1, z = 1;
};

// A fault, once for each kind and line of a launch.
struct Fault {
  FaultKind kind;
  std::string file;
  uint32_t line = 0;  // 0: unknown
  Three block, thread;
  std::string instruction;  // "ld.global.f32"
  std::string text;         // what was wrong
  uint64_t times = 1;
};

// What a launch did, summed over its warps.
struct Counts {
  uint64_t blocks = 0, warps = 0, threads = 0;
  std::array<uint64_t, kClasses> by_class{};           // instructions of warps
  uint64_t instructions = 0, thread_instructions = 0;  // of warps; of their active threads
  uint64_t global_accesses = 0, global_sectors = 0,
           ideal_sectors = 0;                        // instructions; pieces of 32 bytes: touched, and needed for so many bytes
  uint64_t read_bytes = 0, written_bytes = 0;        // of global memory, by threads
  uint64_t shared_accesses = 0, bank_conflicts = 0;  // instructions; additional turns
  uint64_t atomics = 0, barriers = 0, branches = 0, divergent_branches = 0;
  void add(const Counts& other) noexcept;
};

class Machine;

// Threads of a warp that are at the same place.
struct Group {
  uint32_t pc = 0;
  uint32_t depth = 0;  // of calls
  Mask mask = 0;
  enum class State : uint8_t { Ready, AtWarpBarrier, AtBlockBarrier } state = State::Ready;
  uint32_t barrier = 0, expected = 0;  // its number, and how many threads it waits for; 0: all
  // The callee goes first, and then the threads that are behind: they meet again where the code does.
  uint64_t key() const noexcept { return uint64_t{0xffffffffu - depth} << 32 | pc; }
};

struct Warp {
  std::byte* registers = nullptr;
  Mask* predicates = nullptr;
  const std::byte* constants = nullptr;
  std::byte* local = nullptr;      // local_bytes for each lane
  std::byte* arguments = nullptr;  // argument_bytes for each lane
  Mask live = 0;                   // has not ended
  Mask exists = 0;                 // the last warp of a block may have fewer threads
  Mask carry = 0;                  // of add.cc and the like
  uint32_t pc = 0;                 // of the instruction being run
  unsigned number = 0;
  uint64_t epoch = 0, warp_epoch = 0;
  uint64_t steps = 0;
  Machine* machine = nullptr;
  std::array<uint64_t, kLanes> last_write{};  // of each lane: 1 + the epoch, and the instruction
  std::vector<Group> groups;
  std::vector<std::array<uint32_t, kLanes>> calls;  // by depth: the call instruction of each lane
  std::vector<std::byte> memory;                    // of all the pointers above
};

// A group while it runs.
struct Turn {
  Group self;
  size_t number = 0;   // in Warp::groups
  uint64_t limit = 0;  // the key at which others are
  bool ended = false;

  // Some of the threads go on elsewhere.
  void part(Warp& w, uint32_t pc, uint32_t depth, Mask mask) {
    w.groups.push_back({.pc = pc, .depth = depth, .mask = mask});
    limit = std::min(limit, w.groups.back().key());
  }
  // Groups that wait at this instruction join.
  void absorb(Warp& w) {
    for (size_t k = 0; k < w.groups.size();) {
      Group& g = w.groups[k];
      if (k == number || g.state == Group::State::Ready || g.pc != self.pc || g.depth != self.depth) {
        ++k;
        continue;
      }
      self.mask |= g.mask;
      w.groups.erase(w.groups.begin() + static_cast<std::ptrdiff_t>(k));
      if (number > k) --number;
    }
  }
};

class Machine {
 public:
  // The program and the regions must outlive it. regions: in order of their addresses. parameters: as the kernel declares them.
  Machine(Program& program, Three grid, Three block, unsigned dynamic_shared, std::vector<std::byte> parameters,
          std::vector<Region>& regions);
  // Runs all blocks. `cancelled` is asked now and then; true ends the run. Throws RuntimeError for a kernel that does not end.
  void run(const std::function<bool()>& cancelled = {});
  const std::vector<Fault>& faults() const noexcept { return faults_; }
  const Counts& counts() const noexcept { return counts_; }
  // How often each instruction of the program was run by warps.
  const std::vector<uint64_t>& executions() const noexcept { return executions_; }

  // --- for handlers ---
  struct Access {
    bool writes = false, atomic = false;
  };
  // The host's memory behind an address, or null: then a fault has been noted. The access's bytes: i.bytes * i.elements.
  std::byte* find(Warp& w, const Instruction& i, int lane, Space space, uint64_t address, bool writes);
  // Checks for races. `same`: a write that changes nothing.
  void order(Warp& w, const Instruction& i, int lane, const std::byte* at, unsigned bytes, Access access, bool same);
  void fault(FaultKind kind, const Warp& w, const Instruction& i, int lane, std::string text);
  void fence(Warp& w) noexcept { static_cast<void>(w), fenced_ = true; }
  // Counts an access of a warp by the addresses of its lanes.
  void count_access(const Warp& w, const Instruction& i, Mask mask, const uint64_t* addresses, bool writes);
  Program& program() noexcept { return program_; }
  const std::byte* parameters() const noexcept { return parameters_.data(); }
  Counts& mutable_counts() noexcept { return counts_; }

 private:
  void start_block();
  void run_block(const std::function<bool()>& cancelled);
  void release_barriers();
  void release(unsigned barrier);
  void step(Warp& w, uint64_t budget);
  void run_group(Warp& w, size_t number, uint64_t limit, uint64_t budget);
  // Of run_group: what all the threads of the group do at an instruction. False: the group waits or has ended.
  bool control(Warp& w, Turn& turn, const Instruction& i);
  void branch_by_table(Warp& w, Turn& turn, const Instruction& i);
  void call(Warp& w, Turn& turn, const Instruction& i);
  void return_from_call(Warp& w, Turn& turn);
  bool meet_warp(Warp& w, Turn& turn, const Instruction& i);
  bool meet_block(Warp& w, Turn& turn, const Instruction& i);
  void settle_warp(Warp& w);
  std::byte* find_shared(Warp& w, const Instruction& i, int lane, uint64_t address, bool writes);
  std::string outside_shared_text(uint64_t address, unsigned bytes) const;
  Region* region_of(uint64_t address, uint64_t bytes) noexcept;
  Three thread_of(unsigned number) const noexcept;
  std::string place_text(uint32_t pc) const;
  std::string outside_text(uint64_t address, unsigned bytes) const;
  bool ordered(Stamp earlier, Stamp mine) const noexcept;
  void raced(Warp& w, const Instruction& i, int lane, uint64_t offset, Stamp other, uint32_t other_at, bool writes, bool other_writes);

  Program& program_;
  const Three grid_, block_;
  const unsigned threads_;
  const unsigned dynamic_shared_;
  std::vector<std::byte> parameters_;
  std::vector<Region>& regions_;
  size_t hint_ = 0;  // the region that was used last
  std::vector<Warp> warps_;
  std::vector<std::byte> shared_;
  std::vector<uint8_t> shared_set_;  // by byte: written since the block began
  Shadow shared_shadow_;
  Three at_;  // the block's place
  uint64_t block_number_ = 0;
  // A block whose writes this one may read: those that it, or a block before it, has met at an atomic variable after a fence.
  bool fenced_ = false;
  std::vector<uint64_t> ordered_;                                 // bits by block
  std::unordered_map<uint64_t, std::vector<uint64_t>> released_;  // by address of the atomic variable
  std::vector<Fault> faults_;
  Counts counts_;
  std::vector<uint64_t> executions_;
  std::array<uint32_t, 16> arrived_{};  // at each barrier, without waiting
  Region* region_ = nullptr;            // where the last find() was, and whether that was in shared memory
  bool in_shared_ = false;
};

}  // namespace naru::backends::ptx
