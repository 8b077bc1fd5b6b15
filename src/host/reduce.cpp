// Reductions in the order of ir/reduce.h: partial results of chunks, which threads share out among themselves, then a
// tree over the chunks.
#include <algorithm>
#include <cstring>
#include <vector>

#include "host/instructions.h"
#include "host/kernels.h"
#include "host/layout.h"
#include "ir/row_ids.h"

namespace naru::host {
namespace {

using ir::Reduce;

// Columns of a packed block of an across-reduction.
constexpr int64_t kPackedCols = 64;
// Across, so many rows are read side by side, and so many columns of them, whose sums stay in the first cache.
constexpr int64_t kRowsTogether = 8, kColsTogether = 2048;

// The instruction with its dimensions merged: kept ones (without the column, when across), then folded ones.
struct Fold {
  const Reduce& reduce;
  Space outer;   // kept dimensions: inputs
  Space folded;  // folded dimensions: inputs, at the first result
  Space result;  // kept dimensions: the output
  const FoldKernel* kernel = nullptr;
  int inputs;
  int64_t kept = 1, length = 1;  // results; elements folded into each
  int64_t cols = 1, col_strides[ir::kMaxInputs] = {};
  bool packed[ir::kMaxInputs] = {};
  size_t slots[ir::kMaxInputs] = {}, scratch_bytes = 0;
  size_t item;  // bytes of an accumulator

  bool keeps;                 // along: the folded values are kept as well
  std::vector<char> partial;  // across: results of chunks
  int64_t width = 0;          // across: columns taken together
  bool packs = false;         // across: whether any operand is packed

  explicit Fold(const Reduce& r, bool keeps = false) : reduce(r), inputs(static_cast<int>(r.inputs.size())), keeps(keeps) {
    const int kept_dims = static_cast<int>(r.shape.size()) - r.folded;
    const int outer_dims = kept_dims - (r.along ? 0 : 1);
    const std::span<const int64_t> shape = r.shape;
    result.reset(shape.first(kept_dims));
    result.add(r.out);
    outer.reset(shape.first(outer_dims));
    folded.reset(shape.subspan(kept_dims));
    for (int k = 0; k < inputs; ++k) {
      const ir::View& v = r.inputs[k];
      const auto bytes = static_cast<int64_t>(naru::size_of(v.dtype));
      outer.add(static_cast<char*>(v.data), bytes, v.strides.data());
      folded.add(static_cast<char*>(v.data), bytes, v.strides.data() + kept_dims);
      if (!r.along) col_strides[k] = v.strides[outer_dims] * bytes;
    }
    if (!r.along) cols = r.shape[outer_dims];
    kept = result.numel();
    length = folded.numel();
    for (Space* s : {&outer, &folded, &result}) {
      s->drop_ones();
      s->merge();
    }
  }

  void execute();
  double nanoseconds() const;
  // Along: results [begin, end), each in one go. kept: where the folded values go, if they are kept.
  void prepare_along();
  void along_results(int64_t begin, int64_t end, char* kept_values = nullptr) const;
  // Across, of one outer position: rows [begin, end), which belong to one chunk; those of a chunk in order.
  void prepare_rows();
  void across_rows(int64_t begin, int64_t end) const;
  void finish_rows() { combine_across(); }

