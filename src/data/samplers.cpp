#include "naru/data/samplers.h"

#include <algorithm>
#include <numeric>

#include "naru/error.h"
#include "naru/ops.h"

namespace naru::data {
namespace {

const Options kNumbers(DType::I64, Device(DeviceType::Cpu));

void check_count(int64_t n) {
  if (n < 1) throw ValueError("num_samples should be a positive integer value, but got num_samples={}", n);
}

std::vector<int64_t> shuffled(int64_t n, Generator* generator) { return randperm(n, kNumbers, generator).to_ints(); }

}  // namespace

std::vector<int64_t> SequentialSampler::pass() const {
  std::vector<int64_t> order(static_cast<size_t>(size_));
  std::iota(order.begin(), order.end(), int64_t{0});
  return order;
}

RandomSampler::RandomSampler(int64_t size, bool replacement, std::optional<int64_t> num_samples, Generator* generator)
    : source_size_(size), replacement_(replacement), num_samples_(num_samples.value_or(size)), generator_(generator) {
  check_count(num_samples_);
  if (size < 1) throw ValueError("RandomSampler: wanted a data set of at least one sample, got {}", size);
}

std::vector<int64_t> RandomSampler::pass() const {
  // A separate generator, seeded from the default one, as in PyTorch.
  Generator own;
  const bool as_pytorch = random_algorithm() == RandomAlgorithm::PyTorch;
  if (!generator_) {
    const Tensor seed = empty({1}, kNumbers);
    as_pytorch ? random_(seed, {}, {}) : random_(seed, 0, int64_t{1} << 62);
    own.manual_seed(static_cast<uint64_t>(seed.item().to_int()));
  }
  Generator* const generator = generator_ ? generator_ : &own;
  constexpr int64_t kAtOnce = 65536;
  std::vector<int64_t> order;
  order.reserve(static_cast<size_t>(num_samples_));
  for (int64_t left = num_samples_; left > 0;) {
    const std::vector<int64_t> more = replacement_ ? randint(0, source_size_, {std::min(left, kAtOnce)}, kNumbers, generator).to_ints()
                                                   : shuffled(source_size_, generator);
    const int64_t n = std::min(left, static_cast<int64_t>(more.size()));
    order.insert(order.end(), more.begin(), more.begin() + n);
    left -= n;
  }
  // PyTorch also draws a permutation for the remainder, even if it is empty.
  if (as_pytorch && !replacement_ && num_samples_ % source_size_ == 0) shuffled(source_size_, generator);
  return order;
}

std::vector<int64_t> SubsetRandomSampler::pass() const {
  std::vector<int64_t> order = shuffled(size(), generator_);
  for (int64_t& i : order) i = numbers_[static_cast<size_t>(i)];
  return order;
}

WeightedRandomSampler::WeightedRandomSampler(const Tensor& weights, int64_t num_samples, bool replacement, Generator* generator)
    : num_samples_(num_samples), replacement_(replacement), generator_(generator) {
  check_count(num_samples);
  if (!weights.defined() || weights.dim() != 1)
    throw ValueError("weights should be a 1d sequence but given weights have shape {}", weights.defined() ? weights.sizes().str() : "none");
  weights_ = weights.detach().to(Device(DeviceType::Cpu), DType::F64, false, true);
}

std::vector<int64_t> WeightedRandomSampler::pass() const { return multinomial(weights_, num_samples_, replacement_, generator_).to_ints(); }

DistributedSampler::DistributedSampler(int64_t size, int64_t replicas, int64_t rank, bool shuffle, uint64_t seed, bool drop_last)
    : source_size_(size), replicas_(replicas), rank_(rank), shuffle_(shuffle), seed_(seed) {
  if (rank < 0 || rank >= replicas) throw ValueError("Invalid rank {}, rank should be in the interval [0, {}]", rank, replicas - 1);
  if (size < 0) throw ValueError("DistributedSampler: wanted a size of at least 0, got {}", size);
  num_samples_ = drop_last ? size / replicas : (size + replicas - 1) / replicas;
}

std::vector<int64_t> DistributedSampler::pass() const {
  Generator generator(seed_ + epoch_);
  const std::vector<int64_t> order = shuffle_ ? shuffled(source_size_, &generator) : SequentialSampler(source_size_).pass();
  std::vector<int64_t> mine(static_cast<size_t>(num_samples_));
  for (int64_t k = 0; k < num_samples_; ++k)
    mine[static_cast<size_t>(k)] = order[static_cast<size_t>((rank_ + k * replicas_) % source_size_)];
  return mine;
}

Sampler::~Sampler() = default;

SubsetRandomSampler::SubsetRandomSampler(std::vector<int64_t> numbers, Generator* generator)
    : numbers_(std::move(numbers)), generator_(generator) {}
int64_t SubsetRandomSampler::size() const { return static_cast<int64_t>(numbers_.size()); }

BatchSampler::BatchSampler(std::shared_ptr<const Sampler> sampler, int64_t batch_size, bool drop_last)
    : sampler_(std::move(sampler)), batch_size_(batch_size), drop_last_(drop_last) {
  if (batch_size < 1) throw ValueError("batch_size should be a positive integer value, but got batch_size={}", batch_size);
}

std::vector<std::vector<int64_t>> BatchSampler::pass() const {
  const std::vector<int64_t> order = sampler_->pass();
  std::vector<std::vector<int64_t>> batches;
  for (auto at = order.begin(); at != order.end();) {
    const auto n = std::min<std::ptrdiff_t>(order.end() - at, batch_size_);
    if (n < batch_size_ && drop_last_) break;
    batches.emplace_back(at, at + n);
    at += n;
  }
  return batches;
}

int64_t BatchSampler::size() const {
  const int64_t n = sampler_->size();
  return drop_last_ ? n / batch_size_ : (n + batch_size_ - 1) / batch_size_;
}

}  // namespace naru::data
