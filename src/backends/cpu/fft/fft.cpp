// Fourier transforms: one thread transforms as many rows at once as fill the vector registers.
#include <algorithm>
#include <vector>

#include "backends/cpu/exec/buffer.h"
#include "backends/cpu/exec/instructions.h"
#include "backends/cpu/exec/layout.h"
#include "backends/cpu/exec/transpose.h"
#include "backends/cpu/fft/fft_passes.h"
#include "backends/cpu/fft/fft_plan.h"

namespace naru::cpu {
namespace {

using ir::Fft;

template <class T>
Lanes<const T> read(Lanes<T> x) {
  return {x.re, x.im};
}

// Start addresses of a block's rows, the step between values of a row, and the pitch between rows, in reals.
template <class T>
struct Rows {
  std::vector<T*> at;
  int64_t step;
  int64_t pitch(int64_t lanes) const {
    const int64_t first = lanes > 1 ? at[1] - at[0] : 0;
    for (int64_t l = 2; l < lanes; ++l)
      if (at[static_cast<size_t>(l)] - at[static_cast<size_t>(l) - 1] != first) return 0;
    return first;
  }
};

// Copies a block of rows to and from the arrays that plans work on. The path taken does not change a row's bits.
template <class T>
class Block {
 public:
  Block(int64_t lanes, T* spare) : lanes_(lanes), spare_(spare) {}
  static constexpr int64_t kPiece = 64;  // values of a row that are transposed at once; they fit into the L1 cache

  void load(const Rows<T>& rows, int64_t count, Lanes<T> to) const {
    const int64_t pitch = rows.pitch(lanes_);
    if (lanes_ == 1 && rows.step == 2) return fft_split(count, rows.at[0], to);
    if (pitch == 2) {
      for (int64_t k = 0; k < count; ++k) fft_split(lanes_, rows.at[0] + k * rows.step, {to.re + k * lanes_, to.im + k * lanes_});
      return;
    }
    if (rows.step != 2 || pitch <= 0) return load_any(rows, count, to);
    for (int64_t first = 0; first < count; first += kPiece) {
      const int64_t piece = std::min(kPiece, count - first), line = lanes_ * static_cast<int64_t>(sizeof(T));
      transpose(reinterpret_cast<const char*>(rows.at[0] + 2 * first), pitch * static_cast<int64_t>(sizeof(T)), sizeof(T), 2 * piece,
                lanes_, reinterpret_cast<char*>(spare_), line);
      for (int64_t k = 0; k < piece; ++k) {
        std::copy_n(spare_ + 2 * k * lanes_, lanes_, to.re + (first + k) * lanes_);
        std::copy_n(spare_ + (2 * k + 1) * lanes_, lanes_, to.im + (first + k) * lanes_);
      }
    }
  }

  // Also multiplies each part by its factor.
  void store(Lanes<const T> from, int64_t count, T re, T im, const Rows<T>& rows) const {
    const int64_t pitch = rows.pitch(lanes_);
    if (lanes_ == 1 && rows.step == 2) return fft_join(count, from, re, im, rows.at[0]);
    if (pitch == 2) {
      for (int64_t k = 0; k < count; ++k)
        fft_join(lanes_, {from.re + k * lanes_, from.im + k * lanes_}, re, im, rows.at[0] + k * rows.step);
      return;
    }
    if (rows.step != 2 || pitch <= 0) return store_any(from, count, re, im, rows);
    for (int64_t first = 0; first < count; first += kPiece) {
      const int64_t piece = std::min(kPiece, count - first), line = lanes_ * static_cast<int64_t>(sizeof(T));
      for (int64_t k = 0; k < piece; ++k)
        for (int64_t l = 0; l < lanes_; ++l) {
          spare_[2 * k * lanes_ + l] = from.re[(first + k) * lanes_ + l] * re;
          spare_[(2 * k + 1) * lanes_ + l] = from.im[(first + k) * lanes_ + l] * im;
        }
      transpose(reinterpret_cast<const char*>(spare_), line, sizeof(T), lanes_, 2 * piece, reinterpret_cast<char*>(rows.at[0] + 2 * first),
                pitch * static_cast<int64_t>(sizeof(T)));
    }
  }

  // Calls f(index in the row, row, index in the arrays). Iterates over a few indices of all rows at a time, for locality on both sides.
  template <class F>
  void each(int64_t count, F f) const {
    constexpr int64_t kFew = 16;
    for (int64_t first = 0; first < count; first += kFew)
      for (int64_t l = 0; l < lanes_; ++l)
        for (int64_t k = first; k < std::min(first + kFew, count); ++k) f(k, static_cast<size_t>(l), k * lanes_ + l);
  }

 private:
  void load_any(const Rows<T>& rows, int64_t count, Lanes<T> to) const {
    each(count, [&](int64_t k, size_t l, int64_t i) {
      const T* const p = rows.at[l] + k * rows.step;
      to.re[i] = p[0], to.im[i] = p[1];
    });
  }
  void store_any(Lanes<const T> from, int64_t count, T re, T im, const Rows<T>& rows) const {
    each(count, [&](int64_t k, size_t l, int64_t i) {
      T* const p = rows.at[l] + k * rows.step;
      p[0] = from.re[i] * re, p[1] = from.im[i] * im;
    });
  }

