// Elementwise instructions. Kernels need consecutive elements; other operands are packed block by block.
#include <algorithm>

#include "backends/cpu/exec/instructions.h"
#include "backends/cpu/exec/kernels.h"
#include "backends/cpu/exec/layout.h"
#include "backends/cpu/exec/transpose.h"

namespace naru::cpu {
namespace {

using ir::Map;

// Elements of a block that is packed into scratch memory: a few operands of that size fit into the L1 cache.
constexpr int64_t kBlock = 1024;
// Rows shorter than this are packed several at a time.
constexpr int64_t kShortRow = 48;
// Size of a tile of a transposed operand. kTileRows elements of 4 bytes are one cache line.
constexpr int64_t kTileRows = 16, kTileCols = 256;
// Size of a block when a Map is only a transposed copy.
constexpr int64_t kTransposeRows = 2048, kTurnCols = 64;

char* moved(void* p, intptr_t bytes) { return reinterpret_cast<char*>(reinterpret_cast<intptr_t>(p) + bytes); }

enum class Way : uint8_t { Direct, Scalar, Packed, Transposed };

// One execution plan of a Map. Positions refer to the (reordered) space. Index needs the original order, so a program that uses it is never
// reordered.
struct Run {
  const Map& map;
  Space space;
  const Kernel* kernel = nullptr;
  int inputs, outputs;
  Way ways[kMaxOperands];
  char* slots[kMaxOperands] = {};  // offsets into scratch, per packed operand
  size_t scratch_bytes = 0;
  int64_t inner = 1, rows = 1;
  // The function that runs a part of the work: `units` (elements or tiles), split in multiples of the grain.
  void (Run::*piece)(int64_t begin, int64_t end) const = nullptr;
  int64_t units = 0, grain = 1;
  double time = 0;
  bool flat = false, streaming = false;
  int kept = -1;  // operand whose values an earlier part of a fused row kept

  explicit Run(const Map& m)
      : map(m), space(m.shape), inputs(static_cast<int>(m.inputs.size())), outputs(static_cast<int>(m.outputs.size())) {
    for (const auto& v : m.inputs) space.add(v);
    for (const auto& v : m.outputs) space.add(v);
  }

  // Makes the plan; execute() may then run any number of times.
  void prepare();
  void execute() const;
  // True if a single kernel call on the calling thread does all the work. operands() gives its arguments.
  bool is_one_call() const;
  void operands(void** addresses) const {
    for (int k = 0; k < space.count; ++k) addresses[k] = space.operands[k].data;
  }
  // For rows of an ir::RowFused: no reordering, no tiles. kept_at: see RowPart.
  void prepare_rows(const void* kept_at, int64_t each);
  void run_positions(int64_t begin, int64_t end, const char* kept_values) const;
  double nanoseconds() const;

