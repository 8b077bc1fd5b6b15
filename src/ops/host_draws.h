// Random numbers as PyTorch's cpu makes them: a Mersenne twister read element by element, on the host. What is filled on another device gets a copy.
#pragma once

#include <functional>
#include <mutex>

#include "naru/random.h"
#include "naru/tensor.h"

namespace naru::ops {

// The lock of a generator, by its address: a mutex in each would cost every program the header.
std::mutex& lock_of(const Generator& generator) noexcept;

// Whether numbers are drawn so: set_random_algorithm(RandomAlgorithm::PyTorch).
bool draws_as_pytorch() noexcept;

// Exclusive use of a generator's twister; the default generator's for null. Throws where a capture is under way: a replay could not draw anew.
class Twister {
 public:
  explicit Twister(Generator* generator);
  uint32_t bits() { return twister_.next(); }
  uint64_t bits64() {
    const uint64_t high = twister_.next();
    return high << 32 | twister_.next();
  }
  float uniform24() { return static_cast<float>(bits() & 0xffffff) * 0x1p-24f; }
  double uniform53() { return static_cast<double>(bits64() & ((uint64_t{1} << 53) - 1)) * 0x1p-53; }
  double normal();

 private:
  std::unique_lock<std::mutex> lock_;
  MersenneTwister& twister_;
};

// A view of t, without history, whose dimensions stand in the order of its strides: PyTorch fills a tensor so.
Tensor in_memory_order(const Tensor& t);

// Each fills `out`, in row-major order, as PyTorch's function of that name fills a tensor of its type.
void host_uniform(const Tensor& out, double from, double to, Generator* generator);
// in_blocks: of at least 16 elements, and contiguous: 16 at a time, the last of which overlap.
void host_normal(const Tensor& out, double mean, double std, bool in_blocks, Generator* generator);
void host_bernoulli(const Tensor& out, double p, Generator* generator);
void host_bernoulli(const Tensor& out, const Tensor& p, Generator* generator);
void host_exponential(const Tensor& out, double rate, Generator* generator);
void host_cauchy(const Tensor& out, double median, double sigma, Generator* generator);
void host_log_normal(const Tensor& out, double mean, double std, Generator* generator);
void host_geometric(const Tensor& out, double p, Generator* generator);
// Whole numbers from + (0 ... range - 1); range 0 stands for 2^64.
void host_integers(const Tensor& out, int64_t from, uint64_t range, Generator* generator);
// All that the type tells apart, or up to where its whole numbers have gaps.
void host_any_integers(const Tensor& out, Generator* generator);
std::vector<int64_t> host_permutation(int64_t n, Generator* generator);
// Categories by weights (rows, categories) of F32 or F64, on cpu, with replacement.
Tensor host_categories(const Tensor& weights, int64_t samples, Generator* generator);

}  // namespace naru::ops
