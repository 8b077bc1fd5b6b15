// The order in which a data set's samples are taken, as torch.utils.data has it: equal seeds give equal orders in C++ and Python.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "naru/random.h"
#include "naru/standard.h"
#include "naru/tensor.h"

namespace naru::data {

// Generators are not owned: they must outlive the sampler. Without one, the default generator is drawn from.
class Sampler {
 public:
  virtual ~Sampler();
  // The numbers of a new pass; a random sampler gives others each time.
  virtual std::vector<int64_t> pass() const = 0;
  virtual int64_t size() const = 0;  // numbers in a pass
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

// 0 to size - 1 in random order, or drawn with replacement; num_samples of them (size, if not given), beginning anew where they are used up.
// ValueError unless that is at least 1.
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

// The given numbers in random order.
class SubsetRandomSampler : public Sampler {
 public:
  explicit SubsetRandomSampler(std::vector<int64_t> numbers, Generator* generator = nullptr);
  std::vector<int64_t> pass() const override;
  int64_t size() const override;

 private:
  std::vector<int64_t> numbers_;
  Generator* generator_;
};

// 0 to the number of weights - 1, drawn with probabilities in proportion to `weights`, of shape [n]. ValueError for other shapes and
// for num_samples below 1.
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

// The numbers of another sampler in batches: of size batch_size, but the last (which drop_last leaves out, where it is not full). ValueError for a
// batch_size below 1.
class BatchSampler {
 public:
  BatchSampler(std::shared_ptr<const Sampler> sampler, int64_t batch_size, bool drop_last = false);
  std::vector<std::vector<int64_t>> pass() const;
  int64_t size() const;  // batches in a pass

 private:
  std::shared_ptr<const Sampler> sampler_;
  int64_t batch_size_;
  bool drop_last_;
};

// Every `replicas`-th number, from the `rank`-th on: processes with equal arguments share a data set. All get equally many: without
// drop_last the first numbers come again at the end, with it some are left out. The random order follows from seed and epoch alone.
// ValueError unless 0 <= rank < replicas.
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
