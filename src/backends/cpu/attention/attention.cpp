// Attention in blocks of queries and keys, whose scores stay in L2: forward with a softmax whose greatest score and sum run along the keys,
// backward from the logarithms of the sums that forward kept. Memory grows with the numbers of queries and keys, not with their product.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "backends/cpu/attention/engines.h"
#include "backends/cpu/attention/rows.h"
#include "backends/cpu/exec/buffer.h"
#include "backends/cpu/exec/instructions.h"
#include "backends/cpu/exec/thread_pool.h"
#include "ir/instruction.h"
#include "naru/dtype.h"

namespace naru::cpu {
namespace {

using ir::Attention;

// Queries and keys of a block: its scores and their gradients are 128 KiB.
constexpr int64_t kQueries = 64, kKeys = 256;
// Backward shares out keys, in parts of at least kKeys * 2, where there are fewer heads than this. By the sizes alone: sums depend on it.
constexpr int64_t kParts = 8;
constexpr int64_t kScoreRow = kKeys + 16;  // not a power of two: rows would share sets of the cache

constexpr int64_t pieces_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

// The matrix of one head (positions by channels) in memory.
struct Matrix {
  char* data;
  DType type;
  int64_t rows, columns, row, column;  // sizes, and strides in elements

  Matrix(const Attention::Array& a, DType t, int64_t image, int64_t head, int64_t positions, int64_t channels)
      : data(static_cast<char*>(a.data) + (image * a.strides[0] + head * a.strides[1]) * static_cast<int64_t>(size_of(t))),
        type(t),
        rows(positions),
        columns(channels),
        row(a.strides[2]),
        column(a.strides[3]) {}
  // All of it to row-major memory.
  void read(DType as, void* memory) const {
    cpu::run(ir::copy_of({rows, columns}, {at(0), type, {row, column}}, {memory, as, {columns, 1}}));
  }
  // `count` positions from `memory`, whose rows are `step` apart.
  void write(int64_t first, int64_t count, float* memory, int64_t step) const {
    if (type != DType::F32 || (column != 1 && columns != 1))
      return cpu::run(ir::copy_of({count, columns}, {memory, DType::F32, {step, 1}}, {at(first), type, {row, column}}));
    for (int64_t r = 0; r < count; ++r) std::memcpy(at(first + r), memory + r * step, static_cast<size_t>(columns) * sizeof(float));
  }
  Matrix turned() const {
    Matrix t = *this;
    std::swap(t.rows, t.columns), std::swap(t.row, t.column);
    return t;
  }

 private:
  char* at(int64_t position) const { return data + position * row * static_cast<int64_t>(size_of(type)); }
};

// A matrix as items of an engine: where it is, or a copy.
template <class Engine>
class Items {
 public:
  using Item = typename Engine::Item;
  explicit Items(const Matrix& m) : row_(m.row), data_(reinterpret_cast<const Item*>(m.data)) {
    if (m.type == Engine::kItem && (m.column == 1 || m.columns == 1)) return;
    row_ = m.columns;
    held_ = make_buffer({m.rows, row_}, sizeof(Item));
    m.read(Engine::kItem, held_.get());
    data_ = reinterpret_cast<const Item*>(held_.get());
  }
  const Item* at(int64_t position) const { return data_ + position * row_; }
  int64_t row() const { return row_; }

