// Attention by its definition, head by head in float64. Used for work that a device has accepted and then can't run. (The cpu's own
// attention is products and a softmax: ops/nn/attention.h.)
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backends/cpu/exec/instructions.h"
#include "backends/cpu/exec/thread_pool.h"
#include "naru/dtype.h"

namespace naru::cpu {
namespace {

using ir::Attention;
using Index = int64_t;
using Matrix = std::vector<double>;  // row-major

double get(const void* p, DType type, Index i) {
  if (type == DType::F32) return static_cast<const float*>(p)[i];
  if (type == DType::F64) return static_cast<const double*>(p)[i];
  const uint16_t bits = static_cast<const uint16_t*>(p)[i];
  return type == DType::F16 ? half_to_float(bits) : bfloat_to_float(bits);
}
void put(void* p, DType type, Index i, double x) {
  if (type == DType::F32)
    static_cast<float*>(p)[i] = static_cast<float>(x);
  else if (type == DType::F64)
    static_cast<double*>(p)[i] = x;
  else
    static_cast<uint16_t*>(p)[i] = type == DType::F16 ? float_to_half(static_cast<float>(x)) : float_to_bfloat(static_cast<float>(x));
}

// The matrix of one head: positions by features.
struct Part {
  void* data;
  DType type;
  Index at, row, column;
  Part(const Attention::Array& a, DType t, Index image, Index head)
      : data(a.data), type(t), at(image * a.strides[0] + head * a.strides[1]), row(a.strides[2]), column(a.strides[3]) {}
  Matrix read(Index rows, Index columns) const {
    Matrix m(static_cast<size_t>(rows * columns));
    for (Index r = 0, i = 0; r < rows; ++r)
      for (Index c = 0; c < columns; ++c, ++i) m[static_cast<size_t>(i)] = get(data, type, at + r * row + c * column);
    return m;
  }
  void write(const Matrix& m, Index columns) const {
    for (size_t i = 0; i < m.size(); ++i)
      put(data, type, at + static_cast<Index>(i) / columns * row + static_cast<Index>(i) % columns * column, m[i]);
  }
};

double dot(const double* a, const double* b, Index n) {
  double sum = 0;
  for (Index i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}
void add(double* to, double factor, const double* from, Index n) {
  for (Index i = 0; i < n; ++i) to[i] += factor * from[i];
}

// One head of q, and the head of k and v that it uses.
struct Head {
  const Attention& op;
  Index image, head, shared;
  Matrix q, k, v;

  Head(const Attention& a, Index b, Index h)
      : op(a),
        image(b),
        head(h),
        shared(h / (a.heads / a.key_heads)),
        q(Part(a.q, a.dtype, b, h).read(a.queries, a.width)),
        k(Part(a.k, a.dtype, b, shared).read(a.keys, a.width)),
        v(Part(a.v, a.dtype, b, shared).read(a.keys, a.value_width)) {}

  Index seen(Index t) const { return op.causal ? std::min(op.keys, t + 1) : op.keys; }
  double score(Index t, Index s) const {
    const double x = op.scale * dot(&q[static_cast<size_t>(t * op.width)], &k[static_cast<size_t>(s * op.width)], op.width);
    if (!op.biased) return x;
    const auto& b = op.bias.strides;
    return x + get(op.bias.data, op.bias_type, image * b[0] + head * b[1] + t * b[2] + s * b[3]);
  }

  void forward() const {
    Matrix out(static_cast<size_t>(op.queries * op.value_width), 0.0), stats(static_cast<size_t>(op.queries));
    for (Index t = 0; t < op.queries; ++t) {
      Matrix w(static_cast<size_t>(seen(t)));
      for (Index s = 0; s < seen(t); ++s) w[static_cast<size_t>(s)] = score(t, s);
      const double most = *std::max_element(w.begin(), w.end());
      double sum = 0;
      for (double& x : w) sum += x = std::exp(x - most);
      for (Index s = 0; s < seen(t); ++s)
        add(&out[static_cast<size_t>(t * op.value_width)], w[static_cast<size_t>(s)] / sum, &v[static_cast<size_t>(s * op.value_width)],
            op.value_width);
      stats[static_cast<size_t>(t)] = most + std::log(sum);
    }
    Part(op.out, op.dtype, image, head).write(out, op.value_width);
    Part(op.stats, DType::F32, image, head).write(stats, 1);
  }

  // Writes q's gradient, and accumulates those of k and v.
  void backward(Matrix& dk, Matrix& dv) const {
    const Matrix out = Part(op.out, op.dtype, image, head).read(op.queries, op.value_width),
                 dout = Part(op.dout, op.dtype, image, head).read(op.queries, op.value_width),
                 stats = Part(op.stats, DType::F32, image, head).read(op.queries, 1);
    Matrix dq(q.size(), 0.0);
    for (Index t = 0; t < op.queries; ++t) {
      const auto row = static_cast<size_t>(t * op.value_width), from = static_cast<size_t>(t * op.width);
      const double sum = dot(&out[row], &dout[row], op.value_width);
      for (Index s = 0; s < seen(t); ++s) {
        const auto value = static_cast<size_t>(s * op.value_width), key = static_cast<size_t>(s * op.width);
        const double w = std::exp(score(t, s) - stats[static_cast<size_t>(t)]);
        const double ds = op.scale * w * (dot(&dout[row], &v[value], op.value_width) - sum);
        add(&dv[value], w, &dout[row], op.value_width);
        add(&dq[from], ds, &k[key], op.width), add(&dk[key], ds, &q[from], op.width);
      }
    }
    Part(op.dq, op.dtype, image, head).write(dq, op.width);
  }
};

}  // namespace

void run(const ir::Attention& op) {
  const Index each = op.heads / op.key_heads;
  parallel_for(op.batch * op.key_heads, [&](Index number) {
    const Index image = number / op.key_heads, shared = number % op.key_heads;
    Matrix dk(static_cast<size_t>(op.keys * op.width), 0.0), dv(static_cast<size_t>(op.keys * op.value_width), 0.0);
    for (Index h = shared * each; h < (shared + 1) * each; ++h) {
      const Head one(op, image, h);
      op.use == Attention::Use::Forward ? one.forward() : one.backward(dk, dv);
    }
    if (op.use == Attention::Use::Forward) return;
    Part(op.dk, op.dtype, image, shared).write(dk, op.width), Part(op.dv, op.dtype, image, shared).write(dv, op.value_width);
  });
}

}  // namespace naru::cpu
