// Reductions in the order of ir/reduce.h: partial results of chunks, which threads share out among themselves, then a
// tree over the chunks.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/cpu/exec/instructions.h"
#include "backends/cpu/exec/kernels.h"
#include "backends/cpu/exec/layout.h"
#include "ir/op_ids.h"
#include "ir/program_builder.h"

namespace naru::cpu {
namespace {

using ir::Reduce;

// Columns of a packed block of an strided reduction.
constexpr int64_t kPackedCols = 64;
// Strided: so many rows are read side by side, and so many columns of them, whose sums stay in the first cache.
constexpr int64_t kRowsTogether = 8, kColsTogether = 2048;

// The instruction with its dimensions merged: kept ones (without the column, when strided), then reduced ones.
struct Reduction {
  const Reduce& reduce;
  Space outer;    // kept dimensions: inputs
  Space reduced;  // reduced dimensions: inputs, at the first result
  Space result;   // kept dimensions: the outputs
  const ReductionKernel* kernel = nullptr;
  int inputs, outputs;
  int64_t kept = 1, length = 1;  // results; elements reduced into each
  int64_t cols = 1, col_strides[ir::kMaxInputs] = {};
  bool packed[ir::kMaxInputs] = {};
  size_t slots[ir::kMaxInputs] = {}, scratch_bytes = 0;
  size_t item;  // bytes of an accumulator

  bool keeps;                 // contiguous: the reduced values are kept as well
  std::vector<char> partial;  // results of chunks; strided: those of each output, one output behind another
  int64_t width = 0;          // strided: columns taken together
  bool packs = false;         // strided: whether any operand is packed

  explicit Reduction(const Reduce& r, bool keeps = false)
      : reduce(r), inputs(static_cast<int>(r.inputs.size())), outputs(1 + static_cast<int>(r.others.size())), keeps(keeps) {
    const int kept_dims = static_cast<int>(r.shape.size()) - r.reduced;
    const int outer_dims = kept_dims - (r.contiguous ? 0 : 1);
    const std::span<const int64_t> shape = r.shape;
    result.reset(shape.first(kept_dims));
    result.add(r.out);
    for (const ir::View& v : r.others) result.add(v);
    outer.reset(shape.first(outer_dims));
    reduced.reset(shape.subspan(kept_dims));
    for (int k = 0; k < inputs; ++k) {
      const ir::View& v = r.inputs[k];
      const auto bytes = static_cast<int64_t>(naru::size_of(v.dtype));
      outer.add(static_cast<char*>(v.data), bytes, v.strides.data());
      reduced.add(static_cast<char*>(v.data), bytes, v.strides.data() + kept_dims);
      if (!r.contiguous) col_strides[k] = ir::in_bytes(v.strides[outer_dims], bytes);
    }
    if (!r.contiguous) cols = r.shape[outer_dims];
    kept = result.numel();
    length = reduced.numel();
    for (Space* s : {&outer, &reduced, &result}) {
      s->drop_ones();
      s->merge();
    }
  }

  void execute();
  double nanoseconds() const;
  // Contiguous: results [begin, end), each in one go. kept: where the reduced values go, if they are kept.
  void prepare_contiguous();
  void contiguous_results(int64_t begin, int64_t end, char* kept_values = nullptr) const;
  // Strided, of one outer position: rows [begin, end), which belong to one chunk; those of a chunk in order.
  void prepare_rows();
  void strided_rows(int64_t begin, int64_t end) const;
  void finish_rows() { combine_strided(); }

