// Stable sorts with NaN greatest. Elements become unsigned keys of the same order. A key and its index form one number, so that no two are
// equal and any sorting algorithm is stable.
#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "backends/cpu/exec/instructions.h"
#include "backends/cpu/exec/layout.h"
#include "backends/cpu/exec/simd.h"
#include "backends/cpu/exec/transpose.h"
#include "backends/cpu/sort/vqsort.h"
#include "naru/error.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace naru::cpu {
namespace {

// Keys in the order of the values: -0 and 0 are equal, all NaN are equal and greatest.
template <class Bits>
inline Bits float_key(Bits bits, Bits infinity) {
  // Without branches, so that it vectorises.
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  const Bits magnitude = bits & static_cast<Bits>(~kSign);
  const Bits negative = static_cast<Bits>(~magnitude & ~kSign), positive = static_cast<Bits>(magnitude | kSign);
  const Bits number = (bits & kSign) != 0 && magnitude != 0 ? negative : positive;
  return magnitude > infinity ? static_cast<Bits>(~Bits{0}) : number;
}

template <DType kType>
inline auto key_of(const char* at) {
  if constexpr (kType == DType::Bool || kType == DType::U8) {
    return static_cast<uint32_t>(*reinterpret_cast<const uint8_t*>(at));
  } else if constexpr (kType == DType::I8) {
    return static_cast<uint32_t>(*reinterpret_cast<const int8_t*>(at) + 128);
  } else if constexpr (kType == DType::I16) {
    return static_cast<uint32_t>(*reinterpret_cast<const int16_t*>(at) + 32768);
  } else if constexpr (kType == DType::I32) {
    return *reinterpret_cast<const uint32_t*>(at) ^ 0x80000000u;
  } else if constexpr (kType == DType::I64) {
    return *reinterpret_cast<const uint64_t*>(at) ^ (uint64_t{1} << 63);
  } else if constexpr (kType == DType::F16) {
    return static_cast<uint32_t>(float_key<uint16_t>(*reinterpret_cast<const uint16_t*>(at), 0x7c00));
  } else if constexpr (kType == DType::BF16) {
    return static_cast<uint32_t>(float_key<uint16_t>(*reinterpret_cast<const uint16_t*>(at), 0x7f80));
  } else if constexpr (kType == DType::F32) {
    return float_key<uint32_t>(*reinterpret_cast<const uint32_t*>(at), 0x7f800000u);
  } else {
    return float_key<uint64_t>(*reinterpret_cast<const uint64_t*>(at), 0x7ff0000000000000u);
  }
}

// The element with a given key; not for -0 and NaN, as several elements share their keys.
template <DType kType, class Key>
inline auto element_of(Key key) {
  if constexpr (kType == DType::Bool || kType == DType::U8) {
    return static_cast<uint8_t>(key);
  } else if constexpr (kType == DType::I8) {
    return static_cast<int8_t>(static_cast<int32_t>(key) - 128);
  } else if constexpr (kType == DType::I16) {
    return static_cast<int16_t>(static_cast<int32_t>(key) - 32768);
  } else if constexpr (kType == DType::I32 || kType == DType::I64) {
    return static_cast<Key>(key ^ Key{1} << (8 * sizeof(Key) - 1));
  } else {
    using Bits = std::conditional_t<size_of(kType) == 2, uint16_t, Key>;
    constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
    const Bits bits = static_cast<Bits>(key);
    return static_cast<Bits>(bits & kSign ? bits ^ kSign : ~bits);
  }
}

// A narrow key and its index in one 64-bit number.
struct Narrow {
  using Key = uint32_t;
  uint64_t number;
  static Narrow make(uint32_t key, int64_t i) { return {static_cast<uint64_t>(key) << 32 | static_cast<uint64_t>(i)}; }
  uint32_t key() const { return static_cast<uint32_t>(number >> 32); }
  int64_t index() const { return static_cast<int64_t>(number & 0xffffffffu); }
  friend bool operator<(Narrow a, Narrow b) { return a.number < b.number; }
  static void sort(Narrow* items, int64_t n) { vector_sort(&items->number, static_cast<size_t>(n)); }
};
struct WideItem {
  using Key = uint64_t;
  Wide number;
  static WideItem make(uint64_t key, int64_t i) { return {{static_cast<uint64_t>(i), key}}; }
  uint64_t key() const { return number.high; }
  int64_t index() const { return static_cast<int64_t>(number.low); }
  friend bool operator<(const WideItem& a, const WideItem& b) {
    return a.key() != b.key() ? a.key() < b.key() : a.number.low < b.number.low;
  }
  static void sort(WideItem* items, int64_t n) { vector_sort(&items->number, static_cast<size_t>(n)); }
};

// How a row's keys differ from those of key_of(): (key ^ flip) - least.
template <class Key>
struct Change {
  Key flip, least;
};

template <DType kType, class Item, class Key>
NARU_WIDE void make_items(const char* in, int64_t step, int64_t n, Change<Key> c, Item* items) {
  constexpr auto kItem = static_cast<int64_t>(size_of(kType));
  const Key flip = c.flip, least = c.least;
  using Small = typename Item::Key;
  if (step == kItem) {
    for (int64_t i = 0; i < n; ++i) items[i] = Item::make(static_cast<Small>((key_of<kType>(in + i * kItem) ^ flip) - least), i);
  } else {
    for (int64_t i = 0; i < n; ++i) items[i] = Item::make(static_cast<Small>((key_of<kType>(in + i * step) ^ flip) - least), i);
  }
}

// The least key of a row, and how far from it the greatest is.
template <class Key>
struct Range {
  Key least, width;
};
template <DType kType, class Key>
NARU_WIDE Range<Key> range_of(const char* in, int64_t step, int64_t n, Key flip) {
  constexpr auto kItem = static_cast<int64_t>(size_of(kType));
  Key least = static_cast<Key>(~Key{0}), greatest = 0;
  const auto take = [&](const char* at) __attribute__((always_inline)) {
    const Key key = static_cast<Key>(key_of<kType>(at) ^ flip);
    least = std::min(least, key), greatest = std::max(greatest, key);
  };
  if (step == kItem)
    for (int64_t i = 0; i < n; ++i) take(in + i * kItem);
  else
    for (int64_t i = 0; i < n; ++i) take(in + i * step);
  return {least, static_cast<Key>(greatest - least)};
}

// True if every element can be recovered from its key.
template <DType kType>
NARU_WIDE bool keys_tell(const char* in, int64_t n) {
  if constexpr (is_floating(kType)) {
    using Bits = std::conditional_t<size_of(kType) == 2, uint16_t, std::conditional_t<size_of(kType) == 4, uint32_t, uint64_t>>;
    constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
    constexpr Bits kInfinity = kType == DType::F16    ? Bits(0x7c00)
                               : kType == DType::BF16 ? Bits(0x7f80)
                               : kType == DType::F32  ? Bits(0x7f800000u)
                                                      : Bits(0x7ff0000000000000u);
    Bits any = 0;
    const Bits* bits = reinterpret_cast<const Bits*>(in);
    for (int64_t i = 0; i < n; ++i) any |= static_cast<Bits>(bits[i] == kSign || (bits[i] & static_cast<Bits>(~kSign)) > kInfinity);
    return any == 0;
  }
  return true;
}

template <DType kType, class Item, class Key>
NARU_WIDE void put_values(const Item* sorted, int64_t k, Change<Key> c, char* out) {
  const Key flip = c.flip, least = c.least;
  using Element = decltype(element_of<kType>(flip));
  for (int64_t i = 0; i < k; ++i)
    reinterpret_cast<Element*>(out)[i] = element_of<kType>(static_cast<Key>((static_cast<Key>(sorted[i].key()) + least) ^ flip));
}

template <class Item>
NARU_WIDE void put_indices(const Item* sorted, int64_t k, char* out, int64_t step) {
  if (step == 8)
    for (int64_t i = 0; i < k; ++i) reinterpret_cast<int64_t*>(out)[i] = sorted[i].index();
  else
    for (int64_t i = 0; i < k; ++i) *reinterpret_cast<int64_t*>(out + i * step) = sorted[i].index();
}

// Uses non-temporal stores; the caller must call stream_fence() at the end.
template <class Item>
void stream_indices(const Item* sorted, int64_t k, char* out) {
#if defined(__x86_64__)
  for (int64_t i = 0; i < k; ++i) _mm_stream_si64(reinterpret_cast<long long*>(out) + i, sorted[i].index());
#else
  put_indices(sorted, k, out, 8);
#endif
}

// The k least items in order, in `best`, which has space for n. Collects candidates after the k least so far and sorts all of them from
// time to time: without branches that depend on the items.
template <class Item>
NARU_WIDE void least(const Item* items, int64_t n, int64_t k, Item* best) {
  const int64_t room = std::min(n, 2 * k + 128);
  std::copy(items, items + room, best);
  Item::sort(best, room);
  int64_t kept = k;
  for (int64_t i = room; i < n;) {
    const Item limit = best[k - 1];
    for (const int64_t end = std::min(n, i + room - kept); i < end; ++i) {
      best[kept] = items[i];
      kept += items[i] < limit;
    }
    if (2 * kept < k + room && i < n) continue;
    Item::sort(best, kept);
    kept = k;
  }
}

// The k least of few numbers that are all different, in order: each is the least above the one before.
NARU_WIDE void few_least(const uint64_t* numbers, int64_t n, int64_t k, uint64_t* best) {
  uint64_t above = 0;
  for (int64_t j = 0; j < k; ++j) {
    uint64_t least = ~uint64_t{0};
    for (int64_t i = 0; i < n; ++i) least = std::min(least, numbers[i] - above);  // what is below wraps around
    best[j] = least + above;
    above = best[j] + 1;
  }
}

constexpr int64_t kFew = 48;

// The first k of n items in order. The result is in `items` or in `other`.
template <class Item>
Item* first_in_order(Item* items, Item* other, int64_t n, int64_t k) {
  if constexpr (std::is_same_v<Item, Narrow>)
    if (k <= 8 && k <= n / 4 && n <= 128) {
      few_least(&items->number, n, k, &other->number);
      return other;
    }
  if (k <= n / 8) {
    least(items, n, k, other);
    return other;
  }
  if (n < kFew)
    std::sort(items, items + n);
  else
    Item::sort(items, n);
  return items;
}

struct Rows {
  const ir::Sort& op;
  Space kept;  // operands: in, values, indices
  int64_t n;
  int64_t in_step, values_step, indices_step;  // bytes between elements of a row
  bool stream;                                 // for the indices
};

// Stores the sorted elements of a row. If the output overwrites the row itself, the row is copied to `spare` first.
template <DType kType, class Item, class Key>
void put_row(const Rows& r, const char* in, const Item* sorted, Change<Key> change, char* out, char* spare) {
  constexpr auto kItem = static_cast<int64_t>(size_of(kType));
  const int64_t k = r.op.k;
  if (r.in_step == kItem && r.values_step == kItem && keys_tell<kType>(in, r.n)) return put_values<kType>(sorted, k, change, out);
  const char* from = in;
  int64_t step = r.in_step;
  if (out == in) {
    pack(in, step, kItem, r.n, spare);
    from = spare, step = kItem;
  }
  for (int64_t i = 0; i < k; ++i) std::memcpy(out + i * r.values_step, from + sorted[i].index() * step, kItem);
}

// Sorts the row that `walk` stands at. a, b: memory for n items each.
template <DType kType, class Item, class Key>
void sort_row(const Rows& r, const Walk& walk, Change<Key> change, Item* a, Item* b) {
  make_items<kType>(walk.at(0), r.in_step, r.n, change, a);
  const Item* sorted = first_in_order(a, b, r.n, r.op.k);
  if (r.op.values.data) put_row<kType>(r, walk.at(0), sorted, change, walk.at(1), reinterpret_cast<char*>(sorted == a ? b : a));
  if (!r.op.indices.data) return;
  if (r.stream)
    stream_indices(sorted, r.op.k, walk.at(2));
  else
    put_indices(sorted, r.op.k, walk.at(2), r.indices_step);
}

template <DType kType, class Item>
void run_typed(const Rows& r) {
  using Key = decltype(key_of<kType>(nullptr));
  const Key flip = r.op.descending ? static_cast<Key>(~Key{0}) : Key{0};
  const int64_t rows = r.kept.numel(), n = r.n;
  split(rows, static_cast<double>(rows * n) * 3, 1, [&](int64_t begin, int64_t end) {
    // Scratch memory stays allocated with the thread, so long rows use a separate buffer.
    const size_t bytes = static_cast<size_t>(n) * sizeof(Item) * 2;
    std::unique_ptr<Item[]> own;
    Item* a;
    if (bytes > (size_t{8} << 20)) {
      own.reset(new Item[static_cast<size_t>(n) * 2]);
      a = own.get();
    } else {
      a = reinterpret_cast<Item*>(scratch(bytes));
    }
    Item* const b = a + n;
    Walk walk(r.kept, r.kept.rank);
    walk.seek(begin);
    for (int64_t row = begin; row < end; ++row, walk.next()) {
      if constexpr (kType == DType::I64) {
        // Integers mostly lie so close together that 32 bits tell them apart.
        const Range<Key> range = range_of<kType>(walk.at(0), r.in_step, n, flip);
        if (range.width <= 0xffffffffu) {
          auto* const narrow = reinterpret_cast<Narrow*>(a);
          sort_row<kType>(r, walk, Change<Key>{flip, range.least}, narrow, narrow + n);
          continue;
        }
      }
      sort_row<kType>(r, walk, Change<Key>{flip, 0}, a, b);
    }
    if (r.stream) stream_fence();
  });
}

using RunTyped = void (*)(const Rows&);
constexpr PerDType<RunTyped> kRun{run_typed<DType::Bool, Narrow>, run_typed<DType::U8, Narrow>,   run_typed<DType::I8, Narrow>,
                                  run_typed<DType::I16, Narrow>,  run_typed<DType::I32, Narrow>,  run_typed<DType::I64, WideItem>,
                                  run_typed<DType::F16, Narrow>,  run_typed<DType::BF16, Narrow>, run_typed<DType::F32, Narrow>,
                                  run_typed<DType::F64, WideItem>};

}  // namespace

