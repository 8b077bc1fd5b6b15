// Samplers: the order in which a dataset's samples are read, after torch.utils.data. Equal seeds give equal orders in C++ and Python.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "naru/random.h"
#include "naru/standard.h"
#include "naru/tensor.h"

namespace naru::data {

// Generators are not owned and must outlive the sampler. Without one, samplers use the default generator.
class Sampler {
 public:
  virtual ~Sampler();
  // The indices for a new epoch; random samplers return a new order each time.
  virtual std::vector<int64_t> pass() const = 0;
  virtual int64_t size() const = 0;  // number of indices per epoch
};

// 0 to size - 1.
class SequentialSampler : public Sampler {
 public:
  explicit SequentialSampler(int64_t size) : size_(size) {}
  std::vector<int64_t> pass() const override;
  int64_t size() const override { return size_; }

 private:
  int64_t size_;
};

// 0 to size - 1 in random order, or drawn with replacement; num_samples of them (default: size), reshuffling when all have been used.
// Throws ValueError if num_samples is below 1.
class RandomSampler : public Sampler {
 public:
  explicit RandomSampler(int64_t size, bool replacement = false, std::optional<int64_t> num_samples = {}, Generator* generator = nullptr);
  std::vector<int64_t> pass() const override;
  int64_t size() const override { return num_samples_; }

 private:
  int64_t source_size_;
  bool replacement_;
  int64_t num_samples_;
  Generator* generator_;
};

// The given indices in random order.
class SubsetRandomSampler : public Sampler {
 public:
  explicit SubsetRandomSampler(std::vector<int64_t> numbers, Generator* generator = nullptr);
  std::vector<int64_t> pass() const override;
  int64_t size() const override;

 private:
  std::vector<int64_t> numbers_;
  Generator* generator_;
};

// Draws from 0 to n - 1 with probabilities proportional to `weights`, of shape (n). Throws ValueError for other shapes and for num_samples
// below 1.
class WeightedRandomSampler : public Sampler {
 public:
  WeightedRandomSampler(const Tensor& weights, int64_t num_samples, bool replacement = true, Generator* generator = nullptr);
  std::vector<int64_t> pass() const override;
  int64_t size() const override { return num_samples_; }

 private:
  Tensor weights_;
  int64_t num_samples_;
  bool replacement_;
  Generator* generator_;
};

// Groups another sampler's indices into batches of batch_size. The last batch may be smaller; drop_last omits it then. Throws ValueError
// for a batch_size below 1.
class BatchSampler {
 public:
  BatchSampler(std::shared_ptr<const Sampler> sampler, int64_t batch_size, bool drop_last = false);
  std::vector<std::vector<int64_t>> pass() const;
  int64_t size() const;  // batches per epoch

 private:
  std::shared_ptr<const Sampler> sampler_;
  int64_t batch_size_;
  bool drop_last_;
};

// Every `replicas`-th index, starting at `rank`, so that processes with otherwise equal arguments share a dataset. All ranks get the same
// number: without drop_last, the first indices are repeated at the end; with it, some are omitted. The random order depends only on seed
// and epoch. Throws ValueError unless 0 <= rank < replicas.
class DistributedSampler : public Sampler {
 public:
  DistributedSampler(int64_t size, int64_t replicas, int64_t rank, bool shuffle = true, uint64_t seed = 0, bool drop_last = false);
  std::vector<int64_t> pass() const override;
  int64_t size() const override { return num_samples_; }
  void set_epoch(uint64_t epoch) noexcept { epoch_ = epoch; }

 private:
  int64_t source_size_, replicas_, rank_, num_samples_;
  bool shuffle_;
  uint64_t seed_, epoch_ = 0;
};

}  // namespace naru::data
