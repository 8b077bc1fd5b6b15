#include "host/place_sums.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "host/moves.h"
#include "host/thread_pool.h"
#include "ir/place_sums.h"

namespace naru::host {
namespace {

using ir::kPlaceBlock;

// How the places are numbered, which are few beside the values (ir::kPlaceValues): along each dimension of a Scatter's shape, and by each of its indices.
struct Numbering {
  int64_t places = 1;
  Dims strides;
  std::vector<int64_t> steps;

  explicit Numbering(const ir::Scatter& s) : strides(s.shape.size(), 0), steps(s.indices.size()) {
    for (size_t i = s.indices.size(); i-- > 0; places *= s.indices[i].bound) steps[i] = places;
  }
  // Dimensions in which the target moves have places of their own; `but` the one whose elements go together (-1: none).
  void number(const ir::Scatter& s, int64_t but) {
    for (auto d = static_cast<int64_t>(s.shape.size()); d-- > 0;) {
      const auto i = static_cast<size_t>(d);
      if (s.target.strides[i] == 0 || d == but) continue;
      strides[i] = places, places *= s.shape[i];
    }
  }
};

// Sums at places of n elements each, `step` bytes apart. The chain of a place's block stands at the place itself; where it is full, it is added to what the
// level above has, and the place holds -0, which changes no sum.
class PlaceSums {
 public:
  PlaceSums(AddRun add, DType type, int64_t places, int64_t step, int64_t n)
      : counts(static_cast<size_t>(places)),
        add_(add),
        item_(static_cast<int64_t>(size_of(type))),
        step_(step),
        n_(n),
        places_(counts.size()) {
    static_assert(kPlaceBlock == 256, "places count their blocks in a byte");
  }

  // Of the values in each place's block, which wrap to 0 where that is full: then full is to be called.
  std::vector<uint8_t> counts;
  void full(size_t number, char* at) {
    places_[number].at = at;
    push(places_[number], 0, at, step_);
    clear(at, step_);
  }
  void added(size_t number, char* at) {
    if (++counts[number] == 0) [[unlikely]]
      full(number, at);
  }
  // Puts the sums down.
  void finish() {
    for (Place& p : places_)
      if (!p.levels.empty()) put_down(p);
  }

 private:
  struct Level {
    std::vector<char> sum;
    int64_t count = 0;
  };
  struct Place {
    char* at = nullptr;
    std::vector<Level> levels;
  };

  // -0 in each element, of any floating type.
  void clear(char* at, int64_t step) const {
    for (int64_t e = 0; e < n_; ++e, at += step) {
      std::memset(at, 0, static_cast<size_t>(item_));
      at[item_ - 1] = static_cast<char>(0x80);
    }
  }
  void push(Place& p, size_t level, const char* values, int64_t step) {
    if (p.levels.size() <= level) p.levels.push_back({std::vector<char>(static_cast<size_t>(n_ * item_)), 0});
    if (p.levels[level].count % kPlaceBlock == 0) clear(p.levels[level].sum.data(), item_);
    add_(values, step, p.levels[level].sum.data(), item_, nullptr, n_);
    if (++p.levels[level].count % kPlaceBlock == 0) push_up(p, level);
  }
  void push_up(Place& p, size_t level) {
    const std::vector<char> sum = p.levels[level].sum;
    push(p, level + 1, sum.data(), item_);
  }
  void put_down(Place& p) {
    // What is left of the last block; -0 if that was full.
    push(p, 0, p.at, step_);
    size_t level = 0;
    for (; p.levels[level].count > 1; ++level)
      if (p.levels[level].count % kPlaceBlock != 0) push_up(p, level);
    clear(p.at, step_);
    add_(p.levels[level].sum.data(), item_, p.at, step_, nullptr, n_);
  }

