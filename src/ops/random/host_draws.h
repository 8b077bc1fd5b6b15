// Random numbers bit for bit as PyTorch's cpu generator makes them: a Mersenne twister, read element by element on the host. Tensors on other devices
// get a copy.
#pragma once

#include <functional>
#include <mutex>

#include "naru/error.h"
#include "naru/random.h"
#include "naru/tensor.h"

namespace naru::ops {

// While set, operators that would draw random numbers on this thread throw RuntimeError with this text (vmap, where each entry may want its own).
extern thread_local constinit const char* draws_refused;
inline void require_draws() {
  if (draws_refused) [[unlikely]]
    throw RuntimeError("{}", draws_refused);
}

// The lock of a generator, found by its address: a mutex in each Generator would put <mutex> into every program that includes its header.
std::mutex& lock_of(const Generator& generator) noexcept;

// True if random operators draw this way: set_random_algorithm(RandomAlgorithm::PyTorch).
bool draws_as_pytorch() noexcept;

// Exclusive use of a generator's twister (null: the default generator). Throws during a capture, because a replay cannot draw new numbers.
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

// A view of t without history whose dimensions are permuted into the order of its strides: PyTorch fills tensors in memory order.
Tensor in_memory_order(const Tensor& t);

// Each function fills `out` in row-major order, as PyTorch's function of that name fills a tensor of its dtype.
void host_uniform(const Tensor& out, double from, double to, Generator* generator);
// in_blocks: for contiguous tensors of at least 16 elements, draw 16 at a time; the last two blocks overlap.
void host_normal(const Tensor& out, double mean, double std, bool in_blocks, Generator* generator);
void host_bernoulli(const Tensor& out, double p, Generator* generator);
void host_bernoulli(const Tensor& out, const Tensor& p, Generator* generator);
void host_exponential(const Tensor& out, double rate, Generator* generator);
void host_cauchy(const Tensor& out, double median, double sigma, Generator* generator);
void host_log_normal(const Tensor& out, double mean, double std, Generator* generator);
void host_geometric(const Tensor& out, double p, Generator* generator);
// Integers from + (0 ... range - 1); range 0 means 2^64.
void host_integers(const Tensor& out, int64_t from, uint64_t range, Generator* generator);
// random_() without bounds: the whole nonnegative range of the dtype; for floating-point types up to 2^digits, above which they lack integers.
void host_any_integers(const Tensor& out, Generator* generator);
void host_permutation(int64_t* order, int64_t n, Generator* generator);
// Categorical samples with replacement. weights: (rows, categories), F32 or F64, on the cpu.
Tensor host_categories(const Tensor& weights, int64_t samples, Generator* generator);

}  // namespace naru::ops