 private:
  // Bytes from one folded element to the next, where one number says it.
  int64_t step(int k) const { return folded.rank == 0 ? 0 : folded.operands[k].strides[folded.rank - 1]; }
  bool steady(int k) const { return folded.rank <= 1 || folded.flat(k) || folded.repeats_one(k); }
  void reserve(int64_t elements);
  void store(int64_t first, int64_t n, void* accumulators) const;
  void fill_identity() const;
  int64_t along_chunks() const { return (length + ir::kAlongChunk - 1) / ir::kAlongChunk; }
  int64_t across_chunks() const { return (length + ir::kAcrossChunk - 1) / ir::kAcrossChunk; }
  void prepare_across();
  void combine_across();
  void across_part(const char* const* base, int64_t row, int64_t begin, int64_t end, int64_t col, int64_t n, char* out, char* memory) const;
  void along();
  void along_unit(const Walk& walk, int64_t row, int64_t chunk, void* out, char* memory, char* kept = nullptr) const;
  void across();
  void across_unit(const char* const* base, int64_t row, int64_t first_row, int64_t rows, int64_t col, int64_t n, char* out,
                   char* memory) const;
};

void Fold::reserve(int64_t elements) {
  for (int k = 0; k < inputs; ++k)
    if (packed[k]) {
      slots[k] = scratch_bytes;
      scratch_bytes += static_cast<size_t>(elements * outer.operands[k].item + 63) / 64 * 64;
    }
}

// Converts the accumulators of results [first, first + n) and writes them to the output. Overwrites them.
void Fold::store(int64_t first, int64_t n, void* accumulators) const {
  const DType from = dtype_of(kernel->kernel.type), to = reduce.out.dtype;
  if (result.rank == 0) return convert(from, accumulators, to, result.operands[0].data, n);
  if (result.flat(0)) return convert(from, accumulators, to, result.operands[0].data + first * result.operands[0].item, n);
  if (from == to) return unpack_flat(result, 0, first, n, static_cast<char*>(accumulators));
  alignas(64) char block[2048];
  const int64_t each = static_cast<int64_t>(sizeof block / naru::size_of(to));
  for (int64_t at = 0; at < n; at += each) {
    const int64_t m = std::min(each, n - at);
    convert(from, static_cast<char*>(accumulators) + static_cast<size_t>(at) * item, to, block, m);
    unpack_flat(result, 0, first + at, m, block);
  }
}

void Fold::fill_identity() const {
  alignas(64) char block[1024];
  const int64_t each = static_cast<int64_t>(sizeof block / item);
  for (int64_t first = 0; first < kept; first += each) {
    const int64_t n = std::min(each, kept - first);
    ir::fill_identity(reduce.op, kernel->kernel.type, block, n);
    store(first, n, block);
  }
}

double Fold::nanoseconds() const {
  double each = 0.03 * kernel->cost;
  for (int k = 0; k < inputs; ++k) each += packed[k] ? 1.0 : 0.02 * static_cast<double>(outer.operands[k].item);
  return each * static_cast<double>(kept * length);
}

// a takes the chunks after it: `chunks` partial results of n values each, one behind another.
void combine_chunks(ir::ReduceOp op, ir::VType type, char* partial, int64_t chunks, int64_t n, size_t item) {
  const size_t pitch = static_cast<size_t>(n) * item;
  for (int64_t s = 1; s < chunks; s *= 2)
    for (int64_t i = 0; i + s < chunks; i += 2 * s)
      ir::combine_values(op, type, partial + static_cast<size_t>(i) * pitch, partial + static_cast<size_t>(i + s) * pitch, n);
}

void Fold::along_unit(const Walk& walk, int64_t row, int64_t chunk, void* out, char* memory, char* kept) const {
  const int64_t first = chunk * ir::kAlongChunk, n = std::min(ir::kAlongChunk, length - first);
  void* pointers[ir::kMaxInputs + 1];
  pointers[inputs] = kept;
  for (int k = 0; k < inputs; ++k) {
    if (packed[k]) {
      pointers[k] = memory + slots[k];
      pack_flat(folded, k, first, n, memory + slots[k], walk.at(k) - folded.operands[k].data);
    } else {
      pointers[k] = walk.at(k) + first * step(k);
    }
  }
  kernel->along(pointers, reduce.params.data(), n, row * length + first, out);
}

void Fold::prepare_along() {
  uint32_t scalars = 0;
  for (int k = 0; k < inputs; ++k) {
    const bool one = length > 1 ? folded.repeats_one(k) : reduce.program.inputs[k].scalar;
    packed[k] = !one && length > 1 && !folded.flat(k);
    scalars |= static_cast<uint32_t>(one) << k;
  }
  kernel = &fold_kernel_of(reduce.program, reduce.op, scalars, keeps);
  item = ir::size_of(kernel->kernel.type);
  reserve(std::min(length, ir::kAlongChunk));
}

void Fold::along_results(int64_t begin, int64_t end, char* kept_values) const {
  char* const memory = scratch_bytes ? scratch(scratch_bytes) : nullptr;
  const int64_t chunks = along_chunks();
  alignas(64) char block[1024];
  std::vector<char> parts(chunks > 1 ? static_cast<size_t>(chunks) * item : 0);
  const int64_t each = static_cast<int64_t>(sizeof block / item);
  Walk walk(outer, outer.rank);
  walk.seek(begin);
  for (int64_t row = begin; row < end;) {
    const int64_t n = std::min(each, end - row);
    for (int64_t i = 0; i < n; ++i, walk.next()) {
      char* const out = block + static_cast<size_t>(i) * item;
      char* const values = keeps ? kept_values + (row + i - begin) * length * static_cast<int64_t>(item) : nullptr;
      if (chunks == 1) {
        along_unit(walk, row + i, 0, out, memory, values);
        continue;
      }
      for (int64_t c = 0; c < chunks; ++c)
        along_unit(walk, row + i, c, parts.data() + static_cast<size_t>(c) * item, memory,
                   keeps ? values + c * ir::kAlongChunk * static_cast<int64_t>(item) : nullptr);
      combine_chunks(reduce.op, kernel->kernel.type, parts.data(), chunks, 1, item);
      std::memcpy(out, parts.data(), item);
    }
    store(row, n, block);
    row += n;
  }
}

void Fold::along() {
  prepare_along();
  if (length == 0) return fill_identity();
  const int64_t chunks = along_chunks();
  const double time = nanoseconds();
  if (chunks == 1 || kept >= 4 * num_threads()) return split(kept, time, 1, [&](int64_t begin, int64_t end) { along_results(begin, end); });
  partial.resize(static_cast<size_t>(kept * chunks) * item);
  split(kept * chunks, time, 1, [&](int64_t begin, int64_t end) {
    char* const memory = scratch_bytes ? scratch(scratch_bytes) : nullptr;
    Walk walk(outer, outer.rank);
    int64_t at = -1;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t row = unit / chunks;
      if (row != at) walk.seek(at = row);
      along_unit(walk, row, unit % chunks, partial.data() + static_cast<size_t>(unit) * item, memory);
    }
  });
  for (int64_t row = 0; row < kept; ++row) {
    char* const first = partial.data() + static_cast<size_t>(row * chunks) * item;
    combine_chunks(reduce.op, kernel->kernel.type, first, chunks, 1, item);
    store(row, 1, first);
  }
}

// Rows [first_row, first_row + rows) of columns [col, col + n) of outer position `row`, whose inputs start at `base`.
void Fold::across_unit(const char* const* base, int64_t row, int64_t first_row, int64_t rows, int64_t col, int64_t n, char* out,
                       char* memory) const {
  void* pointers[ir::kMaxInputs];
  int64_t row_strides[ir::kMaxInputs];
  for (int k = 0; k < inputs; ++k) {
    const int64_t bytes = outer.operands[k].item;
    const char* from = base[k] + col * col_strides[k];
    if (!packed[k]) {
      pointers[k] = const_cast<char*>(from) + first_row * step(k);
      row_strides[k] = step(k);
      continue;
    }
    pointers[k] = memory + slots[k];
    row_strides[k] = n * bytes;
    for (int64_t r = 0; r < rows; ++r) {
      int64_t rest = first_row + r, offset = 0;
      for (int d = folded.rank - 1; d >= 0; --d) {
        offset += rest % folded.sizes[d] * folded.operands[k].strides[d];
        rest /= folded.sizes[d];
      }
      pack(from + offset, col_strides[k], bytes, n, memory + slots[k] + r * n * bytes);
    }
  }
  const uint64_t* params = reduce.params.data();
  if (!kernel->uses_index) return kernel->across(pointers, row_strides, params, rows, n, 0, 0, out);
  // Neighbouring columns are `length` apart in Index, not 1: one column at a time.
  for (int64_t j = 0; j < n; ++j) {
    void* at[ir::kMaxInputs];
    for (int k = 0; k < inputs; ++k)
      at[k] = static_cast<char*>(pointers[k]) + (kernel->kernel.map.inputs[k].scalar ? 0 : j * outer.operands[k].item);
    kernel->across(at, row_strides, params, rows, 1, (row * cols + col + j) * length + first_row, 1, out + static_cast<size_t>(j) * item);
  }
}

void Fold::prepare_across() {
  uint32_t scalars = 0, per_row = 0;
  for (int k = 0; k < inputs; ++k) {
    const bool one_a_row = cols > 1 && col_strides[k] == 0 && folded.rank <= 1 && !folded.repeats_one(k);
    per_row |= static_cast<uint32_t>(one_a_row) << k;
    const bool one = one_a_row || (folded.repeats_one(k) && (cols == 1 ? reduce.program.inputs[k].scalar : col_strides[k] == 0));
    const bool neighbours = cols == 1 || col_strides[k] == outer.operands[k].item;
    packed[k] = !one && !(neighbours && (folded.rank <= 1 || folded.repeats_one(k)));
    packs |= packed[k];
    scalars |= static_cast<uint32_t>(one) << k;
  }
  kernel = &fold_kernel_of(reduce.program, reduce.op, scalars, false, per_row);
  item = ir::size_of(kernel->kernel.type);
  width = std::min(cols, packs ? kPackedCols : kColsTogether);
}

// The results of chunks, those of one outer position one behind another, become results.
void Fold::combine_across() {
  const int64_t chunks = across_chunks(), outers = kept / cols;
  if (chunks == 1) return store(0, kept, partial.data());
  for (int64_t row = 0; row < outers; ++row) {
    char* const first = partial.data() + static_cast<size_t>(row * chunks * cols) * item;
    combine_chunks(reduce.op, kernel->kernel.type, first, chunks, cols, item);
    store(row * cols, cols, first);
  }
}

// Rows [begin, end) of one chunk, whose result is `out`.
void Fold::across_part(const char* const* base, int64_t row, int64_t begin, int64_t end, int64_t col, int64_t n, char* out,
                       char* memory) const {
  if (begin % ir::kAcrossChunk == 0) ir::fill_identity(reduce.op, kernel->kernel.type, out, n);
  const int64_t together = packs ? ir::kAcrossChunk : kRowsTogether;
  for (int64_t r = begin; r < end; r += together) across_unit(base, row, r, std::min(together, end - r), col, n, out, memory);
}

void Fold::across() {
  prepare_across();
  if (length == 0) return fill_identity();
  const int64_t outers = kept / cols, chunks = across_chunks();
  const double time = nanoseconds();
  // Columns are also cut to give every thread work.
  const int64_t wanted = time > kWorthSplitting ? 4 * num_threads() : 1;
  if (outers * chunks < wanted) width = std::min(width, std::max<int64_t>(64, cols / (wanted / (outers * chunks)) / 64 * 64));
  const int64_t blocks = (cols + width - 1) / width;
  reserve(std::min(length, ir::kAcrossChunk) * width);
  partial.resize(static_cast<size_t>(kept * chunks) * item);
  split(outers * chunks * blocks, time, 1, [&](int64_t begin, int64_t end) {
    char* const memory = scratch_bytes ? scratch(scratch_bytes) : nullptr;
    Walk walk(outer, outer.rank);
    int64_t at = -1;
    const char* base[ir::kMaxInputs];
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t row = unit / (chunks * blocks), chunk = unit / blocks % chunks, col = unit % blocks * width;
      if (row != at) {
        walk.seek(at = row);
        for (int k = 0; k < inputs; ++k) base[k] = walk.at(k);
      }
      const int64_t first = chunk * ir::kAcrossChunk;
      across_part(base, row, first, std::min(first + ir::kAcrossChunk, length), col, std::min(width, cols - col),
                  partial.data() + static_cast<size_t>((row * chunks + chunk) * cols + col) * item, memory);
    }
  });
  combine_across();
}