 private:
  bool uses_index() const { return kernel_of(map.program, scalars_of(map.program)).uses_index; }
  void lay_out(bool reorder = true);
  void choose_access(bool tiles = true);
  void reserve(int64_t elements);
  bool may_stream() const;
  void run_rows(int64_t begin, int64_t end) const { run_rows(begin, end, 0); }
  void run_rows(int64_t begin, int64_t end, intptr_t shift) const;
  void run_row(const Walk& walk, int64_t row, int64_t begin, int64_t end, char* memory, intptr_t shift) const;
  void run_flat(int64_t begin, int64_t end) const { run_flat(begin, end, 0); }
  void run_flat(int64_t begin, int64_t end, intptr_t shift) const;
  void run_tiles(int64_t begin, int64_t end) const;
  void run_transposed(int64_t begin, int64_t end) const;
  bool any(Way way) const { return std::find(ways, ways + space.count, way) != ways + space.count; }
};

void Run::lay_out(bool reorder) {
  space.drop_ones();
  space.merge();
  if (reorder && space.rank > 1) {
    const Space before = space;
    if (space.order_by(inputs)) {
      if (uses_index())
        space = before;
      else
        space.merge();
    }
  }
  if (space.rank == 0) {
    space.rank = 1;
    space.sizes[0] = 1;
    // A single element: strides do not matter, so treat all operands as consecutive except those that the program itself marks scalar.
    for (int k = 0; k < space.count; ++k) {
      const bool scalar = k < inputs && map.program.inputs[k].scalar;
      space.operands[k].strides[0] = scalar ? 0 : space.operands[k].item;
    }
  }
  inner = space.sizes[space.rank - 1];
  rows = space.numel() / inner;
  flat = space.rank > 1 && inner < kShortRow;
}

void Run::choose_access(bool tiles) {
  const int last = space.rank - 1;
  uint32_t scalars = 0;
  for (int k = 0; k < space.count; ++k) {
    const Operand& o = space.operands[k];
    const bool one = flat ? space.repeats_one(k) : o.strides[last] == 0;
    const bool direct = flat ? space.flat(k) : o.strides[last] == o.item;
    ways[k] = k < inputs && one ? Way::Scalar : direct ? Way::Direct : Way::Packed;
    if (ways[k] == Way::Scalar) scalars |= 1u << k;
  }
  kernel = &kernel_of(map.program, scalars);
  // A packed input that is contiguous along another dimension is read in tiles along both dimensions.
  if (!tiles || flat || space.rank < 2 || kernel->uses_index) return;
  for (int k = 0; k < inputs; ++k) {
    if (ways[k] != Way::Packed) continue;
    for (int d = 0; d < last; ++d) {
      if (space.operands[k].strides[d] != space.operands[k].item || space.sizes[d] < 4) continue;
      if (any(Way::Transposed) && d != last - 1) continue;
      space.swap_dimensions(d, last - 1);
      ways[k] = Way::Transposed;
      break;
    }
  }
}

void Run::reserve(int64_t elements) {
  for (int k = 0; k < space.count; ++k)
    if (ways[k] == Way::Packed || ways[k] == Way::Transposed) {
      slots[k] = reinterpret_cast<char*>(scratch_bytes);
      scratch_bytes += static_cast<size_t>(elements * space.operands[k].item + 63) / 64 * 64;
    }
}

// Use non-temporal stores if the caches could not hold the results together with the inputs.
bool Run::may_stream() const {
  const int64_t n = rows * inner;
  size_t bytes = 0;
  for (int k = 0; k < space.count; ++k) {
    const Operand& o = space.operands[k];
    if (ways[k] != Way::Scalar) bytes += static_cast<size_t>(n * o.item);
    if (k < inputs) continue;
    if (ways[k] != Way::Direct || reinterpret_cast<uintptr_t>(o.data) % 64 != 0) return false;
    for (int d = 0; d + 1 < space.rank; ++d)
      if (o.strides[d] % 64 != 0) return false;
    // The result overwrites an input: its cache line is loaded anyway.
    for (int i = 0; i < inputs; ++i)
      if (i != kept && space.operands[i].data == o.data) return false;
  }
  return bytes >= cache_bytes();
}

double Run::nanoseconds() const {
  double each = 0.03 * kernel->cost;
  for (int k = 0; k < space.count; ++k)
    each += ways[k] == Way::Packed || ways[k] == Way::Transposed ? 1.0
            : ways[k] == Way::Direct                             ? 0.02 * static_cast<double>(space.operands[k].item)
                                                                 : 0;
  return each * static_cast<double>(rows * inner);
}

// Elements [begin, end) of the row at `walk`.
// shift: distance in bytes from the placeholder address of kept values to their memory.
void Run::run_row(const Walk& walk, int64_t row, int64_t begin, int64_t end, char* memory, intptr_t shift) const {
  const int last = space.rank - 1;
  const uint64_t* params = map.params.data();
  void* pointers[kMaxOperands];
  if (!any(Way::Packed)) {
    for (int k = 0; k < space.count; ++k) pointers[k] = walk.at(k) + begin * space.operands[k].strides[last];
    if (kept >= 0) pointers[kept] = moved(pointers[kept], shift);
    kernel->run(pointers, params, end - begin, row * inner + begin, streaming);
    return;
  }
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t n = std::min(kBlock, end - at);
    for (int k = 0; k < space.count; ++k) {
      const Operand& o = space.operands[k];
      char* from = walk.at(k) + at * o.strides[last];
      if (k == kept) from = moved(from, shift);
      pointers[k] = from;
      if (ways[k] != Way::Packed) continue;
      pointers[k] = memory + reinterpret_cast<uintptr_t>(slots[k]);
      if (k < inputs) pack(from, o.strides[last], o.item, n, static_cast<char*>(pointers[k]));
    }
    kernel->run(pointers, params, n, row * inner + at);
    for (int k = inputs; k < space.count; ++k) {
      const Operand& o = space.operands[k];
      if (ways[k] == Way::Packed) unpack(static_cast<char*>(pointers[k]), o.item, n, walk.at(k) + at * o.strides[last], o.strides[last]);
    }
  }
}

// Elements [begin, end) in row-major order.
void Run::run_rows(int64_t begin, int64_t end, intptr_t shift) const {
  char* const memory = scratch_bytes ? scratch(scratch_bytes) : nullptr;
  Walk walk(space, space.rank - 1);
  int64_t row = begin / inner;
  walk.seek(row);
  for (int64_t at = begin; at < end; ++row) {
    const int64_t first = at - row * inner;
    const int64_t last = std::min(inner, end - row * inner);
    run_row(walk, row, first, last, memory, shift);
    at += last - first;
    if (at < end) walk.next();
  }
}

void Run::run_flat(int64_t begin, int64_t end, intptr_t shift) const {
  if (kernel->copies && ways[0] == Way::Packed && ways[1] == Way::Direct && kept < 0)
    return pack_flat(space, 0, begin, end - begin, space.operands[1].data + begin * space.operands[1].item);
  char* const memory = scratch_bytes ? scratch(scratch_bytes) : nullptr;
  void* pointers[kMaxOperands];
  for (int64_t at = begin; at < end; at += kBlock) {
    const int64_t n = std::min(kBlock, end - at);
    for (int k = 0; k < space.count; ++k) {
      const Operand& o = space.operands[k];
      if (ways[k] == Way::Packed) {
        pointers[k] = memory + reinterpret_cast<uintptr_t>(slots[k]);
        if (k < inputs) pack_flat(space, k, at, n, static_cast<char*>(pointers[k]));
      } else {
        pointers[k] = ways[k] == Way::Scalar ? o.data : o.data + at * o.item;
        if (k == kept) pointers[k] = moved(pointers[k], shift);
      }
    }
    kernel->run(pointers, map.params.data(), n, at);
    for (int k = inputs; k < space.count; ++k)
      if (ways[k] == Way::Packed) unpack_flat(space, k, at, n, static_cast<char*>(pointers[k]));
  }
}

// Tiles [begin, end): kTileRows of the second-to-last dimension by kTileCols of the last, for every index of the others.
void Run::run_tiles(int64_t begin, int64_t end) const {
  char* const memory = scratch(scratch_bytes);
  const int j = space.rank - 1, i = space.rank - 2;
  const int64_t down = (space.sizes[i] + kTileRows - 1) / kTileRows, right = (space.sizes[j] + kTileCols - 1) / kTileCols;
  Walk walk(space, i);
  int64_t at_row = -1;
  void* pointers[kMaxOperands];
  for (int64_t tile = begin; tile < end; ++tile) {
    const int64_t outer = tile / (down * right);
    if (outer != at_row) walk.seek(at_row = outer);
    const int64_t i0 = tile % down * kTileRows, j0 = tile / down % right * kTileCols;
    const int64_t ni = std::min(kTileRows, space.sizes[i] - i0), nj = std::min(kTileCols, space.sizes[j] - j0);
    for (int k = 0; k < inputs; ++k) {
      const Operand& o = space.operands[k];
      if (ways[k] == Way::Transposed)
        transpose(walk.at(k) + i0 * o.strides[i] + j0 * o.strides[j], o.strides[j], o.item, ni, nj,
                  memory + reinterpret_cast<uintptr_t>(slots[k]), kTileCols * o.item);
    }
    for (int64_t r = 0; r < ni; ++r) {
      for (int k = 0; k < space.count; ++k) {
        const Operand& o = space.operands[k];
        char* from = walk.at(k) + (i0 + r) * o.strides[i] + j0 * o.strides[j];
        char* slot = memory + reinterpret_cast<uintptr_t>(slots[k]);
        pointers[k] = ways[k] == Way::Transposed ? slot + r * kTileCols * o.item : ways[k] == Way::Packed ? slot : from;
        if (ways[k] == Way::Packed && k < inputs) pack(from, o.strides[j], o.item, nj, slot);
      }
      kernel->run(pointers, map.params.data(), nj, 0, streaming);
      for (int k = inputs; k < space.count; ++k) {
        const Operand& o = space.operands[k];
        if (ways[k] == Way::Packed)
          unpack(static_cast<char*>(pointers[k]), o.item, nj, walk.at(k) + (i0 + r) * o.strides[i] + j0 * o.strides[j], o.strides[j]);
      }
    }
  }
}

// Parts [begin, end) of a copy of a transposed operand.
void Run::run_transposed(int64_t begin, int64_t end) const {
  const int j = space.rank - 1, i = space.rank - 2;
  const int64_t down = (space.sizes[i] + kTransposeRows - 1) / kTransposeRows, right = (space.sizes[j] + kTurnCols - 1) / kTurnCols;
  const Operand &in = space.operands[0], &out = space.operands[1];
  Walk walk(space, i);
  int64_t at_row = -1;
  for (int64_t part = begin; part < end; ++part) {
    const int64_t outer = part / (down * right);
    if (outer != at_row) walk.seek(at_row = outer);
    const int64_t i0 = part % down * kTransposeRows, j0 = part / down % right * kTurnCols;
    transpose(walk.at(0) + i0 * in.strides[i] + j0 * in.strides[j], in.strides[j], in.item, std::min(kTransposeRows, space.sizes[i] - i0),
              std::min(kTurnCols, space.sizes[j] - j0), walk.at(1) + i0 * out.strides[i] + j0 * out.item, out.strides[i], streaming);
  }
}

void Run::prepare() {
  lay_out();
  choose_access();
  streaming = !flat && may_stream();
  time = nanoseconds();
  if (any(Way::Transposed)) {
    const bool turn = kernel->copies && ways[1] == Way::Direct;
    const int64_t tile_rows = turn ? kTransposeRows : kTileRows, tile_cols = turn ? kTurnCols : kTileCols;
    const int j = space.rank - 1, i = space.rank - 2;
    const int64_t down = (space.sizes[i] + tile_rows - 1) / tile_rows, right = (space.sizes[j] + tile_cols - 1) / tile_cols;
    units = rows / space.sizes[i] * down * right;
    piece = turn ? &Run::run_transposed : &Run::run_tiles;
    if (!turn) reserve(kTileRows * kTileCols);
    return;
  }
  reserve(kBlock);
  units = rows * inner;
  if (flat) {
    piece = &Run::run_flat, grain = kBlock;
    return;
  }
  // Parts begin at the start of a row, or at a cache line of each operand within one, so that streamed rows stay aligned.
  piece = &Run::run_rows, grain = rows == 1 || inner > 65536 ? 512 : inner;
  if (inner % grain != 0 && rows > 1) streaming = false;
}

void Run::execute() const {
  split(units, time, grain, [this](int64_t begin, int64_t end) {
    (this->*piece)(begin, end);
    if (streaming) stream_fence();
  });
}

bool Run::is_one_call() const {
  return rows == 1 && !flat && !streaming && !any(Way::Packed) && !any(Way::Transposed) && time < kWorthSplitting;
}

void Run::prepare_rows(const void* kept_at, int64_t each) {
  lay_out(false);
  choose_access(false);
  for (int k = 0; k < inputs && kept_at; ++k)
    if (space.operands[k].data == kept_at) kept = k;
  reserve(kBlock);
  streaming = !flat && may_stream();
  for (int k = inputs; k < space.count; ++k) streaming &= each * space.operands[k].item % 64 == 0;
}

void Run::run_positions(int64_t begin, int64_t end, const char* kept_values) const {
  intptr_t shift = 0;
  if (kept >= 0) {
    const Operand& o = space.operands[kept];
    shift = reinterpret_cast<intptr_t>(kept_values) - reinterpret_cast<intptr_t>(o.data + begin * o.item);
  }
  flat ? run_flat(begin, end, shift) : run_rows(begin, end, shift);
  if (streaming) stream_fence();
}

class MapRows final : public RowPart {
 public:
  MapRows(const Map& map, const void* kept, int64_t rows) : run_(map), each_(run_.space.numel() / rows) { run_.prepare_rows(kept, each_); }
  void run(int64_t begin, int64_t end, char* kept) const override { run_.run_positions(begin * each_, end * each_, kept); }
  double nanoseconds() const override { return run_.nanoseconds(); }

