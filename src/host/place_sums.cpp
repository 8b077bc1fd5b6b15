#include "host/place_sums.h"

#include <bit>
#include <cstring>

#include "host/moves.h"
#include "host/thread_pool.h"
#include "ir/place_sums.h"

namespace naru::host {

using ir::kPlaceBlock;

PlaceSums::PlaceSums(AddRun add, DType type, int64_t step, int64_t n)
    : add_(add), item_(static_cast<int64_t>(size_of(type))), step_(step), n_(n) {
  static_assert(kPlaceBlock == 256, "places count their blocks in a byte");
}

void PlaceSums::rehash(size_t size) {
  table_.assign(size, 0);
  for (size_t i = 0; i < places_.size(); ++i) {
    size_t at = (reinterpret_cast<uintptr_t>(places_[i].at) * uint64_t{0x9e3779b97f4a7c15} >> 20) & (size - 1);
    while (table_[at]) at = (at + 1) & (size - 1);
    table_[at] = static_cast<uint32_t>(i + 1);
  }
}

PlaceSums::Place& PlaceSums::place_of(char* place) {
  if (table_.size() < 2 * (places_.size() + 1)) rehash(std::max<size_t>(64, 2 * table_.size()));
  const size_t mask = table_.size() - 1;
  size_t at = (reinterpret_cast<uintptr_t>(place) * uint64_t{0x9e3779b97f4a7c15} >> 20) & mask;
  for (; table_[at]; at = (at + 1) & mask)
    if (places_[table_[at] - 1].at == place) return places_[table_[at] - 1];
  places_.push_back({place, 0, {}});
  table_[at] = static_cast<uint32_t>(places_.size());
  return places_.back();
}

// -0 in each element, of any floating type.
void PlaceSums::clear(char* at, int64_t step) const {
  for (int64_t e = 0; e < n_; ++e, at += step) {
    std::memset(at, 0, static_cast<size_t>(item_));
    at[item_ - 1] = static_cast<char>(0x80);
  }
}

void PlaceSums::push(Place& p, size_t level, const char* values, int64_t step) {
  if (p.levels.size() <= level) p.levels.push_back({std::vector<char>(static_cast<size_t>(n_ * item_)), 0});
  if (p.levels[level].count % kPlaceBlock == 0) clear(p.levels[level].sum.data(), item_);
  add_(values, step, p.levels[level].sum.data(), item_, nullptr, n_);
  if (++p.levels[level].count % kPlaceBlock == 0) {
    const std::vector<char> sum = p.levels[level].sum;
    push(p, level + 1, sum.data(), item_);
  }
}

void PlaceSums::added(char* place) {
  Place& p = place_of(place);
  if (++p.in_block != 0) return;
  push(p, 0, place, step_);
  clear(place, step_);
}

void PlaceSums::full(char* place) {
  push(place_of(place), 0, place, step_);
  clear(place, step_);
}

void PlaceSums::finish() {
  for (Place& p : places_) {
    if (p.levels.empty()) continue;
    // What is left of the last block; -0 if that was full.
    push(p, 0, p.at, step_);
    size_t level = 0;
    for (; p.levels[level].count > 1; ++level)
      if (p.levels[level].count % kPlaceBlock != 0) {
        const std::vector<char> sum = p.levels[level].sum;
        push(p, level + 1, sum.data(), item_);
      }
    clear(p.at, step_);
    add_(p.levels[level].sum.data(), item_, p.at, step_, nullptr, n_);
  }
  places_.clear();
  table_.clear();
}

namespace {

// f(value, place) of each run of elements that goes to one place.
template <class F>
void each_run(const Moves& m, F&& f) {
  const int64_t rows = m.space.numel() / m.space.sizes[m.last()];
  Walk walk(m.space, m.last());
  walk.seek(0);
  for (int64_t row = 0; row < rows; ++row, walk.next()) f(walk.at(0), walk.at(1) + m.shift(walk));
}

// Of one line of places that the one index alone names: they count in a table.
template <class T>
void add_counted(const char* value, const int64_t* at, int64_t bound, int64_t scale, char* target, int64_t n, uint16_t* counts,
                 PlaceSums& sums) {
  const T* in = reinterpret_cast<const T*>(value);
  for (int64_t e = 0; e < n; ++e) {
    const int64_t place = at[e] + (at[e] < 0 ? bound : 0);
    T* out = reinterpret_cast<T*>(target + place * scale);
    *out = *out + in[e];
    if ((++counts[place] & (kPlaceBlock - 1)) == 0) [[unlikely]]
      sums.full(reinterpret_cast<char*>(out));
  }
}

bool add_lines_counted(const Moves& m, const ir::Scatter& s, AddRun add) {
  if (!is_one_line(m) || m.space.operands[1].strides[m.last()] != 0) return false;
  // The rows share their places, or have none in common.
  int still = 0;
  for (int d = 0; d < m.last(); ++d) still += m.space.operands[1].strides[d] == 0;
  const int64_t inner = m.space.sizes[m.last()], rows = m.space.numel() / inner, bound = s.indices[0].bound;
  const bool shared = still == m.last();
  if ((!shared && still > 0) || bound > 4 * (shared ? rows * inner : inner) + 4096) return false;
  std::vector<uint16_t> counts(static_cast<size_t>(bound));
  PlaceSums sums(add, s.value.dtype, m.item, 1);
  const auto line = s.value.dtype == DType::F32 ? add_counted<float> : add_counted<double>;
  Walk walk(m.space, m.last());
  walk.seek(0);
  for (int64_t row = 0; row < rows; ++row, walk.next()) {
    line(walk.at(0), reinterpret_cast<const int64_t*>(walk.at(2)), bound, s.indices[0].step * m.item, walk.at(1), inner, counts.data(),
         sums);
    if (shared) continue;
    sums.finish();
    std::fill(counts.begin(), counts.end(), uint16_t{0});
  }
  sums.finish();
  return true;
}

// How many values each place had, by its address, where the places lie close enough; else PlaceSums counts.
class Counts {
 public:
  Counts(const Moves& m, const char* target) : shift_(std::countr_zero(static_cast<uint64_t>(m.item))), low_(target) {
    const auto& t = m.space.operands[1];
    int64_t high = 0, low = 0;
    const auto reach = [&](int64_t bytes) { (bytes < 0 ? low : high) += bytes; };
    for (int d = 0; d < m.space.rank - (m.inner_run ? 1 : 0); ++d) reach(t.strides[d] * (m.space.sizes[d] - 1));
    for (const auto& i : m.indices) reach(i.step * m.item * (i.bound - 1));
    low_ += low;
    if (const int64_t span = (high - low) / m.item + 1; span <= 4 * m.space.numel()) counts_.resize(static_cast<size_t>(span));
  }
  void count(char* place, char* target, PlaceSums& sums) {
    if (!known()) return sums.added(target);
    if (fills(place)) sums.full(target);
  }
  bool known() const { return !counts_.empty(); }
  // Counts a value; whether it is the last of a block.
  bool fills(const char* place) { return (++counts_[static_cast<size_t>(place - low_) >> shift_] & (kPlaceBlock - 1)) == 0; }