 private:
  int64_t row_;
  const Item* data_;
  Buffer held_;
};

float value_of(float x) { return x; }
float value_of(uint16_t x) { return bfloat_to_float(x); }
// Of rows of items; sixteen chains side by side, then in pairs.
template <class Item>
float dot(const Item* a, const Item* b, int64_t n) {
  constexpr int64_t kChains = 16;
  float sums[kChains] = {};
  int64_t i = 0;
  for (; i + kChains <= n; i += kChains)
    for (int64_t c = 0; c < kChains; ++c) sums[c] += value_of(a[i + c]) * value_of(b[i + c]);
  for (; i < n; ++i) sums[i % kChains] += value_of(a[i]) * value_of(b[i]);
  for (int64_t half = kChains / 2; half > 0; half /= 2)
    for (int64_t c = 0; c < half; ++c) sums[c] += sums[c + half];
  return sums[0];
}

Buffer floats(int64_t count) { return make_buffer({count}, sizeof(float)); }
float* as_floats(const Buffer& b) { return reinterpret_cast<float*>(b.get()); }

// What one thread needs for a block.
template <class Engine>
struct Room {
  explicit Room(const Attention& op)
      : scores(floats(kQueries * kScoreRow)),
        left(make_buffer({std::max({Engine::left_bytes(kQueries, std::max(op.width, op.value_width)), Engine::left_bytes(kQueries, kKeys),
                                    Engine::left_bytes(kKeys, kQueries)})},
                         1)) {
    if (op.biased) bias = floats(kQueries * kScoreRow);
  }
  Buffer scores, left, bias;
};

// The keys of a head, packed for scores (all together) and for sums over the keys (block by block).
template <class Engine>
class Keys {
 public:
  // Of the positions [begin, end), which begin a block.
  Keys(const Items<Engine>& items, int64_t width, int64_t begin, int64_t end, bool for_scores, bool for_sums)
      : width_(width), begin_(begin), end_(end) {
    const int64_t blocks = pieces_of(end - begin, kKeys), panels = pieces_of(end - begin, kPanelColumns);
    if (for_scores) {
      scores_ = make_buffer({panels}, static_cast<size_t>(Engine::panel_bytes(width)));
      Engine::pack_right(items.at(begin), 1, items.row(), width, end - begin, scores_.get());
    }
    if (!for_sums) return;
    sums_ = make_buffer({blocks}, static_cast<size_t>(block_bytes()));
    for (int64_t b = 0; b < blocks; ++b)
      Engine::pack_right(items.at(begin + b * kKeys), items.row(), 1, count(b), width, sums_.get() + b * block_bytes());
  }
  int64_t blocks() const { return pieces_of(end_ - begin_, kKeys); }
  int64_t first(int64_t block) const { return begin_ + block * kKeys; }
  int64_t count(int64_t block) const { return std::min(kKeys, end_ - first(block)); }
  // rows x the first n keys of a block.
  void scores(typename Engine::Left a, int64_t rows, int64_t block, int64_t n, float* c) const {
    Engine::multiply(a, scores_.get() + block * kKeys / kPanelColumns * Engine::panel_bytes(width_), width_, rows, n, width_, c, kScoreRow,
                     false);
  }
  // c += weights x the first n keys' rows of a block.
  void add_sums(typename Engine::Left a, int64_t rows, int64_t block, int64_t n, float* c) const {
    Engine::multiply(a, sums_.get() + block * block_bytes(), count(block), rows, width_, n, c, whole_panels(width_), true);
  }

 private:
  int64_t block_bytes() const { return pieces_of(width_, kPanelColumns) * Engine::panel_bytes(kKeys); }
  int64_t width_, begin_, end_;
  Buffer scores_, sums_;
};

// One head of the queries.
struct Head {
  const Attention& op;
  int64_t image, head;