void Fold::prepare_rows() {
  prepare_across();
  reserve(ir::kAcrossChunk * width);
  partial.resize(static_cast<size_t>(kept * across_chunks()) * item);
}

void Fold::across_rows(int64_t begin, int64_t end) const {
  char* const memory = scratch_bytes ? scratch(scratch_bytes) : nullptr;
  const char* base[ir::kMaxInputs];
  for (int k = 0; k < inputs; ++k) base[k] = outer.operands[k].data;
  const size_t chunk = static_cast<size_t>(begin / ir::kAcrossChunk * cols);
  for (int64_t col = 0; col < cols; col += width)
    across_part(base, 0, begin, end, col, std::min(width, cols - col),
                const_cast<char*>(partial.data()) + (chunk + static_cast<size_t>(col)) * item, memory);
}

void Fold::execute() {
  if (kept == 0) return;
  if (reduce.along)
    along();
  else
    across();
}

class AlongRows final : public RowPart {
 public:
  AlongRows(const Reduce& reduce, bool keeps, int64_t rows) : fold_(reduce, keeps), each_(fold_.kept / rows) { fold_.prepare_along(); }
  void run(int64_t begin, int64_t end, char* kept) const override { fold_.along_results(begin * each_, end * each_, kept); }
  double nanoseconds() const override { return fold_.nanoseconds(); }

