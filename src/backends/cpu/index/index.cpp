// Gather and Scatter. All indices are checked before anything is written.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/exec/instructions.h"
#include "backends/cpu/exec/kernels.h"
#include "backends/cpu/exec/layout.h"
#include "backends/cpu/exec/simd.h"
#include "backends/cpu/index/moves.h"
#include "backends/cpu/index/scatter_sums.h"
#include "ir/bad_index.h"
#include "ir/scatter_sums.h"
#include "naru/error.h"

namespace naru::cpu {
namespace {

using ir::IndexOperand;

// The calling operator, for error messages.
struct Named {
  const char* op;
  uint32_t where;
};

// Whether a run of indices has one out of bounds, and a negative one.
struct Seen {
  bool outside, negative;
};
NARU_WIDE Seen look_at(const int64_t* positions, int64_t n, int64_t least, int64_t bound) {
  const uint64_t from = static_cast<uint64_t>(least), room = static_cast<uint64_t>(bound) - from;
  uint64_t outside = 0;
  int64_t all = 0;
  for (int64_t i = 0; i < n; ++i) {
    outside |= static_cast<uint64_t>(positions[i]) - from >= room;
    all |= positions[i];
  }
  return {outside != 0, all < 0};
}

// Checks every element of an index operand (once, even if it is expanded). Returns true if some are negative.
bool check(const IndexOperand& index, const Dims& shape, int number, const Named& named) {
  Dims sizes, strides;
  for (size_t d = 0; d < shape.size(); ++d)
    if (index.positions.strides[d] != 0) {
      sizes.push_back(shape[d]);
      strides.push_back(index.positions.strides[d]);
    }
  Space space{std::span<const int64_t>(sizes)};
  space.add(static_cast<char*>(index.positions.data), 8, strides.data());
  space.drop_ones();
  space.merge();
  const int64_t n = space.numel(), least = index.least(), bound = index.bound;
  const int last = space.rank - 1;
  const int64_t inner = space.rank ? space.sizes[last] : 1, step = space.rank ? space.operands[0].strides[last] : 8;
  Walk walk(space, std::max(last, 0));
  walk.seek(0);
  bool negative = false;
  for (int64_t row = 0; row * inner < n; ++row, walk.next()) {
    const char* at = walk.at(0);
    Seen seen{};
    if (step == 8) {
      seen = look_at(reinterpret_cast<const int64_t*>(at), inner, least, bound);
    } else {
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t v = *reinterpret_cast<const int64_t*>(at + i * step);
        seen.outside |= v < least || v >= bound;
        seen.negative |= v < 0;
      }
    }
    negative |= seen.negative;
    if (!seen.outside) continue;
    for (int64_t i = 0;; ++i) {
      const int64_t v = *reinterpret_cast<const int64_t*>(at + i * step);
      if (v < least || v >= bound) std::rethrow_exception(ir::bad_index(index, shape, number, row * inner + i, v, named.op, named.where));
    }
  }
  return negative;
}
bool check_all(const std::vector<IndexOperand>& indices, const Dims& shape, const Named& named) {
  bool negative = false;
  for (size_t i = 0; i < indices.size(); ++i) negative |= check(indices[i], shape, static_cast<int>(i), named);
  return negative;
}

template <class T>
void copy_indexed(const char* source, int64_t source_step, const int64_t* from, char* target, int64_t target_step, const int64_t* to,
                  int64_t n) {
  for (int64_t e = 0; e < n; ++e)
    *reinterpret_cast<T*>(target + e * target_step + (to ? to[e] : 0)) =
        *reinterpret_cast<const T*>(source + e * source_step + (from ? from[e] : 0));
}

void copy_indexed(int64_t item, const char* source, int64_t source_step, const int64_t* from, char* target, int64_t target_step,
                  const int64_t* to, int64_t n) {
  switch (item) {
    case 1:
      return copy_indexed<uint8_t>(source, source_step, from, target, target_step, to, n);
    case 2:
      return copy_indexed<uint16_t>(source, source_step, from, target, target_step, to, n);
    case 4:
      return copy_indexed<uint32_t>(source, source_step, from, target, target_step, to, n);
    default:
      return copy_indexed<uint64_t>(source, source_step, from, target, target_step, to, n);
  }
}

// Copies in reverse: `source` is the last element.
template <class T>
[[gnu::always_inline]] inline void turn(const char* source, char* target, int64_t n) {
  const T* __restrict in = reinterpret_cast<const T*>(source) - (n - 1);
  T* __restrict out = reinterpret_cast<T*>(target);
  for (int64_t e = 0; e < n; ++e) out[e] = in[n - 1 - e];
}
NARU_WIDE void copy_reversed(uint32_t, const char* source, char* target, int64_t n) { turn<uint32_t>(source, target, n); }
NARU_WIDE void copy_reversed(uint64_t, const char* source, char* target, int64_t n) { turn<uint64_t>(source, target, n); }

void copy_run(int64_t item, const char* source, int64_t source_step, char* target, int64_t target_step, int64_t n) {
  if (source_step == item && target_step == item) {
    std::memcpy(target, source, static_cast<size_t>(n * item));
  } else if (source_step == -item && target_step == item && item == 4) {
    copy_reversed(uint32_t(), source, target, n);
  } else if (source_step == -item && target_step == item && item == 8) {
    copy_reversed(uint64_t(), source, target, n);
  } else if (target_step == item) {
    pack(source, source_step, item, n, target);
  } else {
    copy_indexed(item, source, source_step, nullptr, target, target_step, nullptr, n);
  }
}

template <class T>
struct Plus {
  static T of(T a, T b) { return static_cast<T>(a + b); }
};
// Integers wrap.
template <class T>
requires std::is_signed_v<T> && std::is_integral_v<T>
struct Plus<T> {
  static T of(T a, T b) { return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
};
template <>
struct Plus<bool> {
  static bool of(bool a, bool b) { return a || b; }
};
struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};
template <>
struct Plus<Half> {
  static Half of(Half a, Half b) { return {float_to_half(half_to_float(a.bits) + half_to_float(b.bits))}; }
};
template <>
struct Plus<Bfloat> {
  static Bfloat of(Bfloat a, Bfloat b) { return {float_to_bfloat(bfloat_to_float(a.bits) + bfloat_to_float(b.bits))}; }
};

template <class T>
void add_run(const char* value, int64_t value_step, char* target, int64_t target_step, const int64_t* to, int64_t n) {
  if (!to && value_step == sizeof(T) && target_step == sizeof(T)) {
    const T* in = reinterpret_cast<const T*>(value);
    T* out = reinterpret_cast<T*>(target);
    for (int64_t e = 0; e < n; ++e) out[e] = Plus<T>::of(out[e], in[e]);
    return;
  }
  if (!to && value_step == 0 && target_step == sizeof(T)) {
    const T same = *reinterpret_cast<const T*>(value);
    T* out = reinterpret_cast<T*>(target);
    for (int64_t e = 0; e < n; ++e) out[e] = Plus<T>::of(out[e], same);
    return;
  }
  for (int64_t e = 0; e < n; ++e) {
    T* out = reinterpret_cast<T*>(target + e * target_step + (to ? to[e] : 0));
    *out = Plus<T>::of(*out, *reinterpret_cast<const T*>(value + e * value_step));
  }
}

constexpr PerDType<AddRun> kAddRun{add_run<bool>,    add_run<uint8_t>, add_run<int8_t>, add_run<int16_t>, add_run<int32_t>,
                                   add_run<int64_t>, add_run<Half>,    add_run<Bfloat>, add_run<float>,   add_run<double>};

// One contiguous index: no list of byte offsets is made.
template <class T>
void gather_line(const char* source, int64_t source_step, const int64_t* at, int64_t bound, int64_t scale, char* target, int64_t n) {
  T* out = reinterpret_cast<T*>(target);
  for (int64_t e = 0; e < n; ++e)
    out[e] = *reinterpret_cast<const T*>(source + e * source_step + (at[e] + (at[e] < 0 ? bound : 0)) * scale);
}
// The same for indices without negative values and contiguous elements.
template <class T>
void gather_plain(const char* source, const int64_t* at, char* target, int64_t n) {
  const T* in = reinterpret_cast<const T*>(source);
  T* out = reinterpret_cast<T*>(target);
  for (int64_t e = 0; e < n; ++e) out[e] = in[at[e]];
}
// move: elements from one value to the next, 1 or 0.
template <class T>
void scatter_line(const char* value, int64_t move, const int64_t* at, int64_t bound, int64_t scale, char* target, int64_t target_step,
                  int64_t n) {
  const T* in = reinterpret_cast<const T*>(value);
  for (int64_t e = 0; e < n; ++e)
    *reinterpret_cast<T*>(target + e * target_step + (at[e] + (at[e] < 0 ? bound : 0)) * scale) = in[e * move];
}
// target += value, in order.
using AddLine = void (*)(const char* value, int64_t move, const int64_t* at, int64_t bound, int64_t scale, char* target,
                         int64_t target_step, int64_t n);
template <class T>
void add_line(const char* value, int64_t move, const int64_t* at, int64_t bound, int64_t scale, char* target, int64_t target_step,
              int64_t n) {
  const T* in = reinterpret_cast<const T*>(value);
  for (int64_t e = 0; e < n; ++e) {
    T* out = reinterpret_cast<T*>(target + e * target_step + (at[e] + (at[e] < 0 ? bound : 0)) * scale);
    *out = Plus<T>::of(*out, in[e * move]);
  }
}
constexpr PerDType<AddLine> kAddLine{nullptr,           nullptr, nullptr, nullptr,         add_line<int32_t>,
                                     add_line<int64_t>, nullptr, nullptr, add_line<float>, add_line<double>};

// The same for indices without negative values and a contiguous target.
using PlainLine = void (*)(const char* value, int64_t move, const int64_t* at, char* target, int64_t n);
template <class T>
void scatter_plain(const char* value, int64_t move, const int64_t* at, char* target, int64_t n) {
  const T* in = reinterpret_cast<const T*>(value);
  T* out = reinterpret_cast<T*>(target);
  for (int64_t e = 0; e < n; ++e) out[at[e]] = in[e * move];
}
template <class T>
void add_plain(const char* value, int64_t move, const int64_t* at, char* target, int64_t n) {
  const T* in = reinterpret_cast<const T*>(value);
  T* out = reinterpret_cast<T*>(target);
  for (int64_t e = 0; e < n; ++e) out[at[e]] = Plus<T>::of(out[at[e]], in[e * move]);
}
constexpr PerDType<PlainLine> kAddPlain{nullptr, nullptr, nullptr,          nullptr,          add_plain<int32_t>, add_plain<int64_t>,
                                        nullptr, nullptr, add_plain<float>, add_plain<double>};

// Rows of `bytes` contiguous bytes each, selected by one index.
struct RowList {
  const char* source;
  int64_t source_step, bound, scale;  // added step from row to row; size of the indexed dimension; bytes per index
  const char* positions;
  int64_t position_step;
  char* target;
  int64_t target_step, bytes;
  const char* row(int64_t i) const {
    const int64_t at = *reinterpret_cast<const int64_t*>(positions + i * position_step);
    return source + i * source_step + (at + (at < 0 ? bound : 0)) * scale;
  }
};
// For rows whose size is a multiple of 64 bytes.
NARU_WIDE void copy_lines(const RowList& r, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    const char* const from = r.row(i);
    char* const to = r.target + i * r.target_step;
    for (int64_t b = 0; b < r.bytes; b += 64) std::memcpy(to + b, from + b, 64);
  }
}
void copy_rows(const RowList& r, int64_t begin, int64_t end) {
  constexpr int64_t kInline = 1024;
  if (r.bytes % 64 == 0 && r.bytes <= kInline) return copy_lines(r, begin, end);
  for (int64_t i = begin; i < end; ++i) std::memcpy(r.target + i * r.target_step, r.row(i), static_cast<size_t>(r.bytes));
}
// True if the whole gather is a list of contiguous rows; sets r.
bool is_row_list(const Moves& m, const ir::IndexOperand* index, RowList& r) {
  const auto& o = m.space.operands;
  if (m.space.rank != 2 || m.indices.size() != 1 || o[0].strides[1] != m.item || o[1].strides[1] != m.item) return false;
  r = {o[1].data,       o[1].strides[0], index->bound,    index->step * m.item,     o[2].data,
       o[2].strides[0], o[0].data,       o[0].strides[0], m.space.sizes[1] * m.item};
  return true;
}