  Matrix of(const Attention::Array& a, int64_t positions, int64_t channels) const {
    return Matrix(a, op.dtype, image, head, positions, channels);
  }
  // The bias of rows of queries by keys, as float32 where it is not.
  void add_bias(ScoreRows& s, const Buffer& room) const {
    if (!op.biased) return;
    const auto& strides = op.bias.strides;
    const auto size = static_cast<int64_t>(size_of(op.bias_type));
    char* const at =
        static_cast<char*>(op.bias.data) + (image * strides[0] + head * strides[1] + s.first * strides[2] + s.key * strides[3]) * size;
    if (op.bias_type == DType::F32 && strides[3] == 1) {
      s.bias = reinterpret_cast<const float*>(at), s.bias_row = strides[2];
      return;
    }
    cpu::run(ir::copy_of({s.rows, s.keys}, {at, op.bias_type, {strides[2], strides[3]}}, {room.get(), DType::F32, {kScoreRow, 1}}));
    s.bias = as_floats(room), s.bias_row = kScoreRow;
  }
  // Keys of a block that the queries [first, first + rows) see.
  int64_t seen(int64_t first, int64_t rows, int64_t key, int64_t count) const {
    return op.causal ? std::clamp<int64_t>(first + rows - key, 0, count) : count;
  }
};

template <class Engine>
void forward_rows(const Head& h, const Items<Engine>& q, const Keys<Engine>& k, const Keys<Engine>& v, const Room<Engine>& room,
                  int64_t first, int64_t rows, float* out, float* stats) {
  const Attention& op = h.op;
  const int64_t width = whole_panels(op.value_width);
  float most[kQueries], sums[kQueries] = {};
  std::fill(most, most + rows, -std::numeric_limits<float>::infinity());
  std::fill(out, out + whole_panels(rows) * width, 0.0f);
  char* const left = room.left.get();  // of scores, then of sums
  for (int64_t b = 0; b < k.blocks(); ++b) {
    const int64_t n = h.seen(first, rows, k.first(b), k.count(b));
    if (n == 0) break;
    ScoreRows s{as_floats(room.scores), kScoreRow, rows, first, k.first(b), n, static_cast<float>(op.scale), op.causal};
    k.scores(Engine::left_of_items(q.at(first), q.row(), rows, op.width, left), rows, b, n, s.data);
    h.add_bias(s, room.bias);
    softmax_step(s, most, sums, out, width, op.value_width);
    v.add_sums(Engine::left(s.data, kScoreRow, rows, n, left), rows, b, n, out);
  }
  for (int64_t r = 0; r < rows; ++r) {
    const float factor = sums[r] == 0.0f ? 0.0f : 1.0f / sums[r];
    for (int64_t c = 0; c < op.value_width; ++c) out[r * width + c] *= factor;
    stats[r] = most[r] + std::log(sums[r]);
  }
}

template <class Engine>
void forward(const Attention& op) {
  const int64_t blocks = pieces_of(op.queries, kQueries), heads = op.batch * op.heads;
  // Heads, or parts of them, for each thread some. A query's result does not depend on the parts.
  const int64_t parts = std::clamp<int64_t>(pieces_of(2 * num_threads(), heads), 1, blocks), each = pieces_of(blocks, parts) * kQueries;
  parallel_for(heads * parts, [&](int64_t i) {
    const Head h{op, i / parts / op.heads, i / parts % op.heads};
    const int64_t begin = i % parts * each, end = std::min(op.queries, begin + each), shared = h.head / (op.heads / op.key_heads);
    if (begin >= end) return;
    const Items<Engine> q(h.of(op.q, op.queries, op.width));
    const int64_t seen = h.seen(begin, end - begin, 0, op.keys), width = whole_panels(op.value_width);
    const Items<Engine> k_items(Matrix(op.k, op.dtype, h.image, shared, op.keys, op.width));
    const Items<Engine> v_items(Matrix(op.v, op.dtype, h.image, shared, op.keys, op.value_width));
    const Keys<Engine> k(k_items, op.width, 0, seen, true, false), v(v_items, op.value_width, 0, seen, false, true);
    const typename Engine::Session session;
    const Room<Engine> room(op);
    const Buffer out = floats(whole_panels(end - begin) * width), stats = floats(end - begin);
    for (int64_t first = begin; first < end; first += kQueries)
      forward_rows(h, q, k, v, room, first, std::min(kQueries, end - first), as_floats(out) + (first - begin) * width,
                   as_floats(stats) + (first - begin));
    h.of(op.out, op.queries, op.value_width).write(begin, end - begin, as_floats(out), width);
    Matrix(op.stats, DType::F32, h.image, h.head, op.queries, 1).write(begin, end - begin, as_floats(stats), 1);
  });
}

void scale_all(float* x, int64_t n, float scale) {
  for (int64_t i = 0; i < n; ++i) x[i] *= scale;
}

// The gradients by one head of keys and values and the queries that use it, over the keys [begin, end).
template <class Engine>
class Gradients {
 public:
  Gradients(const Attention& op, int64_t image, int64_t shared, int64_t begin, int64_t end)
      : op_(op),
        image_(image),
        shared_(shared),
        begin_(begin),
        end_(end),
        k_items_(Matrix(op.k, op.dtype, image, shared, op.keys, op.width)),
        v_items_(Matrix(op.v, op.dtype, image, shared, op.keys, op.value_width)),
        k_(k_items_, op.width, begin, end, true, op.dq.data != nullptr),
        v_(v_items_, op.value_width, begin, end, true, false),
        room_(op),
        grads_(op.dq.data || op.dk.data ? floats(kQueries * kScoreRow) : zeros(kQueries * kScoreRow)),
        right_(make_buffer({pieces_of(std::max(op.width, op.value_width), kPanelColumns)},
                           static_cast<size_t>(Engine::panel_bytes(kQueries)))),
        dk_(zeros(whole_panels(end - begin) * whole_panels(op.width))),
        dv_(zeros(whole_panels(end - begin) * whole_panels(op.value_width))) {}

