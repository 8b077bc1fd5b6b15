// Stable sorts, NaN greatest. Elements become unsigned keys in the same order; a key and its position make one number,
// so that no two are equal and every way of sorting is stable.
#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

#include "host/instructions.h"
#include "host/layout.h"
#include "host/simd.h"
#include "naru/error.h"

namespace naru::host {
namespace {

// Keys that stand in the order of the values: -0 and 0 are equal, all NaN equal and greatest.
template <class Bits>
inline Bits float_key(Bits bits, Bits infinity) {
  // Without branches, so that it runs in vectors.
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

// Narrow keys: (key, position) in one 64-bit number.
struct Narrow {
  uint64_t value;
  static Narrow make(uint32_t key, int64_t i) { return {static_cast<uint64_t>(key) << 32 | static_cast<uint64_t>(i)}; }
  int64_t index() const { return static_cast<int64_t>(value & 0xffffffffu); }
  uint32_t digit(int d) const { return value >> (32 + 8 * d) & 255; }
  bool operator<(Narrow o) const { return value < o.value; }
};
struct Wide {
  uint64_t key;
  int64_t position;
  static Wide make(uint64_t key, int64_t i) { return {key, i}; }
  int64_t index() const { return position; }
  uint32_t digit(int d) const { return key >> (8 * d) & 255; }
  bool operator<(const Wide& o) const { return key != o.key ? key < o.key : position < o.position; }
};

template <DType kType, class Item, class Key>
NARU_WIDE void make_items(const char* in, int64_t step, int64_t n, Key flip, Item* items) {
  constexpr auto kItem = static_cast<int64_t>(size_of(kType));
  if (step == kItem) {
    for (int64_t i = 0; i < n; ++i) items[i] = Item::make(static_cast<Key>(key_of<kType>(in + i * kItem) ^ flip), i);
  } else {
    for (int64_t i = 0; i < n; ++i) items[i] = Item::make(static_cast<Key>(key_of<kType>(in + i * step) ^ flip), i);
  }
}

// Sorts by keys of kDigits bytes, which stand in order of position already: least digit first, passes in which all
// agree left out. Returns which of the two arrays holds the result.
template <int kDigits, class Item>
Item* radix_sort(Item* a, Item* b, int64_t n) {
  uint32_t counts[kDigits][256] = {};
  for (int64_t i = 0; i < n; ++i)
    for (int d = 0; d < kDigits; ++d) ++counts[d][a[i].digit(d)];
  for (int d = 0; d < kDigits; ++d) {
    if (counts[d][a[0].digit(d)] == static_cast<uint32_t>(n)) continue;
    uint32_t at = 0;
    for (uint32_t& c : counts[d]) at += std::exchange(c, at);
    for (int64_t i = 0; i < n; ++i) b[counts[d][a[i].digit(d)]++] = a[i];
    std::swap(a, b);
  }
  return a;
}

constexpr int64_t kRadixFrom = 200, kHeap = 64;

// The first k of n items in order, somewhere in a or b.
template <int kDigits, class Item>
Item* first_in_order(Item* a, Item* b, int64_t n, int64_t k) {
  if (k < n && k <= kHeap) {
    // The k least seen so far, the greatest of them on top: most items are only compared with that.
    std::copy(a, a + k, b);
    std::make_heap(b, b + k);
    for (int64_t i = k; i < n; ++i) {
      if (!(a[i] < b[0])) continue;
      std::pop_heap(b, b + k);
      b[k - 1] = a[i];
      std::push_heap(b, b + k);
    }
    std::sort_heap(b, b + k);
    return b;
  }
  if (k < n && k <= n / 8) {
    std::nth_element(a, a + k, a + n);
    std::sort(a, a + k);
    return a;
  }
  if (n >= kRadixFrom) return radix_sort<kDigits>(a, b, n);
  std::sort(a, a + n);
  return a;
}

struct Rows {
  const ir::Sort& op;
  Space kept;  // in, values, indices
  int64_t n;
  int64_t in_step, values_step, indices_step;  // bytes along a row
};

template <DType kType, int kDigits, class Item>
void run_typed(const Rows& r) {
  using Key = decltype(key_of<kType>(nullptr));
  const Key flip = r.op.descending ? static_cast<Key>(~Key{0}) : Key{0};
  const int64_t rows = r.kept.numel(), n = r.n, k = r.op.k, item = static_cast<int64_t>(size_of(kType));
  split(rows, static_cast<double>(rows * n) * 8, 1, [&](int64_t begin, int64_t end) {
    // Scratch memory of rows that are long would stay with the thread: those get their own.
    const size_t bytes = static_cast<size_t>(n) * sizeof(Item) * 2;
    std::unique_ptr<char[]> own;
    char* memory;
    if (bytes > (size_t{8} << 20)) {
      own.reset(new char[bytes]);
      memory = own.get();
    } else {
      memory = scratch(bytes);
    }
    Item* const a = reinterpret_cast<Item*>(memory);
    Item* const b = a + n;
    Walk walk(r.kept, r.kept.rank);
    walk.seek(begin);
    for (int64_t row = begin; row < end; ++row, walk.next()) {
      const char* in = walk.at(0);
      make_items<kType>(in, r.in_step, n, flip, a);
      const Item* sorted = first_in_order<kDigits>(a, b, n, k);
      // values may be the input itself: its elements are read back from the row as it was.
      if (r.op.values.data) {
        char* out = walk.at(1);
        if (out == in) {
          char* const copy = reinterpret_cast<char*>(sorted == a ? b : a);
          pack(in, r.in_step, item, n, copy);
          for (int64_t i = 0; i < k; ++i)
            std::memcpy(out + i * r.values_step, copy + sorted[i].index() * item, static_cast<size_t>(item));
        } else {
          for (int64_t i = 0; i < k; ++i)
            std::memcpy(out + i * r.values_step, in + sorted[i].index() * r.in_step, static_cast<size_t>(item));
        }
      }
      if (r.op.indices.data)
        for (int64_t i = 0; i < k; ++i)
          *reinterpret_cast<int64_t*>(walk.at(2) + i * r.indices_step) = sorted[i].index();
    }
  });
}

using RunTyped = void (*)(const Rows&);
constexpr RunTyped kRun[kDTypes] = {run_typed<DType::Bool, 1, Narrow>, run_typed<DType::U8, 1, Narrow>,
                                    run_typed<DType::I8, 1, Narrow>,   run_typed<DType::I16, 2, Narrow>,
                                    run_typed<DType::I32, 4, Narrow>,  run_typed<DType::I64, 8, Wide>,
                                    run_typed<DType::F16, 2, Narrow>,  run_typed<DType::BF16, 2, Narrow>,
                                    run_typed<DType::F32, 4, Narrow>,  run_typed<DType::F64, 8, Wide>};

}  // namespace

void run(const ir::Sort& op) {
  const int kept = static_cast<int>(op.shape.size()) - 1;
  const std::span<const int64_t> shape = op.shape;
  const int64_t item = static_cast<int64_t>(size_of(op.in.dtype));
  Rows rows{op, Space(shape.first(kept)), op.shape.back(), op.in.strides[kept] * item, 0, 0};
  if (op.k < 0 || op.k > rows.n) throw RuntimeError("sort: wanted 0 <= k <= {}, got {}", rows.n, op.k);
  if (rows.n > 0xffffffff) throw RuntimeError("sort: wanted rows of at most 2^32 - 1 elements, got {}", rows.n);
  if (rows.kept.numel() == 0 || op.k == 0) return;
  const Dims none(static_cast<size_t>(kept) + 1, 0);
  const Dims& values = op.values.data ? op.values.strides : none;
  const Dims& indices = op.indices.data ? op.indices.strides : none;
  rows.values_step = values[kept] * item;
  rows.indices_step = indices[kept] * 8;
  rows.kept.add(op.in);
  rows.kept.add(static_cast<char*>(op.values.data), item, values.data());
  rows.kept.add(static_cast<char*>(op.indices.data), 8, indices.data());
  rows.kept.drop_ones();
  rows.kept.merge();
  kRun[static_cast<int>(op.in.dtype)](rows);
}

}  // namespace naru::host