 private:
  Fold fold_;
  int64_t each_;
};

class AcrossRows final : public RowPart {
 public:
  explicit AcrossRows(const Reduce& reduce) : fold_(reduce) { fold_.prepare_rows(); }
  void run(int64_t begin, int64_t end, char*) const override { fold_.across_rows(begin, end); }
  void finish() override { fold_.finish_rows(); }
  double nanoseconds() const override { return fold_.nanoseconds(); }
  bool folds_rows() const override { return true; }

 private:
  Fold fold_;
};

}  // namespace

std::unique_ptr<RowPart> row_part(const Reduce& reduce, bool keeps, int64_t rows) {
  if (reduce.along) return std::make_unique<AlongRows>(reduce, keeps, rows);
  return std::make_unique<AcrossRows>(reduce);
}

void run(const Reduce& reduce) { Fold(reduce).execute(); }

namespace {

// One that a single thread does in one go.
class PreparedFold final : public Prepared {
 public:
  PreparedFold(std::unique_ptr<RowPart> part, int64_t rows) : part_(std::move(part)), rows_(rows) {}
  void run() override {
    part_->run(0, rows_, nullptr);
    part_->finish();
  }

 private:
  std::unique_ptr<RowPart> part_;
  int64_t rows_;
};

}  // namespace