  // dq: (queries, whole panels of width), to be scaled.
  void add_head(int64_t head, float* dq) {
    const Head h{op_, image_, head};
    const Items<Engine> q(h.of(op_.q, op_.queries, op_.width)), dout(h.of(op_.dout, op_.queries, op_.value_width)),
        out(h.of(op_.out, op_.queries, op_.value_width));
    const Items<FloatEngine> stats(Matrix(op_.stats, DType::F32, image_, head, op_.queries, 1).turned());
    std::fill(dq, dq + whole_panels(op_.queries) * whole_panels(op_.width), 0.0f);
    const typename Engine::Session session;
    for (int64_t first = 0; first < op_.queries; first += kQueries)
      add_rows(h, q, dout, out, first, std::min(kQueries, op_.queries - first), stats.at(0) + first, dq + first * whole_panels(op_.width));
  }
  void write() {
    const auto put = [&](const Attention::Array& a, int64_t width, const Buffer& sums) {
      if (a.data) Matrix(a, op_.dtype, image_, shared_, op_.keys, width).write(begin_, end_ - begin_, as_floats(sums), whole_panels(width));
    };
    scale_all(as_floats(dk_), (end_ - begin_) * whole_panels(op_.width), static_cast<float>(op_.scale));
    put(op_.dk, op_.width, dk_), put(op_.dv, op_.value_width, dv_);
  }

 private:
  static Buffer zeros(int64_t count) {
    Buffer b = floats(count);
    std::fill(as_floats(b), as_floats(b) + count, 0.0f);
    return b;
  }

  void add_rows(const Head& h, const Items<Engine>& q, const Items<Engine>& dout, const Items<Engine>& out, int64_t first, int64_t rows,
                const float* stats, float* dq) {
    const int64_t width = op_.width, values = op_.value_width;
    float dots[kQueries];
    for (int64_t r = 0; r < rows; ++r) dots[r] = dot(out.at(first + r), dout.at(first + r), values);
    float* const grads = as_floats(grads_);
    char* const left = room_.left.get();
    for (int64_t b = 0; b < k_.blocks(); ++b) {
      const int64_t key = k_.first(b), n = h.seen(first, rows, key, k_.count(b)), at = key - begin_;
      if (n == 0) break;
      ScoreRows s{as_floats(room_.scores), kScoreRow, rows, first, key, n, static_cast<float>(op_.scale), op_.causal};
      k_.scores(Engine::left_of_items(q.at(first), q.row(), rows, width, left), rows, b, n, s.data);
      if (op_.dq.data || op_.dk.data) v_.scores(Engine::left_of_items(dout.at(first), dout.row(), rows, values, left), rows, b, n, grads);
      h.add_bias(s, room_.bias);
      softmax_gradients(s, stats, dots, grads);
      const auto add_turned = [&](const float* weights, const Items<Engine>& items, int64_t columns, float* sums) {
        Engine::pack_right(items.at(first), items.row(), 1, rows, columns, right_.get());
        Engine::multiply(Engine::left_turned(weights, kScoreRow, n, rows, left), right_.get(), rows, n, columns, rows,
                         sums + at * whole_panels(columns), whole_panels(columns), true);
      };
      if (op_.dv.data) add_turned(s.data, dout, values, as_floats(dv_));
      if (op_.dk.data) add_turned(grads, q, width, as_floats(dk_));
      if (op_.dq.data) k_.add_sums(Engine::left(grads, kScoreRow, rows, n, left), rows, b, n, dq);
    }
  }

