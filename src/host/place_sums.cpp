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

PlaceCounts::PlaceCounts(int64_t rows) {
  const int bits = std::clamp(static_cast<int>(std::bit_width(static_cast<uint64_t>(rows))) - 4, 10, 22);
  shift_ = 64 - bits;
  counts_.resize(size_t{1} << bits);
}
bool PlaceCounts::crowded() const { return most_ > kPlaceBlock; }
bool PlaceCounts::crowded(const char* place) const { return counts_[bucket(place)] > kPlaceBlock; }

namespace {

// f(value, place) of each run of elements that goes to one place, or of each element.
template <class F>
void each_addition(const Moves& m, F&& f) {
  const int64_t inner = m.space.sizes[m.last()], rows = m.space.numel() / inner;
  const int64_t value_step = m.space.operands[0].strides[m.last()], target_step = m.space.operands[1].strides[m.last()];
  Walk walk(m.space, m.last());
  walk.seek(0);
  int64_t shifts[kIndexBlock];
  for (int64_t row = 0; row < rows; ++row, walk.next()) {
    if (m.inner_run) {
      f(walk.at(0), walk.at(1) + m.shift(walk));
      continue;
    }
    for (int64_t first = 0; first < inner; first += kIndexBlock) {
      const int64_t n = std::min(kIndexBlock, inner - first);
      m.shifts(walk, first, n, shifts);
      for (int64_t e = 0; e < n; ++e) f(walk.at(0) + (first + e) * value_step, walk.at(1) + (first + e) * target_step + shifts[e]);
    }
  }
}

// Of one line of places that the one index alone names: they count in a table.
template <class T>
void add_counted(const char* value, const int64_t* at, int64_t bound, int64_t scale, char* target, int64_t n, uint8_t* counts,
                 PlaceSums& sums) {
  const T* in = reinterpret_cast<const T*>(value);
  for (int64_t e = 0; e < n; ++e) {
    const int64_t place = at[e] + (at[e] < 0 ? bound : 0);
    T* out = reinterpret_cast<T*>(target + place * scale);
    *out = *out + in[e];
    if (++counts[place] == 0) sums.full(reinterpret_cast<char*>(out));
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
  std::vector<uint8_t> counts(static_cast<size_t>(bound));
  PlaceSums sums(add, s.value.dtype, m.item, 1);
  const auto line = s.value.dtype == DType::F32 ? add_counted<float> : add_counted<double>;
  Walk walk(m.space, m.last());
  walk.seek(0);
  for (int64_t row = 0; row < rows; ++row, walk.next()) {
    line(walk.at(0), reinterpret_cast<const int64_t*>(walk.at(2)), bound, s.indices[0].step * m.item, walk.at(1), inner, counts.data(),
         sums);
    if (shared) continue;
    sums.finish();
    std::fill(counts.begin(), counts.end(), uint8_t{0});
  }
  sums.finish();
  return true;
}

}  // namespace

bool add_in_blocks(const Moves& m, const ir::Scatter& s, AddRun add) {
  if (add_lines_counted(m, s, add)) return true;
  const int64_t inner = m.space.sizes[m.last()], all = m.space.numel(), rows = m.inner_run ? all / inner : all;
  PlaceCounts counts(rows);
  each_addition(m, [&](const char*, const char* place) { counts.count(place); });
  if (!counts.crowded()) return false;
  if (!m.inner_run) {
    PlaceSums sums(add, s.value.dtype, m.item, 1);
    each_addition(m, [&](const char* value, char* place) {
      add(value, m.item, place, m.item, nullptr, 1);
      if (counts.crowded(place)) sums.added(place);
    });
    sums.finish();
    return true;
  }
  const int64_t value_step = m.space.operands[0].strides[m.last()], target_step = m.space.operands[1].strides[m.last()];
  const double time = static_cast<double>(rows) * (8 + 0.1 * static_cast<double>(inner * m.item));
  split(inner, time, 64, [&](int64_t begin, int64_t end) {
    PlaceSums sums(add, s.value.dtype, target_step, end - begin);
    each_addition(m, [&](const char* value, char* place) {
      char* const target = place + begin * target_step;
      add(value + begin * value_step, value_step, target, target_step, nullptr, end - begin);
      if (counts.crowded(place)) sums.added(target);
    });
    sums.finish();
  });
  return true;
}

}  // namespace naru::host