std::unique_ptr<Prepared> prepared(const Reduce& reduce) {
  const Fold fold(reduce);
  if (fold.kept == 0 || fold.length == 0) return nullptr;
  // Across: rows of one outer position, which make one chunk.
  if (!reduce.along && (fold.kept != fold.cols || fold.length > ir::kAcrossChunk)) return nullptr;
  const int64_t rows = reduce.along ? fold.kept : fold.length;
  std::unique_ptr<RowPart> part = row_part(reduce, false, rows);
  if (part->nanoseconds() >= kWorthSplitting) return nullptr;
  return std::make_unique<PreparedFold>(std::move(part), rows);
}

bool small_sum(DType type, int64_t n, const void* in, void* out) {
  if ((type != DType::F32 && type != DType::F64) || n < 1 || n > ir::kAlongChunk) return false;
  const auto kernel_for = [](DType t) {
    ir::Program p;
    p.inputs_count = p.steps_count = p.outputs_count = 1;
    p.inputs[0] = {t, false};
    p.outputs[0] = 0;
    p.steps[0] = {ir::row::copy, t, 1, {}};
    p.steps[0].args[0] = {ir::Program::From::Input, t, 0};
    return &fold_kernel_of(p, ir::ReduceOp::Sum, 0);
  };
  static const FoldKernel* const kernels[] = {kernel_for(DType::F32), kernel_for(DType::F64)};
  void* from = const_cast<void*>(in);
  kernels[type == DType::F64]->along(&from, nullptr, n, 0, out);
  return true;
}

}  // namespace naru::host