void run(const ir::Sort& op) {
  const int kept = static_cast<int>(op.shape.size()) - 1;
  const std::span<const int64_t> shape = op.shape;
  const int64_t item = static_cast<int64_t>(size_of(op.in.dtype));
  Rows rows{op, Space(shape.first(kept)), op.shape.back(), ir::in_bytes(op.in.strides[kept], item), 0, 0, false};
  if (op.k < 0 || op.k > rows.n) throw RuntimeError("sort: wanted 0 <= k <= {}, got {}", rows.n, op.k);
  if (rows.n > 0xffffffff) throw RuntimeError("sort: wanted rows of at most 2^32 - 1 elements, got {}", rows.n);
  if (rows.kept.numel() == 0 || op.k == 0) return;
  const Dims none(static_cast<size_t>(kept) + 1, 0);
  const Dims& values = op.values.data ? op.values.strides : none;
  const Dims& indices = op.indices.data ? op.indices.strides : none;
  rows.values_step = values[kept] * item;
  rows.indices_step = indices[kept] * 8;
  rows.stream = op.indices.data && rows.indices_step == 8 && static_cast<size_t>(rows.kept.numel() * op.k) * 8 > cache_bytes() / 2;
  rows.kept.add(op.in);
  rows.kept.add(static_cast<char*>(op.values.data), item, values.data());
  rows.kept.add(static_cast<char*>(op.indices.data), 8, indices.data());
  rows.kept.drop_ones();
  rows.kept.merge();
  kRun[op.in.dtype](rows);
}

}  // namespace naru::cpu