  const Attention& op_;
  int64_t image_, shared_, begin_, end_;
  Items<Engine> k_items_, v_items_;
  Keys<Engine> k_, v_;
  Room<Engine> room_;
  Buffer grads_, right_, dk_, dv_;
};

template <class Engine>
void backward(const Attention& op) {
  const int64_t heads = op.batch * op.key_heads, each = op.heads / op.key_heads, width = whole_panels(op.width);
  const int64_t wanted = pieces_of(kParts, heads), blocks = pieces_of(op.keys, kKeys), parts = std::clamp<int64_t>(blocks / 2, 1, wanted);
  const int64_t keys = pieces_of(blocks, parts) * kKeys, matrix = whole_panels(op.queries) * width;
  // Gradients of the queries by each part of the keys, which are added in their order.
  const Buffer partial = parts > 1 ? floats(op.batch * op.heads * parts * matrix) : Buffer();
  const auto write_queries = [&](int64_t image, int64_t head, float* dq) {
    if (!op.dq.data) return;
    scale_all(dq, op.queries * width, static_cast<float>(op.scale));
    Matrix(op.dq, op.dtype, image, head, op.queries, op.width).write(0, op.queries, dq, width);
  };
  parallel_for(heads * parts, [&](int64_t i) {
    const int64_t part = i % parts, image = i / parts / op.key_heads, shared = i / parts % op.key_heads;
    const int64_t begin = part * keys, end = std::min(op.keys, begin + keys);
    if (begin >= end) {
      for (int64_t h = shared * each; h < (shared + 1) * each; ++h) {
        float* const dq = as_floats(partial) + ((image * op.heads + h) * parts + part) * matrix;
        std::fill(dq, dq + matrix, 0.0f);
      }
      return;
    }
    Gradients<Engine> g(op, image, shared, begin, end);
    const Buffer own = parts > 1 ? Buffer() : floats(matrix);
    for (int64_t h = shared * each; h < (shared + 1) * each; ++h) {
      float* const dq = parts > 1 ? as_floats(partial) + ((image * op.heads + h) * parts + part) * matrix : as_floats(own);
      g.add_head(h, dq);
      if (parts == 1) write_queries(image, h, dq);
    }
    g.write();
  });
  if (parts == 1) return;
  parallel_for(op.batch * op.heads, [&](int64_t i) {
    float* const sum = as_floats(partial) + i * parts * matrix;
    for (int64_t p = 1; p < parts; ++p)
      for (int64_t x = 0; x < matrix; ++x) sum[x] += sum[p * matrix + x];
    write_queries(i / op.heads, i % op.heads, sum);
  });
}

template <class Engine>
void run_with(const Attention& op) {
  op.use == Attention::Use::Forward ? forward<Engine>(op) : backward<Engine>(op);
}

}  // namespace

void run(const Attention& op) { op.dtype == DType::BF16&& has_bfloat_tiles() ? run_with<TileEngine>(op) : run_with<FloatEngine>(op); }

}  // namespace naru::cpu