 private:
  // Bytes from one reduced element to the next, where one number says it.
  int64_t step(int k) const { return reduced.rank == 0 ? 0 : reduced.operands[k].strides[reduced.rank - 1]; }
  bool steady(int k) const { return reduced.rank <= 1 || reduced.flat(k) || reduced.repeats_one(k); }
  void reserve(int64_t elements);
  void store(int output, int64_t first, int64_t n, void* accumulators) const;
  void fill_identity() const;
  int64_t contiguous_chunks() const { return (length + ir::kContiguousChunk - 1) / ir::kContiguousChunk; }
  int64_t strided_chunks() const { return (length + ir::kStridedChunk - 1) / ir::kStridedChunk; }
  void prepare_strided();
  void combine_strided();
  // Strided: bytes from an output's partial results to the next one's.
  int64_t plane() const { return kept * strided_chunks() * static_cast<int64_t>(item); }
  // Bytes of an accumulator of each output. (Contiguous: these lie one behind another.)
  size_t all_items() const { return static_cast<size_t>(outputs) * item; }
  void strided_part(const char* const* base, int64_t row, int64_t begin, int64_t end, int64_t col, int64_t n, char* out,
                    char* memory) const;
  void contiguous();
  void contiguous_unit(const Walk& walk, int64_t row, int64_t chunk, void* out, char* memory, char* kept = nullptr) const;
  void strided();
  void strided_unit(const char* const* base, int64_t row, int64_t first_row, int64_t rows, int64_t col, int64_t n, char* out,
                    char* memory) const;
};

void Reduction::reserve(int64_t elements) {
  for (int k = 0; k < inputs; ++k)
    if (packed[k]) {
      slots[k] = scratch_bytes;
      scratch_bytes += static_cast<size_t>(elements * outer.operands[k].item + 63) / 64 * 64;
    }
}

// Converts the accumulators of results [first, first + n) and writes them to the output. Overwrites them.
void Reduction::store(int output, int64_t first, int64_t n, void* accumulators) const {
  const DType from = dtype_of(kernel->kernel.type), to = reduce.out.dtype;
  const Operand& o = result.operands[output];
  if (result.rank == 0) return convert(from, accumulators, to, o.data, n);
  if (result.flat(output)) return convert(from, accumulators, to, o.data + first * o.item, n);
  if (from == to) return unpack_flat(result, output, first, n, static_cast<char*>(accumulators));
  alignas(64) char block[2048];
  const int64_t each = static_cast<int64_t>(sizeof block / naru::size_of(to));
  for (int64_t at = 0; at < n; at += each) {
    const int64_t m = std::min(each, n - at);
    convert(from, static_cast<char*>(accumulators) + static_cast<size_t>(at) * item, to, block, m);
    unpack_flat(result, output, first + at, m, block);
  }
}

void Reduction::fill_identity() const {
  alignas(64) char block[1024];
  const int64_t each = static_cast<int64_t>(sizeof block / item);
  for (int64_t first = 0; first < kept; first += each) {
    const int64_t n = std::min(each, kept - first);
    for (int output = 0; output < outputs; ++output) {
      ir::fill_identity(reduce.op, kernel->kernel.type, block, n);
      store(output, first, n, block);
    }
  }
}

double Reduction::nanoseconds() const {
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

void Reduction::contiguous_unit(const Walk& walk, int64_t row, int64_t chunk, void* out, char* memory, char* kept) const {
  const int64_t first = chunk * ir::kContiguousChunk, n = std::min(ir::kContiguousChunk, length - first);
  void* pointers[ir::kMaxInputs + 1];
  pointers[inputs] = kept;
  for (int k = 0; k < inputs; ++k) {
    if (packed[k]) {
      pointers[k] = memory + slots[k];
      pack_flat(reduced, k, first, n, memory + slots[k], walk.at(k) - reduced.operands[k].data);
    } else {
      pointers[k] = walk.at(k) + first * step(k);
    }
  }
  kernel->contiguous(pointers, reduce.params.data(), n, row * length + first, out);
}

void Reduction::prepare_contiguous() {
  uint32_t scalars = 0;
  for (int k = 0; k < inputs; ++k) {
    const bool one = length > 1 ? reduced.repeats_one(k) : reduce.program.inputs[k].scalar;
    packed[k] = !one && length > 1 && !reduced.flat(k);
    scalars |= static_cast<uint32_t>(one) << k;
  }
  kernel = &reduction_kernel_of(reduce.program, reduce.op, scalars, keeps);
  item = ir::size_of(kernel->kernel.type);
  reserve(std::min(length, ir::kContiguousChunk));
}

void Reduction::contiguous_results(int64_t begin, int64_t end, char* kept_values) const {
  char* const memory = scratch_bytes ? scratch(scratch_bytes) : nullptr;
  const int64_t chunks = contiguous_chunks();
  alignas(64) char block[1024];
  std::vector<char> parts(chunks > 1 || outputs > 1 ? static_cast<size_t>(chunks) * all_items() : 0);
  const int64_t each = static_cast<int64_t>(sizeof block / all_items());
  Walk walk(outer, outer.rank);
  walk.seek(begin);
  for (int64_t row = begin; row < end;) {
    const int64_t n = std::min(each, end - row);
    for (int64_t i = 0; i < n; ++i, walk.next()) {
      char* const out = block + static_cast<size_t>(i) * item;
      char* const values = keeps ? kept_values + (row + i - begin) * length * static_cast<int64_t>(item) : nullptr;
      if (chunks == 1 && outputs == 1) {
        contiguous_unit(walk, row + i, 0, out, memory, values);
        continue;
      }
      for (int64_t c = 0; c < chunks; ++c)
        contiguous_unit(walk, row + i, c, parts.data() + static_cast<size_t>(c) * all_items(), memory,
                        keeps ? values + c * ir::kContiguousChunk * static_cast<int64_t>(item) : nullptr);
      combine_chunks(reduce.op, kernel->kernel.type, parts.data(), chunks, outputs, item);
      for (int output = 0; output < outputs; ++output)
        std::memcpy(out + static_cast<size_t>(output * each) * item, parts.data() + static_cast<size_t>(output) * item, item);
    }
    for (int output = 0; output < outputs; ++output) store(output, row, n, block + static_cast<size_t>(output * each) * item);
    row += n;
  }
}

void Reduction::contiguous() {
  prepare_contiguous();
  if (length == 0) return fill_identity();
  const int64_t chunks = contiguous_chunks();
  const double time = nanoseconds();
  if (chunks == 1 || kept >= 4 * num_threads())
    return split(kept, time, 1, [&](int64_t begin, int64_t end) { contiguous_results(begin, end); });
  partial.resize(static_cast<size_t>(kept * chunks) * all_items());
  split(kept * chunks, time, 1, [&](int64_t begin, int64_t end) {
    char* const memory = scratch_bytes ? scratch(scratch_bytes) : nullptr;
    Walk walk(outer, outer.rank);
    int64_t at = -1;
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t row = unit / chunks;
      if (row != at) walk.seek(at = row);
      contiguous_unit(walk, row, unit % chunks, partial.data() + static_cast<size_t>(unit) * all_items(), memory);
    }
  });
  for (int64_t row = 0; row < kept; ++row) {
    char* const first = partial.data() + static_cast<size_t>(row * chunks) * all_items();
    combine_chunks(reduce.op, kernel->kernel.type, first, chunks, outputs, item);
    for (int output = 0; output < outputs; ++output) store(output, row, 1, first + static_cast<size_t>(output) * item);
  }
}

// Rows [first_row, first_row + rows) of columns [col, col + n) of outer position `row`, whose inputs start at `base`.
void Reduction::strided_unit(const char* const* base, int64_t row, int64_t first_row, int64_t rows, int64_t col, int64_t n, char* out,
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
      for (int d = reduced.rank - 1; d >= 0; --d) {
        offset += rest % reduced.sizes[d] * reduced.operands[k].strides[d];
        rest /= reduced.sizes[d];
      }
      pack(from + offset, col_strides[k], bytes, n, memory + slots[k] + r * n * bytes);
    }
  }
  const uint64_t* params = reduce.params.data();
  if (!kernel->uses_index) return kernel->strided(pointers, row_strides, params, rows, n, 0, 0, out, plane());
  // Neighbouring columns are `length` apart in Index, not 1: one column at a time.
  for (int64_t j = 0; j < n; ++j) {
    void* at[ir::kMaxInputs];
    for (int k = 0; k < inputs; ++k)
      at[k] = static_cast<char*>(pointers[k]) + (kernel->kernel.map.inputs[k].scalar ? 0 : j * outer.operands[k].item);
    kernel->strided(at, row_strides, params, rows, 1, (row * cols + col + j) * length + first_row, 1, out + static_cast<size_t>(j) * item,
                    plane());
  }
}

