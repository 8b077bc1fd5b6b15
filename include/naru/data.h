// Datasets and data loaders in C++, after torch.utils.data.
//
//   data::DataLoader loader(std::make_shared<data::TensorDataset>(images, labels), {.batch_size = 32, .shuffle = true});
//   for (const data::Sample& batch : loader) train(batch[0], batch[1]);
#pragma once

#include <concepts>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "naru/data/samplers.h"
#include "naru/random.h"
#include "naru/standard.h"
#include "naru/tensor.h"

namespace naru::data {

// The tensors of one sample or one batch: input, target ...
using Sample = std::vector<Tensor>;

// Map-style dataset: samples by index.
class Dataset {
 public:
  virtual ~Dataset();
  virtual int64_t size() const = 0;
  virtual Sample get(int64_t i) const = 0;
  // The given samples, stacked along a new first dimension.
  virtual Sample batch(std::span<const int64_t> numbers) const;
  // All samples as one batch.
  Sample all() const;
};

// Sample i consists of row i of each tensor. A batch is one index_select per tensor.
class TensorDataset : public Dataset {
 public:
  // Throws ValueError if there is no tensor or the first sizes differ.
  explicit TensorDataset(std::vector<Tensor> tensors);
  template <class... T>
  explicit TensorDataset(const Tensor& first, const T&... others) : TensorDataset(std::vector<Tensor>{first, others...}) {}
  int64_t size() const override;
  Sample get(int64_t i) const override;
  Sample batch(std::span<const int64_t> numbers) const override;
  const std::vector<Tensor>& tensors() const noexcept { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
};

// A subset of another dataset, by index.
class Subset : public Dataset {
 public:
  Subset(std::shared_ptr<const Dataset> whole, std::vector<int64_t> numbers);
  int64_t size() const override;
  Sample get(int64_t i) const override;
  Sample batch(std::span<const int64_t> numbers) const override;
  const std::vector<int64_t>& numbers() const noexcept { return numbers_; }

 private:
  std::vector<int64_t> at(std::span<const int64_t> numbers) const;
  std::shared_ptr<const Dataset> whole_;
  std::vector<int64_t> numbers_;
};

// Concatenation of several datasets. Throws ValueError for an empty list.
class ConcatDataset : public Dataset {
 public:
  explicit ConcatDataset(std::vector<std::shared_ptr<const Dataset>> parts);
  int64_t size() const override;
  Sample get(int64_t i) const override;

 private:
  std::vector<std::shared_ptr<const Dataset>> parts_;
  std::vector<int64_t> ends_;
};

// Zips datasets of the same size: a sample has the tensors of all of them. Throws ValueError for an empty list or different sizes.
class StackDataset : public Dataset {
 public:
  explicit StackDataset(std::vector<std::shared_ptr<const Dataset>> parts);
  int64_t size() const override;
  Sample get(int64_t i) const override;

 private:
  std::vector<std::shared_ptr<const Dataset>> parts_;
};

// Another dataset with a function applied to each sample when it is read.
class MapDataset : public Dataset {
 public:
  using Transform = std::function<Sample(Sample)>;
  MapDataset(std::shared_ptr<const Dataset> whole, Transform transform);
  int64_t size() const override;
  Sample get(int64_t i) const override;

