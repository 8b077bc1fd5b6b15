// FftPlan: what Fourier transforms of a length are computed with. The order of operations depends on the length alone, and tables are made of exact IEEE
// operations, so that results have the same bits on every processor, whatever else is transformed beside.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace naru::host {

// The cosine and the sine of 2 pi k / n, 0 <= k < n, to the last bit or so.
struct Unit {
  double cosine, sine;
};
Unit unit_root(int64_t k, int64_t n) noexcept;

// Numbers for `lanes` transforms side by side: element k of lane l at [k * lanes + l], real and imaginary parts apart.
template <class T>
struct Lanes {
  T *re, *im;
};

template <class T>
class FftPlan {
 public:
  explicit FftPlan(int64_t n);
  // One that is kept: by the process, for lengths used lately, as far as their tables do not take too much memory.
  static std::shared_ptr<const FftPlan> of(int64_t n);

  int64_t size() const { return n_; }
  size_t bytes() const { return (table_.size() + roots_.size() + chirp_.size() + filter_.size() + half_turns_.size()) * sizeof(T); }
  // How many numbers run() wants for each lane in each of its four arrays.
  int64_t room() const { return n_ < rounded_ ? rounded_ : n_; }
  // Transforms x, forwards and without a factor. `other` is room to work in; the one of both where the result is comes back.
  Lanes<T> run(Lanes<T> x, Lanes<T> other, int64_t lanes) const;
  double nanoseconds() const;  // for each lane, about
  // exp(-pi i k / size) for 0 <= k <= size, as pairs: what makes the transform of twice as many real numbers of this one.
  const T* half_turns() const { return half_turns_.data(); }

 private:
  // Stockham's passes: each splits transforms of r * m numbers into r of m, whose results go where they belong at once.
  struct Pass {
    int64_t radix, m, stride;
    size_t table;  // where its factors begin: for each p < m, of j = 1 ... radix - 1
  };
  void make_passes();
  void make_chirp();
  Lanes<T> run_passes(Lanes<T> x, Lanes<T> other, int64_t lanes) const;
  Lanes<T> run_chirp(Lanes<T> x, Lanes<T> other, int64_t lanes) const;

  int64_t n_, rounded_ = 0;  // rounded_: the length that Bluestein's way takes, for lengths with large prime factors
  std::vector<Pass> passes_;
  std::vector<T> table_;  // pairs
  std::vector<T> roots_;  // pairs: of a prime radix that has no code of its own, one after another
  std::shared_ptr<const FftPlan> inner_;
  std::vector<T> chirp_, filter_;  // pairs
  std::vector<T> half_turns_;
};

}  // namespace naru::host