void Reduction::prepare_strided() {
  uint32_t scalars = 0, per_row = 0;
  for (int k = 0; k < inputs; ++k) {
    const bool one_a_row = cols > 1 && col_strides[k] == 0 && reduced.rank <= 1 && !reduced.repeats_one(k);
    per_row |= static_cast<uint32_t>(one_a_row) << k;
    const bool one = one_a_row || (reduced.repeats_one(k) && (cols == 1 ? reduce.program.inputs[k].scalar : col_strides[k] == 0));
    const bool neighbours = cols == 1 || col_strides[k] == outer.operands[k].item;
    packed[k] = !one && !(neighbours && (reduced.rank <= 1 || reduced.repeats_one(k)));
    packs |= packed[k];
    scalars |= static_cast<uint32_t>(one) << k;
  }
  kernel = &reduction_kernel_of(reduce.program, reduce.op, scalars, false, per_row);
  item = ir::size_of(kernel->kernel.type);
  width = std::min(cols, packs ? kPackedCols : kColsTogether);
}

// The results of chunks, those of one outer position one behind another, become results.
void Reduction::combine_strided() {
  const int64_t chunks = strided_chunks(), outers = kept / cols;
  for (int output = 0; output < outputs; ++output) {
    char* const all = partial.data() + output * plane();
    if (chunks == 1) {
      store(output, 0, kept, all);
      continue;
    }
    for (int64_t row = 0; row < outers; ++row) {
      char* const first = all + static_cast<size_t>(row * chunks * cols) * item;
      combine_chunks(reduce.op, kernel->kernel.type, first, chunks, cols, item);
      store(output, row * cols, cols, first);
    }
  }
}