 private:
  std::shared_ptr<const Dataset> whole_;
  Transform transform_;
};
// A transform that normalizes one tensor of a sample (index `which`, by default the input): (tensor - mean) / std. mean and std have one
// value, or one for each channel (first dimension).
MapDataset::Transform normalize(std::vector<double> mean, std::vector<double> std, size_t which = 0);

// Reads a file in the IDX format of MNIST, with uint8 elements; the shape is the file's. Throws RuntimeError if the file is missing,
// truncated, or something else.
Tensor read_idx(const std::string& path);

// Merges samples into a batch. The loader's default is default_collate.
using Collate = std::function<Sample(const std::vector<Sample>&)>;
// Stacks each tensor along a new first dimension. Throws RuntimeError if the samples have different numbers of tensors.
Sample default_collate(const std::vector<Sample>& samples);

// Splits a dataset randomly into subsets of these lengths. Throws ValueError unless they add up to its size.
std::vector<std::shared_ptr<Subset>> random_split(std::shared_ptr<const Dataset> whole, const std::vector<int64_t>& lengths,
                                                  Generator* generator = nullptr);
// The same by fractions that add up to 1 (ValueError otherwise); the remainder of rounding goes to the first subsets.
std::vector<std::shared_ptr<Subset>> split_by_shares(std::shared_ptr<const Dataset> whole, const std::vector<double>& shares,
                                                     Generator* generator = nullptr);
template <std::floating_point T>
std::vector<std::shared_ptr<Subset>> random_split(std::shared_ptr<const Dataset> whole, std::initializer_list<T> shares,
                                                  Generator* generator = nullptr) {
  return split_by_shares(std::move(whole), std::vector<double>(shares.begin(), shares.end()), generator);
}

struct LoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;                              // reshuffled at each epoch
  bool drop_last = false;                            // drop an incomplete last batch
  Generator* generator = nullptr;                    // draws the order; must outlive the loader
  int num_workers = 0;                               // threads that prepare batches ahead of time; they call the dataset concurrently
  int prefetch_factor = 2;                           // batches that each worker prepares ahead
  bool pin_memory = false;                           // copy cpu tensors to page-locked memory (in the workers, if any)
  std::shared_ptr<const Sampler> sampler = nullptr;  // determines the order instead of shuffle
  Collate collate = nullptr;                         // merges samples into a batch; null: default_collate
};

// Iterable-style dataset: a stream of samples of unknown length.
class IterableDataset {
 public:
  virtual ~IterableDataset();
  // Starts an iteration. Each call of the returned function gives the next sample; an empty sample ends the iteration.
  virtual std::function<Sample()> begin() const = 0;
};

// Concatenation of iterable datasets.
class ChainDataset : public IterableDataset {
 public:
  explicit ChainDataset(std::vector<std::shared_ptr<const IterableDataset>> parts);
  std::function<Sample()> begin() const override;

 private:
  std::vector<std::shared_ptr<const IterableDataset>> parts_;
};

class Pass;  // data/pass.h

// Iterates over a dataset in batches. The order of samples does not depend on the number of workers. An exception in a worker is rethrown
// where its batch is requested, as an Error or std::runtime_error with the worker's id in its text, and ends the iteration. An iteration
// may be abandoned early.
class DataLoader {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Sample;
    using difference_type = std::ptrdiff_t;
    using pointer = const Sample*;
    using reference = const Sample&;
    Iterator();  // the end iterator
    const Sample& operator*() const { return batch_; }
    const Sample* operator->() const { return &batch_; }
    Iterator& operator++();
    void operator++(int) { ++*this; }
    bool operator==(const Iterator& other) const noexcept { return pass_ == other.pass_; }

   private:
    friend class DataLoader;
    std::shared_ptr<Pass> pass_;  // null: the end iterator
    Sample batch_;
  };

  // Throws ValueError for an empty dataset, a batch size below 1, or both sampler and shuffle.
  explicit DataLoader(std::shared_ptr<const Dataset> dataset, LoaderOptions options = {});
  // Throws ValueError for shuffle or a sampler. At most one worker reads the samples; batches are stacked.
  explicit DataLoader(std::shared_ptr<const IterableDataset> dataset, LoaderOptions options = {});
  int64_t size() const;  // batches per iteration; throws RuntimeError for an iterable dataset
  const Dataset& dataset() const noexcept { return *dataset_; }
  // Starts a new iteration.
  Iterator begin() const;
  Iterator end() const noexcept;

 private:
  void check_options() const;
  std::shared_ptr<const Dataset> dataset_;
  std::shared_ptr<const IterableDataset> iterable_;
  std::shared_ptr<const Sampler> sampler_;  // null for an iterable dataset
  LoaderOptions options_;
};

}  // namespace naru::data