bool nothing(const Dims& shape) { return product(shape) == 0; }

}  // namespace

void run(const ir::Gather& g) {
  if (nothing(g.shape)) return;
  const bool negative = check_all(g.indices, g.shape, {g.op, g.where});
  const Moves m(g.shape, g.out, g.source, g.indices);
  const int64_t inner = m.space.sizes[m.last()], rows = m.space.numel() / inner;
  const int64_t out_step = m.space.operands[0].strides[m.last()], source_step = m.space.operands[1].strides[m.last()];
  const double time =
      static_cast<double>(rows) * (m.inner_run ? 8 + 0.05 * static_cast<double>(inner * m.item) : 2.0 * static_cast<double>(inner));
  if (m.inner_run) {
    if (RowList list{}; is_row_list(m, g.indices.data(), list))
      return split(rows, time, 1, [&](int64_t begin, int64_t end) { copy_rows(list, begin, end); });
    return split(rows, time, 1, [&](int64_t begin, int64_t end) {
      Walk walk(m.space, m.last());
      walk.seek(begin);
      for (int64_t row = begin; row < end; ++row, walk.next())
        copy_run(m.item, walk.at(1) + m.shift(walk), source_step, walk.at(0), out_step, inner);
    });
  }
  const int64_t blocks = (inner + kIndexBlock - 1) / kIndexBlock;
  const bool one_line = is_one_line(m);
  split(rows * blocks, time, 1, [&](int64_t begin, int64_t end) {
    Walk walk(m.space, m.last());
    int64_t shifts[kIndexBlock], at = -1;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t row = unit / blocks, first = unit % blocks * kIndexBlock, n = std::min(kIndexBlock, inner - first);
      if (row != at) {
        if (at >= 0 && row == at + 1)
          walk.next();
        else
          walk.seek(row);
        at = row;
      }
      if (one_line) {
        const auto* positions = reinterpret_cast<const int64_t*>(walk.at(2)) + first;
        const int64_t bound = g.indices[0].bound, scale = g.indices[0].step * m.item;
        if (!negative && source_step == 0 && scale == m.item) {
          const auto plain = m.item == 4 ? gather_plain<uint32_t> : gather_plain<uint64_t>;
          plain(walk.at(1), positions, walk.at(0) + first * out_step, n);
          continue;
        }
        const auto line = m.item == 4 ? gather_line<uint32_t> : gather_line<uint64_t>;
        line(walk.at(1) + first * source_step, source_step, positions, bound, scale, walk.at(0) + first * out_step, n);
        continue;
      }
      const char* const source = walk.at(1) + first * source_step;
      char* const out = walk.at(0) + first * out_step;
      if (m.indices.empty()) {
        copy_run(m.item, source, source_step, out, out_step, n);
        continue;
      }
      m.shifts(walk, first, n, shifts);
      copy_indexed(m.item, source, source_step, shifts, out, out_step, nullptr, n);
    }
  });
}