// Rows [begin, end) of one chunk, whose result is `out`.
void Reduction::strided_part(const char* const* base, int64_t row, int64_t begin, int64_t end, int64_t col, int64_t n, char* out,
                             char* memory) const {
  if (begin % ir::kStridedChunk == 0)
    for (int output = 0; output < outputs; ++output) ir::fill_identity(reduce.op, kernel->kernel.type, out + output * plane(), n);
  const int64_t step = packs ? ir::kStridedChunk : kRowsTogether;
  for (int64_t r = begin; r < end; r += step) strided_unit(base, row, r, std::min(step, end - r), col, n, out, memory);
}

void Reduction::strided() {
  prepare_strided();
  if (length == 0) return fill_identity();
  const int64_t outers = kept / cols, chunks = strided_chunks();
  const double time = nanoseconds();
  // Columns are also cut to give every thread work.
  const int64_t wanted = time > kWorthSplitting ? 4 * num_threads() : 1;
  if (outers * chunks < wanted) width = std::min(width, std::max<int64_t>(64, cols / (wanted / (outers * chunks)) / 64 * 64));
  const int64_t blocks = (cols + width - 1) / width;
  reserve(std::min(length, ir::kStridedChunk) * width);
  partial.resize(static_cast<size_t>(kept * chunks) * all_items());
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
      const int64_t first = chunk * ir::kStridedChunk;
      strided_part(base, row, first, std::min(first + ir::kStridedChunk, length), col, std::min(width, cols - col),
                   partial.data() + static_cast<size_t>((row * chunks + chunk) * cols + col) * item, memory);
    }
  });
  combine_strided();
}

