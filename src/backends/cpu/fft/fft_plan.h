// FftPlan: the tables and passes for FFTs of one length. The order of operations depends on the length alone, and the tables are computed
// with exact IEEE operations, so results have the same bits on every processor and in every batch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace naru::cpu {

// Cosine and sine of 2 pi k / n for 0 <= k < n, accurate to about one ulp.
struct Unit {
  double cosine, sine;
};
Unit unit_root(int64_t k, int64_t n) noexcept;

// Values of `lanes` transforms side by side: element k of lane l is at [k * lanes + l]; real and imaginary parts are in separate arrays.
template <class T>
struct Lanes {
  T *re, *im;
};

template <class T>
class FftPlan {
 public:
  explicit FftPlan(int64_t n);
  // A cached plan. The process keeps the plans of recently used lengths, up to a limit on the memory of their tables.
  static std::shared_ptr<const FftPlan> of(int64_t n);

  int64_t size() const { return n_; }
  size_t bytes() const { return (table_.size() + roots_.size() + chirp_.size() + filter_.size() + half_turns_.size()) * sizeof(T); }
  // Values per lane that run() needs in each of its four arrays.
  int64_t room() const { return n_ < rounded_ ? rounded_ : n_; }
  // Transforms x, forward and unscaled. `other` is work space. Returns the one of the two that holds the result.
  Lanes<T> run(Lanes<T> x, Lanes<T> other, int64_t lanes) const;
  double nanoseconds() const;  // estimated time per lane
  // exp(-pi i k / size) for 0 <= k <= size, as interleaved pairs: the factors that turn this transform into that of twice as many real
  // values.
  const T* half_turns() const { return half_turns_.data(); }

 private:
  // A pass of Stockham's algorithm: splits transforms of r * m values into r of m and writes results in their final order, without bit
  // reversal.
  struct Pass {
    int64_t radix, m, stride;
    size_t table;  // offset of its factors: for each p < m, j = 1 ... radix - 1
  };
  void make_passes();
  void make_chirp();
  Lanes<T> run_passes(Lanes<T> x, Lanes<T> other, int64_t lanes) const;
  Lanes<T> run_chirp(Lanes<T> x, Lanes<T> other, int64_t lanes) const;

  int64_t n_, rounded_ = 0;  // rounded_: padded length of Bluestein's algorithm, for lengths with large prime factors
  std::vector<Pass> passes_;
  std::vector<T> table_;  // interleaved pairs
  std::vector<T> roots_;  // interleaved pairs: the roots of each prime radix without special code, one after another
  std::shared_ptr<const FftPlan> inner_;
  std::vector<T> chirp_, filter_;  // interleaved pairs
  std::vector<T> half_turns_;
};

}  // namespace naru::cpu