void run(const ir::Scatter& s) {
  if (nothing(s.shape)) return;
  const bool negative = check_all(s.indices, s.shape, {s.op, s.where});
  const AddRun add = s.add ? kAddRun[s.value.dtype] : nullptr;
  if (ir::sums_in_blocks(s)) return add_in_blocks(s, add);
  const Moves m(s.shape, s.value, s.target, s.indices);
  const int64_t inner = m.space.sizes[m.last()], rows = m.space.numel() / inner;
  const int64_t value_step = m.space.operands[0].strides[m.last()], target_step = m.space.operands[1].strides[m.last()];
  // If the target has stride 0 too, all elements of a row are added to one element.
  if (m.inner_run && target_step != 0) {
    // Two rows may be added to the same target, in order: threads split the columns, not the rows.
    const double time = static_cast<double>(rows) * (8 + 0.1 * static_cast<double>(inner * m.item));
    return split(inner, time, 64, [&](int64_t begin, int64_t end) {
      Walk walk(m.space, m.last());
      walk.seek(0);
      for (int64_t row = 0; row < rows; ++row, walk.next()) {
        const char* value = walk.at(0) + begin * value_step;
        char* target = walk.at(1) + m.shift(walk) + begin * target_step;
        if (add)
          add(value, value_step, target, target_step, nullptr, end - begin);
        else
          copy_run(m.item, value, value_step, target, target_step, end - begin);
      }
    });
  }
  Walk walk(m.space, m.last());
  walk.seek(0);
  int64_t shifts[kIndexBlock];
  const AddLine line = !is_one_line(m, true) ? nullptr
                       : add                 ? kAddLine[s.value.dtype]
                       : m.item == 4         ? scatter_line<uint32_t>
                                             : scatter_line<uint64_t>;
  if (line) {
    const int64_t bound = s.indices[0].bound, scale = s.indices[0].step * m.item, move = value_step / m.item;
    if (!negative && target_step == 0 && scale == m.item) {
      const PlainLine plain = add ? kAddPlain[s.value.dtype] : m.item == 4 ? scatter_plain<uint32_t> : scatter_plain<uint64_t>;
      for (int64_t row = 0; row < rows; ++row, walk.next())
        plain(walk.at(0), move, reinterpret_cast<const int64_t*>(walk.at(2)), walk.at(1), inner);
      return;
    }
    for (int64_t row = 0; row < rows; ++row, walk.next())
      line(walk.at(0), move, reinterpret_cast<const int64_t*>(walk.at(2)), bound, scale, walk.at(1), target_step, inner);
    return;
  }
  for (int64_t row = 0; row < rows; ++row, walk.next())
    for (int64_t first = 0; first < inner; first += kIndexBlock) {
      const int64_t n = std::min(kIndexBlock, inner - first);
      m.shifts(walk, first, n, shifts);
      const char* value = walk.at(0) + first * value_step;
      char* target = walk.at(1) + first * target_step;
      if (add)
        add(value, value_step, target, target_step, shifts, n);
      else
        copy_indexed(m.item, value, value_step, nullptr, target, target_step, shifts, n);
    }
}

}  // namespace naru::cpu
