#include "backends/ptx/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "backends/ptx/decode.h"
#include "naru/error.h"

namespace naru::backends::ptx {
namespace {

constexpr uint64_t kSlice = 1 << 14;           // instructions of a warp before the next one's turn
constexpr uint64_t kMost = uint64_t{1} << 32;  // instructions of a block: a kernel with more does not end, or waits for a later block
constexpr uint64_t kSector = 32;               // bytes that global memory is read in
constexpr int kBanks = 32;

template <class F>
void each_lane(Mask m, const F& f) {
  for (; m; m &= m - 1) f(std::countr_zero(m));
}

}  // namespace

const char* words_of(FaultKind kind) noexcept {
  constexpr const char* kWords[] = {"out of bounds",   "misaligned",          "write to an input", "uninitialised shared memory",
                                    "race in a block", "race between blocks", "divergent barrier", "trap"};
  return kWords[static_cast<size_t>(kind)];
}

void Counts::add(const Counts& o) noexcept {
  for (size_t k = 0; k < kClasses; ++k) by_class[k] += o.by_class[k];
  blocks += o.blocks, warps += o.warps, threads += o.threads, instructions += o.instructions, thread_instructions += o.thread_instructions;
  global_accesses += o.global_accesses, global_sectors += o.global_sectors, ideal_sectors += o.ideal_sectors;
  read_bytes += o.read_bytes, written_bytes += o.written_bytes;
  shared_accesses += o.shared_accesses, bank_conflicts += o.bank_conflicts, atomics += o.atomics, barriers += o.barriers;
  branches += o.branches, divergent_branches += o.divergent_branches;
}

void Shadow::clear() noexcept {
  std::free(cells_);
  cells_ = nullptr;
}

void Shadow::prepare(uint64_t at, unsigned bytes, uint64_t all) {
  const auto shift = static_cast<unsigned>(std::min(std::countr_zero(at | bytes), 4));
  if (cells_ && shift >= shift_) return;
  const uint64_t count = (all >> shift) + 1;
  // calloc gives large pieces as pages that take memory only where they are used.
  auto* const made = static_cast<Cell*>(std::calloc(count, sizeof(Cell)));
  if (!made) throw std::bad_alloc();
  if (cells_)
    for (uint64_t k = 0; k < count; ++k)
      if (const uint64_t from = k >> (shift_ - shift); from < count_) made[k] = cells_[from];
  std::free(cells_);
  cells_ = made, count_ = count, shift_ = shift;
}

Machine::Machine(Program& program, Three grid, Three block, unsigned dynamic_shared, std::vector<std::byte> parameters,
                 std::vector<Region>& regions)
    : program_(program),
      grid_(grid),
      block_(block),
      threads_(block.x * block.y * block.z),
      dynamic_shared_(dynamic_shared),
      parameters_(std::move(parameters)),
      regions_(regions),
      executions_(program.code.size()) {
  const Program& p = program_;
  const size_t shared = p.dynamic ? p.dynamic_at + size_t{dynamic_shared} : p.shared_end;
  shared_.resize(shared + 16), shared_set_.resize(shared);
  warps_.resize((threads_ + kLanes - 1) / kLanes);
  for (size_t k = 0; k < warps_.size(); ++k) {
    Warp& w = warps_[k];
    w.number = static_cast<unsigned>(k), w.machine = this, w.constants = p.constants.data();
    const size_t predicates = p.predicates * sizeof(Mask), local = size_t{p.local_bytes} * kLanes;
    w.memory.resize(p.register_bytes + predicates + 16 + local + size_t{p.argument_bytes} * kLanes);
    w.registers = w.memory.data();
    w.predicates = reinterpret_cast<Mask*>(w.registers + p.register_bytes);
    w.local = w.registers + (p.register_bytes + predicates + 15) / 16 * 16;
    w.arguments = w.local + local;
  }
}

Three Machine::thread_of(unsigned n) const noexcept { return {n % block_.x, n / block_.x % block_.y, n / (block_.x * block_.y)}; }

void Machine::start_block() {
  std::fill(shared_set_.begin(), shared_set_.end(), uint8_t{0});
  arrived_ = {};
  fenced_ = false;
  std::fill(ordered_.begin(), ordered_.end(), 0);
  for (Warp& w : warps_) {
    const unsigned first = w.number * kLanes, count = std::min<unsigned>(kLanes, threads_ - first);
    w.exists = w.live = count == kLanes ? ~Mask{0} : (Mask{1} << count) - 1;
    w.epoch = w.warp_epoch = w.steps = 0, w.carry = 0;
    w.last_write = {};
    w.groups.assign(1, Group{.pc = program_.start, .depth = 0, .mask = w.exists});
    w.predicates[0] = ~Mask{0}, w.predicates[1] = 0;
    for (const auto& [special, at] : program_.specials) {
      Vec<uint32_t> v;
      for (unsigned l = 0; l < kLanes; ++l) {
        const Three t = thread_of(first + l);
        const Mask bit = Mask{1} << l;
        // In the order of Special.
        const std::array values = {t.x,
                                   t.y,
                                   t.z,
                                   block_.x,
                                   block_.y,
                                   block_.z,
                                   at_.x,
                                   at_.y,
                                   at_.z,
                                   grid_.x,
                                   grid_.y,
                                   grid_.z,
                                   l,
                                   w.number,
                                   static_cast<uint32_t>(warps_.size()),
                                   0u,
                                   1u,
                                   1u,
                                   bit,
                                   bit - 1,
                                   bit | (bit - 1),
                                   ~(bit | (bit - 1)),
                                   ~(bit - 1),
                                   static_cast<uint32_t>(kLanes),
                                   dynamic_shared_,
                                   program_.shared_bytes + dynamic_shared_};
        static_assert(values.size() == static_cast<size_t>(Special::TotalShared) + 1);
        v.v[l] = values[static_cast<size_t>(special)];
      }
      std::memcpy(w.registers + at.at, v.v, sizeof v.v);
    }
  }
  ++counts_.blocks;
  counts_.warps += warps_.size(), counts_.threads += threads_;
}

void Machine::run(const std::function<bool()>& cancelled) {
  const uint64_t blocks = uint64_t{grid_.x} * grid_.y * grid_.z;
  if (blocks > 1) ordered_.resize(blocks / 64 + 1);
  for (at_.z = 0; at_.z < grid_.z; ++at_.z)
    for (at_.y = 0; at_.y < grid_.y; ++at_.y)
      for (at_.x = 0; at_.x < grid_.x; ++at_.x) {
        start_block();
        run_block(cancelled);
        ++block_number_;
        if (cancelled && cancelled()) return;
      }
  for (size_t k = 0; k < executions_.size(); ++k) {
    counts_.by_class[static_cast<size_t>(program_.code[k].of)] += executions_[k];
    counts_.instructions += executions_[k];
  }
}

void Machine::run_block(const std::function<bool()>& cancelled) {
  for (;;) {
    bool ran = false, waits = false;
    uint64_t steps = 0;
    for (Warp& w : warps_) {
      const bool ready =
          std::any_of(w.groups.begin(), w.groups.end(), [](const Group& g) { return g.state != Group::State::AtBlockBarrier; });
      if (ready) step(w, kSlice), ran = true;
      waits |= !w.groups.empty();
      steps += w.steps;
    }
    if (steps > kMost)
      throw RuntimeError(
          "kernel '{}': a block has run {} instructions and does not end. (It would hang here too if it waited for a later block: blocks "
          "run "
          "one after another)",
          program_.name, steps);
    if (cancelled && cancelled()) return;
    if (!waits) return;
    if (!ran) release_barriers();
  }
}

void Machine::step(Warp& w, uint64_t budget) {
  const uint64_t end = w.steps + budget;
  while (w.steps < end) {
    // Threads that are at the same place go on together. The group that is least far goes first; now and then the one that is furthest, for which the others
    // may be waiting.
    const bool reverse = (w.steps >> 16 & 7) == 7;
    size_t best = w.groups.size();
    for (size_t k = 0; k < w.groups.size(); ++k) {
      if (w.groups[k].state != Group::State::Ready) continue;
      if (best == w.groups.size() || (w.groups[k].key() < w.groups[best].key()) != reverse) best = k;
    }
    if (best == w.groups.size()) {
      const bool stuck =
          std::any_of(w.groups.begin(), w.groups.end(), [](const Group& g) { return g.state == Group::State::AtWarpBarrier; });
      if (!stuck) return;
      settle_warp(w);
      continue;
    }
    uint64_t limit = ~uint64_t{0};
    for (size_t k = 0; k < w.groups.size();) {
      Group& g = w.groups[k];
      if (k == best || g.state != Group::State::Ready) {
        ++k;
      } else if (g.key() == w.groups[best].key()) {
        w.groups[best].mask |= g.mask;
        w.groups.erase(w.groups.begin() + static_cast<std::ptrdiff_t>(k));
        if (best > k) --best;
      } else {
        limit = std::min(limit, g.key());
        ++k;
      }
    }
    const uint64_t period = (w.steps | 0xffff) + 1;
    run_group(w, best, reverse ? ~uint64_t{0} : limit, std::min(end, period) - w.steps);
  }
}

// Runs until the group comes to `limit`, where others are, or waits or ends.
void Machine::run_group(Warp& w, size_t number, uint64_t limit, uint64_t budget) {
  const Instruction* const code = program_.code.data();
  uint64_t* const executions = executions_.data();
  Turn turn{.self = w.groups[number], .number = number, .limit = limit};
  Group self = turn.self;  // a copy, which stays in registers
  uint64_t threads = 0;
  for (; budget > 0; --budget) {
    if (self.key() >= turn.limit) break;
    const Instruction& i = code[self.pc];
    const Mask m = i.guard < 0 ? self.mask : self.mask & get_predicate(w, i.guard, i.negated);
    ++w.steps;
    ++executions[self.pc];
    threads += static_cast<uint64_t>(std::popcount(m));
    w.pc = self.pc;
    if (i.control == Control::None) {
      if (m) i.run(w, i, m);
      ++self.pc;
      continue;
    }
    const Mask rest = self.mask & ~m;
    if (i.control == Control::Branch) {
      ++counts_.branches;
      if (!m) {
        ++self.pc;
      } else if (!rest) {
        self.pc = i.target;
      } else {
        ++counts_.divergent_branches;
        const uint32_t next = self.pc + 1;
        const bool jumps = i.target < next;
        turn.part(w, jumps ? next : i.target, self.depth, jumps ? rest : m);
        self.pc = jumps ? i.target : next, self.mask = jumps ? m : rest;
      }
      continue;
    }
    if (!m) {
      ++self.pc;
      continue;
    }
    if (rest) turn.part(w, self.pc + 1, self.depth, rest), self.mask = m;
    turn.self = self;
    const bool goes_on = control(w, turn, i);
    self = turn.self;
    if (!goes_on) break;
  }
  counts_.thread_instructions += threads;
  if (turn.ended)
    w.groups.erase(w.groups.begin() + static_cast<std::ptrdiff_t>(turn.number));
  else
    w.groups[turn.number] = self;
}

bool Machine::control(Warp& w, Turn& turn, const Instruction& i) {
  switch (i.control) {
    case Control::Table:
      branch_by_table(w, turn, i);
      return true;
    case Control::Call:
      call(w, turn, i);
      return true;
    case Control::Return:
      return_from_call(w, turn);
      return true;
    case Control::Trap:
      fault(FaultKind::Trap, w, i, std::countr_zero(turn.self.mask), "the kernel ends the program by a trap");
      [[fallthrough]];
    case Control::Exit:
      w.live &= ~turn.self.mask;
      turn.ended = true;
      return false;
    case Control::WarpWide:
      return meet_warp(w, turn, i);
    case Control::BlockArrive:
    case Control::BlockBarrier:
      return meet_block(w, turn, i);
    default:
      return true;
  }
}

void Machine::branch_by_table(Warp& w, Turn& turn, const Instruction& i) {
  Group& self = turn.self;
  const Vec<uint32_t> at = get<uint32_t>(w, i.a);
  const auto target = [&](int l) {
    const uint32_t k = at.v[l];
    return k < i.count ? program_.lists[i.list + k] : self.pc + 1;
  };
  const uint32_t mine = target(std::countr_zero(self.mask));
  std::vector<std::pair<uint32_t, Mask>> others;
  Mask stays = 0;
  each_lane(self.mask, [&](int l) {
    const uint32_t to = target(l);
    if (to == mine) {
      stays |= Mask{1} << l;
      return;
    }
    for (auto& [pc, mask] : others)
      if (pc == to) return static_cast<void>(mask |= Mask{1} << l);
    others.emplace_back(to, Mask{1} << l);
  });
  for (const auto& [pc, mask] : others) turn.part(w, pc, self.depth, mask);
  self.pc = mine, self.mask = stays;
}

void Machine::call(Warp& w, Turn& turn, const Instruction& i) {
  Group& self = turn.self;
  if (self.depth > 200) throw RuntimeError("kernel '{}': calls are nested more than 200 deep: recursion is not supported", program_.name);
  if (w.calls.size() <= self.depth) w.calls.resize(self.depth + 1);
  const uint32_t* copy = &program_.lists[i.list];
  for (uint32_t k = 0; k < i.count; ++k, copy += 3)
    each_lane(self.mask, [&](int l) {
      std::byte* const base = w.arguments + static_cast<size_t>(l) * program_.argument_bytes;
      std::memmove(base + copy[1], base + copy[0], copy[2]);
    });
  each_lane(self.mask, [&](int l) { w.calls[self.depth][static_cast<size_t>(l)] = self.pc; });
  ++self.depth;
  self.pc = i.target;
}

void Machine::return_from_call(Warp& w, Turn& turn) {
  Group& self = turn.self;
  const auto& calls = w.calls[self.depth - 1];
  const uint32_t mine = calls[static_cast<size_t>(std::countr_zero(self.mask))];
  Mask stays = 0;
  each_lane(self.mask, [&](int l) {
    const Instruction& call = program_.code[calls[static_cast<size_t>(l)]];
    const uint32_t* copy = &program_.lists[call.list + 3 * call.count];
    std::byte* const base = w.arguments + static_cast<size_t>(l) * program_.argument_bytes;
    for (int64_t k = 0; k < call.offset; ++k, copy += 3) std::memmove(base + copy[1], base + copy[0], copy[2]);
    if (calls[static_cast<size_t>(l)] == mine) stays |= Mask{1} << l;
  });
  // Threads that came from elsewhere go back there.
  for (Mask away = self.mask & ~stays; away;) {
    const uint32_t to = calls[static_cast<size_t>(std::countr_zero(away))];
    Mask same = 0;
    each_lane(away, [&](int l) { same |= calls[static_cast<size_t>(l)] == to ? Mask{1} << l : 0; });
    turn.part(w, to + 1, self.depth - 1, same);
    away &= ~same;
  }
  self.pc = mine + 1, self.mask = stays, --self.depth;
}

bool Machine::meet_warp(Warp& w, Turn& turn, const Instruction& i) {
  Group& self = turn.self;
  turn.absorb(w);
  const Mask named = get<uint32_t>(w, i.e).v[std::countr_zero(self.mask)], wanted = named & w.live;
  if (wanted & ~self.mask) {
    self.state = Group::State::AtWarpBarrier;
    return false;
  }
  if (const Mask unnamed = self.mask & ~named)
    fault(FaultKind::DivergentBarrier, w, i, std::countr_zero(unnamed),
          fmt::format("the mask 0x{:08x} does not name the thread itself", named));
  i.run(w, i, self.mask);
  if (i.mode == 255) ++w.warp_epoch;
  if (w.warp_epoch == 256) w.warp_epoch = 0, ++w.epoch;
  ++self.pc;
  return true;
}

bool Machine::meet_block(Warp& w, Turn& turn, const Instruction& i) {
  Group& self = turn.self;
  turn.absorb(w);
  const int first = std::countr_zero(self.mask);
  const uint32_t barrier = get<uint32_t>(w, i.a).v[first] & 15, expected = i.count ? get<uint32_t>(w, i.b).v[first] : 0;
  if (i.control == Control::BlockArrive) {
    arrived_[barrier] += static_cast<uint32_t>(std::popcount(self.mask));
    ++self.pc;
    return true;
  }
  self.state = Group::State::AtBlockBarrier, self.barrier = barrier, self.expected = expected;
  return false;
}

// All threads of the warp wait: some of them for threads of the warp that do not come.
void Machine::settle_warp(Warp& w) {
  Mask at_barriers = 0;
  for (const Group& g : w.groups)
    if (g.state == Group::State::AtWarpBarrier && program_.code[g.pc].mode == 255) at_barriers |= g.mask;
  for (Group& g : w.groups) {
    if (g.state != Group::State::AtWarpBarrier) continue;
    const Instruction& i = program_.code[g.pc];
    const int first = std::countr_zero(g.mask);
    const Mask wanted = get<uint32_t>(w, i.e).v[first] & w.live, there = i.mode == 255 ? at_barriers : g.mask;
    w.pc = g.pc;
    // __syncwarp() may stand at several places.
    if (wanted & ~there)
      fault(FaultKind::DivergentBarrier, w, i, first,
            fmt::format("threads 0x{:08x} of the warp wait for 0x{:08x}, which are elsewhere", g.mask, wanted & ~there));
    i.run(w, i, g.mask);
    ++g.pc;
    g.state = Group::State::Ready;
  }
  ++w.warp_epoch;
  if (w.warp_epoch == 256) w.warp_epoch = 0, ++w.epoch;
}

void Machine::release_barriers() {
  uint32_t live = 0;
  std::array<uint32_t, 16> waiting = arrived_, expected{};
  std::array<bool, 16> used{};
  for (const Warp& w : warps_) {
    live += static_cast<uint32_t>(std::popcount(w.live));
    for (const Group& g : w.groups) {
      waiting[g.barrier] += static_cast<uint32_t>(std::popcount(g.mask));
      expected[g.barrier] = std::max(expected[g.barrier], g.expected);
      used[g.barrier] = true;
    }
  }
  bool any = false;
  for (unsigned b = 0; b < 16; ++b)
    if (used[b] && waiting[b] >= (expected[b] ? expected[b] : live)) release(b), any = true;
  if (any) return;
  // No thread can go on: each waits for threads that are at another barrier.
  for (unsigned b = 0; b < 16; ++b) {
    if (!used[b]) continue;
    for (Warp& w : warps_) {
      const auto g = std::find_if(w.groups.begin(), w.groups.end(), [&](const Group& x) { return x.barrier == b; });
      if (g == w.groups.end()) continue;
      w.pc = g->pc;
      fault(FaultKind::DivergentBarrier, w, program_.code[g->pc], std::countr_zero(g->mask),
            fmt::format("{} threads have come to barrier {}, which waits for {}", waiting[b], b, expected[b] ? expected[b] : live));
      break;
    }
    release(b);
  }
}

void Machine::release(unsigned barrier) {
  ++counts_.barriers;
  uint64_t epoch = 0;
  const Group* first = nullptr;
  uint32_t yes = 0;
  bool all = true, full = true;
  for (Warp& w : warps_) {
    epoch = std::max(epoch, w.epoch);
    for (const Group& g : w.groups) {
      if (g.barrier != barrier) continue;
      const Instruction& i = program_.code[g.pc];
      full &= g.expected == 0;
      w.pc = g.pc;
      if (!first)
        first = &g;
      else if (full && first->pc != g.pc)
        fault(FaultKind::DivergentBarrier, w, i, std::countr_zero(g.mask),
              fmt::format("other threads of the block are at another barrier, {}", place_text(first->pc)));
      if (i.mode) {
        const Mask p = get_predicate(w, i.predicate, i.predicate_negated);
        yes += static_cast<uint32_t>(std::popcount(p & g.mask));
        all &= (g.mask & ~p) == 0;
      }
    }
  }
  if (first && full) {
    // Threads may have ended before. A thread that has passed the barrier by has written behind it, and then ended.
    const uint32_t pc = first->pc;
    for (Warp& w : warps_)
      each_lane(w.exists & ~w.live, [&](int l) {
        const uint64_t last = w.last_write[static_cast<size_t>(l)];
        if (last >> 32 != w.epoch + 1 || static_cast<uint32_t>(last) < pc) return;
        w.pc = pc;
        fault(FaultKind::DivergentBarrier, w, program_.code[pc], l, "the thread has passed the barrier by, and other threads wait there");
      });
  }
  for (Warp& w : warps_) {
    for (Group& g : w.groups) {
      if (g.barrier != barrier || g.state != Group::State::AtBlockBarrier) continue;
      const Instruction& i = program_.code[g.pc];
      if (i.mode == 1) {
        Vec<uint32_t> d;
        for (uint32_t& x : d.v) x = yes;
        put(w, i.d, d, g.mask);
      } else if (i.mode) {
        put_predicate(w, static_cast<int16_t>(i.d.at), (i.mode == 2 ? all : yes != 0) ? ~Mask{0} : 0, g.mask);
      }
      ++g.pc;
      g.state = Group::State::Ready, g.barrier = 0, g.expected = 0;
    }
    w.epoch = epoch + 1, w.warp_epoch = 0;
  }
  arrived_[barrier] = 0;
}

std::string Machine::place_text(uint32_t pc) const {
  const Instruction& i = program_.code[pc];
  return i.line ? fmt::format("line {}", i.line) : fmt::format("a {}", i.name);
}

void Machine::fault(FaultKind kind, const Warp& w, const Instruction& i, int lane, std::string text) {
  const std::string file = i.file < program_.files.size() ? program_.files[i.file] : "";
  for (Fault& f : faults_)
    if (f.kind == kind && f.line == i.line && f.file == file && (i.line || f.instruction == i.name)) return static_cast<void>(++f.times);
  faults_.push_back({kind, file, i.line, at_, thread_of(w.number * kLanes + static_cast<unsigned>(lane)), i.name, std::move(text), 1});
}

Region* Machine::region_of(uint64_t address, uint64_t bytes) noexcept {
  const auto holds = [&](const Region& r) { return address >= r.base && address + bytes <= r.base + r.bytes; };
  if (hint_ < regions_.size() && holds(regions_[hint_])) return &regions_[hint_];
  auto at = std::upper_bound(regions_.begin(), regions_.end(), address, [](uint64_t a, const Region& r) { return a < r.base; });
  if (at == regions_.begin()) return nullptr;
  --at;
  if (!holds(*at)) return nullptr;
  hint_ = static_cast<size_t>(at - regions_.begin());
  return &*at;
}

std::string Machine::outside_text(uint64_t address, unsigned bytes) const {
  if (address < 4096) return fmt::format("{} bytes at address {}, a null pointer", bytes, address);
  const Region* nearest = nullptr;
  uint64_t distance = ~uint64_t{0};
  bool behind = false;
  for (const Region& r : regions_) {
    const bool after = address + bytes > r.base + r.bytes && address >= r.base;
    const uint64_t d = after ? address + bytes - (r.base + r.bytes) : r.base - std::min<uint64_t>(address, r.base);
    if (d < distance) nearest = &r, distance = d, behind = after;
  }
  if (!nearest || distance > uint64_t{1} << 32) return fmt::format("{} bytes at address 0x{:x}, where nothing is", bytes, address);
  // Where the access begins, from the end of the tensor or from its start.
  if (behind) {
    const uint64_t end = nearest->base + nearest->bytes;
    if (address < end) return fmt::format("{} bytes that begin {} before the end of {}", bytes, end - address, nearest->text());
    return fmt::format("{} bytes, {} bytes behind {}", bytes, address - end, nearest->text());
  }
  return fmt::format("{} bytes, {} bytes before {}", bytes, distance, nearest->text());
}

std::string Machine::outside_shared_text(uint64_t address, unsigned bytes) const {
  std::string text = fmt::format("{} bytes outside of the shared arrays", bytes);
  uint64_t nearest = 128;
  for (const Variable& v : program_.variables)
    if (v.space == Space::Shared && address + bytes > v.at + v.bytes && address - std::min(address, v.at + v.bytes) < nearest) {
      nearest = address - std::min(address, v.at + v.bytes);
      text = fmt::format("{} bytes, {} bytes behind the shared array `{}` of {} bytes", bytes, nearest, v.name, v.bytes);
    } else if (v.space == Space::Shared && address < v.at && v.at - address < nearest) {
      nearest = v.at - address;
      text = fmt::format("{} bytes, {} bytes before the shared array `{}` of {} bytes", bytes, nearest, v.name, v.bytes);
    }
  if (program_.dynamic && address + bytes > program_.dynamic_at + uint64_t{dynamic_shared_} && nearest == 128)
    text =
        fmt::format("{} bytes at byte {} of the {} bytes of dynamic shared memory", bytes, address - program_.dynamic_at, dynamic_shared_);
  return text;
}

std::byte* Machine::find_shared(Warp& w, const Instruction& i, int lane, uint64_t address, bool writes) {
  const unsigned bytes = i.bytes * unsigned{i.elements};
  const Variable* of = nullptr;
  for (const Variable& v : program_.variables)
    if (v.space == Space::Shared && address >= v.at && address + bytes <= v.at + v.bytes) of = &v;
  const bool dynamic =
      program_.dynamic && address >= program_.dynamic_at && address + bytes <= program_.dynamic_at + uint64_t{dynamic_shared_};
  if (!of && !dynamic) {
    fault(FaultKind::OutOfBounds, w, i, lane, outside_shared_text(address, bytes));
    return nullptr;
  }
  uint8_t* const set = shared_set_.data() + address;
  if (i.reads) {
    bool whole = true;
    for (unsigned k = 0; k < bytes; ++k) whole &= set[k] != 0;
    if (!whole)
      fault(FaultKind::Uninitialized, w, i, lane,
            of ? fmt::format("byte {} of the shared array `{}` of {} bytes", address - of->at, of->name, of->bytes)
               : fmt::format("byte {} of dynamic shared memory", address - program_.dynamic_at));
  }
  if (writes) {
    std::memset(set, 1, bytes);
    w.last_write[static_cast<size_t>(lane)] = (w.epoch + 1) << 32 | w.pc;
  }
  in_shared_ = true;
  return shared_.data() + address;
}

std::byte* Machine::find(Warp& w, const Instruction& i, int lane, Space space, uint64_t address, bool writes) {
  const unsigned bytes = i.bytes * unsigned{i.elements};
  region_ = nullptr, in_shared_ = false;
  if (space == Space::Generic) {
    switch (address & kWindows) {
      case kSharedWindow:
        space = Space::Shared, address &= ~kWindows;
        break;
      case kLocalWindow:
        space = Space::Local, address &= ~kWindows;
        break;
      case kParameterWindow:
        space = Space::Parameter;
        break;
      default:
        space = Space::Global;
    }
  }
  if ((address & (bytes - 1)) != 0) {  // a power of two
    const bool global = space == Space::Global || space == Space::Constant;
    const Region* const r = global ? region_of(address, 1) : nullptr;
    fault(FaultKind::Misaligned, w, i, lane,
          r ? fmt::format("{} bytes at byte {} of {}, no multiple of {}", bytes, address - r->base, r->text(), bytes)
            : fmt::format("{} bytes at address 0x{:x}, no multiple of {}", bytes, address, bytes));
    return nullptr;
  }
  switch (space) {
    case Space::Shared:
      return find_shared(w, i, lane, address, writes);
    case Space::Local:
      if (address + bytes > program_.local_bytes) {
        fault(FaultKind::OutOfBounds, w, i, lane,
              fmt::format("{} bytes at byte {} of the {} bytes of local memory", bytes, address, program_.local_bytes));
        return nullptr;
      }
      return w.local + static_cast<size_t>(lane) * program_.local_bytes + address;
    case Space::Parameter:
      address &= ~kWindows;
      if (address + bytes > parameters_.size()) {
        fault(FaultKind::OutOfBounds, w, i, lane,
              fmt::format("{} bytes at byte {} of the {} bytes of parameters", bytes, address, parameters_.size()));
        return nullptr;
      }
      return parameters_.data() + address;
    case Space::Argument:
      return w.arguments + static_cast<size_t>(lane) * program_.argument_bytes + address;
    default:
      break;
  }
  Region* const r = region_of(address, bytes);
  if (!r) {
    fault(FaultKind::OutOfBounds, w, i, lane, (writes ? "writes " : "reads ") + outside_text(address, bytes));
    return nullptr;
  }
  if (writes) {
    if (!r->written) {
      fault(FaultKind::WriteToInput, w, i, lane,
            fmt::format("{} bytes at byte {} of {}, which the kernel only reads", bytes, address - r->base, r->text()));
      return nullptr;
    }
    w.last_write[static_cast<size_t>(lane)] = (w.epoch + 1) << 32 | w.pc;
  }
  region_ = r;
  return reinterpret_cast<std::byte*>(address);
}

bool Machine::ordered(Stamp s, Stamp mine) const noexcept {
  if (!s || (s.strong() && mine.strong())) return true;
  if (s.block() != mine.block()) {
    if (in_shared_) return true;  // of a block that has ended
    const uint64_t b = s.block();
    return b / 64 < ordered_.size() && (ordered_[b / 64] >> b % 64 & 1) != 0;
  }
  if (s.thread() == mine.thread() || s.epoch() != mine.epoch()) return true;
  return s.thread() / kLanes == mine.thread() / kLanes && s.warp_epoch() != mine.warp_epoch();
}

void Machine::raced(Warp& w, const Instruction& i, int lane, uint64_t offset, Stamp other, uint32_t other_at, bool writes,
                    bool other_writes) {
  const bool between = other.block() != (block_number_ & 0xffffff);
  const Three t = thread_of(other.thread());
  std::string where = region_ ? fmt::format("byte {} of {}", offset, region_->text()) : "shared memory";
  if (in_shared_)
    for (const Variable& v : program_.variables)
      if (v.space == Space::Shared && offset >= v.at && offset < v.at + v.bytes)
        where = fmt::format("byte {} of the shared array `{}`", offset - v.at, v.name);
  std::string who = fmt::format("thread ({}, {}, {})", t.x, t.y, t.z);
  if (between) {
    const uint64_t b = other.block();
    who += fmt::format(" of block ({}, {}, {})", b % grid_.x, b / grid_.x % grid_.y, b / (uint64_t{grid_.x} * grid_.y));
  }
  fault(between ? FaultKind::RaceBetweenBlocks : FaultKind::RaceInBlock, w, i, lane,
        fmt::format("{} {}, which {} has {} at {} without {} between", writes ? "writes" : "reads", where, who,
                    other_writes ? "written" : "read", place_text(other_at), between ? "an order of the blocks" : "a barrier"));
}

void Machine::order(Warp& w, const Instruction& i, int lane, const std::byte* at, unsigned bytes, Access access, bool same) {
  if (!in_shared_ && (!region_ || !region_->written)) return;
  const auto thread = w.number * kLanes + static_cast<unsigned>(lane);
  const Stamp mine = Stamp::of(block_number_, thread, w.epoch, w.warp_epoch, i.strong);
  const uint64_t offset = in_shared_ ? static_cast<uint64_t>(at - shared_.data()) : reinterpret_cast<uintptr_t>(at) - region_->base;
  Shadow& shadow = in_shared_ ? shared_shadow_ : region_->shadow;
  const bool synchronizes = i.strong && !in_shared_ && !ordered_.empty();
  const auto address = reinterpret_cast<uint64_t>(at);
  // What is read here may have been released by other blocks: their writes are in order from now on.
  if (synchronizes && i.reads)
    if (const auto from = released_.find(address); from != released_.end())
      for (size_t k = 0; k < ordered_.size(); ++k) ordered_[k] |= from->second[k];
  shadow.each(offset, bytes, in_shared_ ? shared_.size() : region_->bytes, [&](Cell& c) {
    if (access.writes) {
      if (!same && !ordered(c.write, mine))
        raced(w, i, lane, offset, c.write, c.write_at, true, true);
      else if (!same && !ordered(c.strong, mine))
        raced(w, i, lane, offset, c.strong, c.strong_at, true, true);
      if (!ordered(c.read, mine))
        raced(w, i, lane, offset, c.read, c.read_at, true, false);
      else if (!ordered(c.other, mine))
        raced(w, i, lane, offset, c.other, c.other_at, true, false);
      if (i.strong)
        c.strong = mine, c.strong_at = w.pc;
      else
        c.write = mine, c.write_at = w.pc;
      return;
    }
    if (!ordered(c.write, mine))
      raced(w, i, lane, offset, c.write, c.write_at, false, true);
    else if (!ordered(c.strong, mine))
      raced(w, i, lane, offset, c.strong, c.strong_at, false, true);
    // Of the reads that a later write could race with, those of two threads are enough: the writer is one of them at most.
    if (ordered(c.read, mine) && (!c.read.strong() || i.strong))
      c.read = mine, c.read_at = w.pc;
    else
      c.other = mine, c.other_at = w.pc;
  });
  if (synchronizes && access.writes && fenced_) {
    auto& blocks = released_[address];
    blocks.resize(ordered_.size());
    for (size_t k = 0; k < ordered_.size(); ++k) blocks[k] |= ordered_[k];
    blocks[block_number_ / 64] |= uint64_t{1} << block_number_ % 64;
  }
}

void Machine::count_access(const Warp& w, const Instruction& i, Mask m, const uint64_t* addresses, bool writes) {
  static_cast<void>(w);
  Space space = i.space;
  const int first = std::countr_zero(m);
  if (space == Space::Generic) {
    const uint64_t window = addresses[first] & kWindows;
    space = window == kSharedWindow ? Space::Shared : window == 0 ? Space::Global : Space::Local;
  }
  const unsigned bytes = i.bytes * unsigned{i.elements};
  if (space == Space::Global) {
    // A sector is counted once for an instruction.
    std::array<uint64_t, kLanes * 2> seen;
    size_t count = 0;
    bool alike = true;
    each_lane(m, [&](int l) {
      alike &= addresses[l] == addresses[first];
      for (uint64_t s = addresses[l] / kSector, end = (addresses[l] + bytes - 1) / kSector; s <= end; ++s) {
        if (count && seen[count - 1] == s) continue;
        if (std::find(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(count), s) ==
                seen.begin() + static_cast<std::ptrdiff_t>(count) &&
            count < seen.size())
          seen[count++] = s;
      }
    });
    const auto lanes = static_cast<uint64_t>(std::popcount(m));
    ++counts_.global_accesses;
    counts_.global_sectors += count;
    counts_.ideal_sectors += std::min<uint64_t>(count, alike ? (bytes + kSector - 1) / kSector : (lanes * bytes + kSector - 1) / kSector);
    (writes ? counts_.written_bytes : counts_.read_bytes) += lanes * bytes;
  } else if (space == Space::Shared) {
    // Words of 4 bytes lie in 32 banks. Accesses of 8 and 16 bytes are done by halves and quarters of the warp.
    ++counts_.shared_accesses;
    const int part = bytes <= 4 ? kLanes : bytes == 8 ? kLanes / 2 : kLanes / 4;
    for (int from = 0; from < kLanes; from += part) {
      std::array<std::array<uint32_t, kLanes>, kBanks> words;
      std::array<uint8_t, kBanks> used{};
      int turns = 0;
      for (int l = from; l < from + part; ++l) {
        if (!(m >> l & 1)) continue;
        for (unsigned k = 0; k < (bytes + 3) / 4; ++k) {
          const auto word = static_cast<uint32_t>(addresses[l] / 4 + k);
          auto& bank = words[word % kBanks];
          uint8_t& n = used[word % kBanks];
          if (std::find(bank.begin(), bank.begin() + n, word) != bank.begin() + n || n == kLanes) continue;
          bank[n++] = word;
          turns = std::max<int>(turns, n);
        }
      }
      if (turns > 1) counts_.bank_conflicts += static_cast<uint64_t>(turns - 1);
    }
  }
}

}  // namespace naru::backends::ptx