  int64_t lanes_;
  T* spare_;
};

// One block: from the input's rows through the plan to the result's rows. Exchanging real and imaginary parts makes a forward transform an
// inverse one.
template <class T>
void transform(const Fft& op, const FftPlan<T>& plan, const Block<T>& block, int64_t lanes, Lanes<T> x, Lanes<T> other, const Rows<T>& in,
               const Rows<T>& out) {
  const int64_t line = plan.size();
  const T scale = static_cast<T>(op.scale), sign = op.inverse ? T{-1} : T{1};
  const auto exchanged = [](Lanes<T> y, bool yes) { return yes ? Lanes<T>{y.im, y.re} : y; };
  const auto rest = [&](Lanes<T> y) { return y.re == x.re ? other : x; };
  const bool packed = op.kind != Fft::Kind::Complex && line != op.n;  // two real values are packed as one complex value
  if (op.kind == Fft::Kind::Complex) {
    block.load(in, line, exchanged(x, op.inverse));
    block.store(read(exchanged(plan.run(x, other, lanes), op.inverse)), line, scale, scale, out);
  } else if (op.kind == Fft::Kind::RealToHalf) {
    if (packed && in.step == 1) {
      Rows<T> pairs{in.at, 2};
      block.load(pairs, line, x);
    } else {
      block.each(line, [&](int64_t k, size_t l, int64_t i) {
        const T* const p = in.at[l] + k * in.step * (packed ? 2 : 1);
        x.re[i] = p[0], x.im[i] = packed ? p[in.step] : T{0};
      });
    }
    Lanes<T> y = plan.run(x, other, lanes);
    if (packed) {
      const Lanes<T> half = rest(y);
      fft_unpack(line, lanes, read(y), plan.half_turns(), half);
      y = half;
    }
    block.store(read(y), op.made(), scale, scale * sign, out);
  } else {
    block.load(in, op.given(), other);
    if (packed) {
      fft_pack(line, lanes, read(other), plan.half_turns(), -sign, x);
    } else {
      // The second half are the conjugates of the first, in reverse order.
      block.each(line, [&](int64_t k, size_t l, int64_t i) {
        const bool second = 2 * k > op.n;
        const int64_t from = (second ? op.n - k : k) * lanes + static_cast<int64_t>(l);
        x.im[i] = other.re[from], x.re[i] = k == 0 ? T{0} : other.im[from] * (second ? sign : -sign);
      });
    }
    const Lanes<T> y = exchanged(plan.run(x, other, lanes), true);
    if (packed && out.step == 1) {
      Rows<T> pairs{out.at, 2};
      return block.store(read(y), line, scale, scale, pairs);
    }
    block.each(line, [&](int64_t k, size_t l, int64_t i) {
      T* const p = out.at[l] + k * out.step * (packed ? 2 : 1);
      p[0] = y.re[i] * scale;
      if (packed) p[out.step] = y.im[i] * scale;
    });
  }
}

template <class T>
void run_typed(const Fft& op, const Space& space) {
  const int64_t rows = space.numel(), line = op.kind != Fft::Kind::Complex && op.n % 2 == 0 ? op.n / 2 : op.n;
  const auto plan = FftPlan<T>::of(line);
  // Rows per block: a vector's worth, fewer if rows are long. It does not change how a row is computed.
  constexpr int64_t kVector = 64 / sizeof(T), kCache = 1 << 20, kSpare = 2 * Block<T>::kPiece * kVector;
  const int64_t room = plan->room() + 1, fitting = kCache / (4 * static_cast<int64_t>(sizeof(T)) * room);
  const int64_t most = std::clamp<int64_t>(fitting / 4 * 4, 4, kVector);
  const double each = plan->nanoseconds() + static_cast<double>(op.n);
  split((rows + most - 1) / most, each * static_cast<double>(rows), 1, [&](int64_t begin, int64_t end) {
    const int64_t width = std::min(most, rows), part = (room * width + 15) / 16 * 16;
    const Buffer buffer = make_buffer({4 * part + kSpare}, sizeof(T));
    T* const memory = reinterpret_cast<T*>(buffer.get());
    const Lanes<T> first{memory, memory + part}, second{memory + 2 * part, memory + 3 * part};
    Rows<T> in{std::vector<T*>(static_cast<size_t>(width)), op.in.step}, out{std::vector<T*>(static_cast<size_t>(width)), op.out.step};
    Walk walk(space, space.rank);
    walk.seek(begin * most);
    for (int64_t b = begin; b < end; ++b) {
      const int64_t lanes = std::min(most, rows - b * most);
      for (size_t l = 0; l < static_cast<size_t>(lanes); ++l, walk.next())
        in.at[l] = reinterpret_cast<T*>(walk.at(0)), out.at[l] = reinterpret_cast<T*>(walk.at(1));
      transform(op, *plan, Block<T>(lanes, memory + 4 * part), lanes, first, second, in, out);
    }
  });
}

}  // namespace

void run(const ir::Fft& op) {
  Space space(op.shape);
  space.add({op.in.data, op.dtype, op.in.strides});
  space.add({op.out.data, op.dtype, op.out.strides});
  space.drop_ones();
  space.merge();
  if (space.numel() == 0) return;
  op.dtype == DType::F32 ? run_typed<float>(op, space) : run_typed<double>(op, space);
}

}  // namespace naru::cpu