void Reduction::prepare_rows() {
  prepare_strided();
  reserve(ir::kStridedChunk * width);
  partial.resize(static_cast<size_t>(kept * strided_chunks()) * all_items());
}

void Reduction::strided_rows(int64_t begin, int64_t end) const {
  char* const memory = scratch_bytes ? scratch(scratch_bytes) : nullptr;
  const char* base[ir::kMaxInputs];
  for (int k = 0; k < inputs; ++k) base[k] = outer.operands[k].data;
  const size_t chunk = static_cast<size_t>(begin / ir::kStridedChunk * cols);
  for (int64_t col = 0; col < cols; col += width)
    strided_part(base, 0, begin, end, col, std::min(width, cols - col),
                 const_cast<char*>(partial.data()) + (chunk + static_cast<size_t>(col)) * item, memory);
}

void Reduction::execute() {
  if (kept == 0) return;
  if (reduce.contiguous)
    contiguous();
  else
    strided();
}

class ContiguousRows final : public RowPart {
 public:
  ContiguousRows(const Reduce& reduce, bool keeps, int64_t rows) : reduction_(reduce, keeps), each_(reduction_.kept / rows) {
    reduction_.prepare_contiguous();
  }
  void run(int64_t begin, int64_t end, char* kept) const override { reduction_.contiguous_results(begin * each_, end * each_, kept); }
  double nanoseconds() const override { return reduction_.nanoseconds(); }

 private:
  Reduction reduction_;
  int64_t each_;
};

class StridedRows final : public RowPart {
 public:
  explicit StridedRows(const Reduce& reduce) : reduction_(reduce) { reduction_.prepare_rows(); }
  void run(int64_t begin, int64_t end, char*) const override { reduction_.strided_rows(begin, end); }
  void finish() override { reduction_.finish_rows(); }
  double nanoseconds() const override { return reduction_.nanoseconds(); }
  bool reduces_rows() const override { return true; }

 private:
  Reduction reduction_;
};

}  // namespace

std::unique_ptr<RowPart> row_part(const Reduce& reduce, const PartRows& rows) {
  if (reduce.contiguous) return std::make_unique<ContiguousRows>(reduce, rows.keeps, rows.count);
  return std::make_unique<StridedRows>(reduce);
}

void run(const Reduce& reduce) { Reduction(reduce).execute(); }

namespace {

// One that a single thread does in one go.
class PreparedReduction final : public Prepared {
 public:
  PreparedReduction(std::unique_ptr<RowPart> part, int64_t rows) : part_(std::move(part)), rows_(rows) {}
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
  const Reduction reduction(reduce);
  if (reduction.kept == 0 || reduction.length == 0) return nullptr;
  // Strided: rows of one outer position, which make one chunk.
  if (!reduce.contiguous && (reduction.kept != reduction.cols || reduction.length > ir::kStridedChunk)) return nullptr;
  const int64_t rows = reduce.contiguous ? reduction.kept : reduction.length;
  std::unique_ptr<RowPart> part = row_part(reduce, {rows});
  if (part->nanoseconds() >= kWorthSplitting) return nullptr;
  return std::make_unique<PreparedReduction>(std::move(part), rows);
}

bool small_sum(DType type, int64_t n, const void* in, void* out) {
  if ((type != DType::F32 && type != DType::F64) || n < 1 || n > ir::kContiguousChunk) return false;
  const auto kernel_for = [](DType t) {
    return &reduction_kernel_of(ir::ProgramBuilder::single(ir::op::copy, {t}, t, t), ir::ReduceOp::Sum, 0);
  };
  static const ReductionKernel* const kernels[] = {kernel_for(DType::F32), kernel_for(DType::F64)};
  void* from = const_cast<void*>(in);
  kernels[type == DType::F64]->contiguous(&from, nullptr, n, 0, out);
  return true;
}

}  // namespace naru::cpu