 private:
  Run run_;
  int64_t each_;
};

}  // namespace

std::unique_ptr<RowPart> row_part(const Map& map, const PartRows& rows) { return std::make_unique<MapRows>(map, rows.kept, rows.count); }

void run(const Map& map) {
  for (const int64_t size : map.shape)
    if (size == 0) return;
  if (map.outputs.empty()) return;
  Run r(map);
  r.prepare();
  r.execute();
}

void run(const ir::MapEach& each) {
  for (size_t list = 0; list < each.counts.size(); ++list) run(each.one(list));
}

namespace {

class PreparedMap final : public Prepared {
 public:
  explicit PreparedMap(const Map& map) : run_(map) {
    run_.prepare();
    one_call_ = run_.is_one_call();
    run_.operands(operands_);
  }
  void run() override {
    if (one_call_)
      run_.kernel->run(operands_, run_.map.params.data(), run_.inner, 0);
    else
      run_.execute();
  }

 private:
  Run run_;
  bool one_call_;
  void* operands_[kMaxOperands];
};

}  // namespace

std::unique_ptr<Prepared> prepared(const Map& map) {
  if (map.outputs.empty() || product(map.shape) == 0) return nullptr;
  return std::make_unique<PreparedMap>(map);
}

}  // namespace naru::cpu