  AddRun add_;
  int64_t item_, step_, n_;
  std::vector<Place> places_;
};

// One row of values whose positions lie behind each other. first: the number of the row's first place, number_step from one element to the next.
struct Line {
  const char* value;
  const int64_t* at;
  int64_t bound, scale;
  char* target;
  int64_t target_step, first, number_step, n;
};
template <class T>
void add_line(const Line& line, PlaceSums& sums) {
  const T* const in = reinterpret_cast<const T*>(line.value);
  uint8_t* const counts = sums.counts.data() + line.first;
  for (int64_t e = 0; e < line.n; ++e) {
    const int64_t place = line.at[e] + (line.at[e] < 0 ? line.bound : 0), number = e * line.number_step + place;
    T* const out = reinterpret_cast<T*>(line.target + e * line.target_step + place * line.scale);
    *out = *out + in[e];
    if (++counts[number] == 0) [[unlikely]]
      sums.full(static_cast<size_t>(line.first + number), reinterpret_cast<char*>(out));
  }
}

// A Scatter's moves, and the numbers of its places.
class Adding {
 public:
  Adding(const ir::Scatter& s, AddRun add) : s_(s), add_(add), numbering_(s) {
    const auto last = static_cast<int64_t>(s.shape.size()) - 1;
    // Elements of the last dimension, in which no index moves, go to their places together.
    bool runs = last > 0 && s.shape[last] > 1 && s.target.strides[last] != 0;
    for (const auto& i : s.indices) runs &= i.positions.strides[last] == 0;
    numbering_.number(s, runs ? last : -1);
    together_ = runs;
  }
  void run() const {
    const Moves m(s_.shape, s_.value, s_.target, s_.indices, &numbering_.strides);
    if (together_) return add_runs(m);
    PlaceSums sums(add_, s_.value.dtype, numbering_.places, m.item, 1);
    if (is_one_line(m))
      add_lines(m, sums);
    else
      add_elements(m, sums);
    sums.finish();
  }

 private:
  void add_lines(const Moves& m, PlaceSums& sums) const {
    const int64_t inner = m.space.sizes[m.last()], rows = m.space.numel() / inner;
    const auto add = s_.value.dtype == DType::F32 ? add_line<float> : add_line<double>;
    Walk walk(m.space, m.last());
    walk.seek(0);
    for (int64_t row = 0; row < rows; ++row, walk.next())
      add({walk.at(0), reinterpret_cast<const int64_t*>(walk.at(2)), s_.indices[0].bound, s_.indices[0].step * m.item, walk.at(1),
           m.space.operands[1].strides[m.last()], m.number(walk), m.number_step(), inner},
          sums);
  }
  void add_elements(const Moves& m, PlaceSums& sums) const {
    const int64_t inner = m.space.sizes[m.last()], rows = m.space.numel() / inner;
    const int64_t value_step = m.space.operands[0].strides[m.last()], target_step = m.space.operands[1].strides[m.last()];
    Walk walk(m.space, m.last());
    walk.seek(0);
    int64_t shifts[kIndexBlock], numbers[kIndexBlock];
    for (int64_t row = 0; row < rows; ++row, walk.next())
      for (int64_t first = 0; first < inner; first += kIndexBlock) {
        const int64_t n = std::min(kIndexBlock, inner - first);
        m.shifts(walk, first, n, shifts);
        m.numbers(walk, first, n, numbering_.steps, numbers);
        const char* const value = walk.at(0) + first * value_step;
        char* const target = walk.at(1) + first * target_step;
        // In runs that end where a block is full.
        for (int64_t done = 0, e = 0; done < n; done = e) {
          bool full = false;
          while (e < n && !full) full = ++sums.counts[static_cast<size_t>(numbers[e++])] == 0;
          add_(value + done * value_step, value_step, target + done * target_step, target_step, shifts + done, e - done);
          if (full) sums.full(static_cast<size_t>(numbers[e - 1]), target + (e - 1) * target_step + shifts[e - 1]);
        }
      }
  }
  void add_runs(const Moves& m) const {
    const int64_t inner = m.space.sizes[m.last()], rows = m.space.numel() / inner;
    const int64_t value_step = m.space.operands[0].strides[m.last()], target_step = m.space.operands[1].strides[m.last()];
    const double time = static_cast<double>(rows) * (8 + 0.1 * static_cast<double>(inner * m.item));
    split(inner, time, 64, [&](int64_t begin, int64_t end) {
      PlaceSums sums(add_, s_.value.dtype, numbering_.places, target_step, end - begin);
      Walk walk(m.space, m.last());
      walk.seek(0);
      for (int64_t row = 0; row < rows; ++row, walk.next()) {
        char* const target = walk.at(1) + m.shift(walk) + begin * target_step;
        add_(walk.at(0) + begin * value_step, value_step, target, target_step, nullptr, end - begin);
        int64_t number;
        m.numbers(walk, 0, 1, numbering_.steps, &number);
        sums.added(static_cast<size_t>(number), target);
      }
      sums.finish();
    });
  }

  const ir::Scatter& s_;
  AddRun add_;
  Numbering numbering_;
  bool together_;
};

}  // namespace

void add_in_blocks(const ir::Scatter& s, AddRun add) { Adding(s, add).run(); }

}  // namespace naru::host