 private:
  int shift_;
  const char* low_;
  std::vector<uint16_t> counts_;
};

const char* first_of_target(const Moves& m) {
  Walk walk(m.space, m.last());
  walk.seek(0);
  return walk.at(1);
}

// Values that go to a place each, added in runs that end where a block is full.
void add_elements(const Moves& m, const ir::Scatter& s, AddRun add) {
  const int64_t inner = m.space.sizes[m.last()], rows = m.space.numel() / inner;
  const int64_t value_step = m.space.operands[0].strides[m.last()], target_step = m.space.operands[1].strides[m.last()];
  PlaceSums sums(add, s.value.dtype, m.item, 1);
  Counts counts(m, first_of_target(m));
  Walk walk(m.space, m.last());
  walk.seek(0);
  int64_t shifts[kIndexBlock];
  for (int64_t row = 0; row < rows; ++row, walk.next())
    for (int64_t first = 0; first < inner; first += kIndexBlock) {
      const int64_t n = std::min(kIndexBlock, inner - first);
      m.shifts(walk, first, n, shifts);
      const char* const value = walk.at(0) + first * value_step;
      char* const target = walk.at(1) + first * target_step;
      int64_t done = 0;
      for (int64_t e = 0; e < n; ++e) {
        char* const place = target + e * target_step + shifts[e];
        if (counts.known() && !counts.fills(place)) continue;
        add(value + done * value_step, value_step, target + done * target_step, target_step, shifts + done, e + 1 - done);
        counts.known() ? sums.full(place) : sums.added(place);
        done = e + 1;
      }
      if (done < n) add(value + done * value_step, value_step, target + done * target_step, target_step, shifts + done, n - done);
    }
  sums.finish();
}

}  // namespace

void add_in_blocks(const Moves& m, const ir::Scatter& s, AddRun add) {
  if (add_lines_counted(m, s, add)) return;
  if (!m.inner_run) return add_elements(m, s, add);
  const int64_t inner = m.space.sizes[m.last()], rows = m.space.numel() / inner;
  const int64_t value_step = m.space.operands[0].strides[m.last()], target_step = m.space.operands[1].strides[m.last()];
  const double time = static_cast<double>(rows) * (8 + 0.1 * static_cast<double>(inner * m.item));
  split(inner, time, 64, [&](int64_t begin, int64_t end) {
    PlaceSums sums(add, s.value.dtype, target_step, end - begin);
    Counts counts(m, first_of_target(m));
    each_run(m, [&](const char* value, char* place) {
      char* const target = place + begin * target_step;
      add(value + begin * value_step, value_step, target, target_step, nullptr, end - begin);
      counts.count(place, target, sums);
    });
    sums.finish();
  });
}

}  // namespace naru::host
