// Data sets and batches in C++, as torch.utils.data has them.
//
//   data::DataLoader loader(std::make_shared<data::TensorDataset>(images, labels), {.batch_size = 32, .shuffle =
//   true}); for (const data::Sample& batch : loader) train(batch[0], batch[1]);
#pragma once

#include <concepts>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "naru/random.h"
#include "naru/samplers.h"
#include "naru/standard.h"
#include "naru/tensor.h"

namespace naru::data {

// The tensors of one sample or of one batch: input, target ...
using Sample = std::vector<Tensor>;

// Samples by number.
class Dataset {
 public:
  virtual ~Dataset();
  virtual int64_t size() const = 0;
  virtual Sample get(int64_t i) const = 0;
  // The samples of a batch stacked along a new first dimension.
  virtual Sample batch(std::span<const int64_t> numbers) const;
  // All samples as one batch.
  Sample all() const;
};

// Sample i: the i-th rows of the tensors. Batches are gathered at once.
class TensorDataset : public Dataset {
 public:
  // ValueError unless there is a tensor and all have the same first size.
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

// Some of another data set's samples.
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

// Several data sets, one behind the other. ValueError for none.
class ConcatDataset : public Dataset {
 public:
  explicit ConcatDataset(std::vector<std::shared_ptr<const Dataset>> parts);
  int64_t size() const override;
  Sample get(int64_t i) const override;

 private:
  std::vector<std::shared_ptr<const Dataset>> parts_;
  std::vector<int64_t> ends_;
};

// Several data sets of one size side by side: a sample has the tensors of all. ValueError for none, and for different sizes.
class StackDataset : public Dataset {
 public:
  explicit StackDataset(std::vector<std::shared_ptr<const Dataset>> parts);
  int64_t size() const override;
  Sample get(int64_t i) const override;

 private:
  std::vector<std::shared_ptr<const Dataset>> parts_;
};

// Another data set's samples, each changed by a function when it is read.
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
// A transform of one of a sample's tensors (its input, unless another is named): tensor - mean over std, each a number or one for each channel of the
// first dimension.
MapDataset::Transform normalize(std::vector<double> mean, std::vector<double> std, size_t which = 0);

// The tensor of a file in the format of the handwritten digits (idx, of bytes): a dimension for each that the file names, uint8. RuntimeError for a file that is
// not there, is cut short, or holds something else.
Tensor read_idx(const std::string& path);

// The samples of a batch made into one: what a loader does unless it is given another function.
using Collate = std::function<Sample(const std::vector<Sample>&)>;
// Each tensor stacked along a new first dimension. RuntimeError for samples with different numbers of tensors.
Sample default_collate(const std::vector<Sample>& samples);

// The data set cut, in random order, into parts of these lengths. ValueError unless they add up to its size.
std::vector<std::shared_ptr<Subset>> random_split(std::shared_ptr<const Dataset> whole, const std::vector<int64_t>& lengths,
                                                  Generator* generator = nullptr);
// The same by shares that add up to 1 (ValueError otherwise); what is left by rounding goes to the first ones.
std::vector<std::shared_ptr<Subset>> split_by_shares(std::shared_ptr<const Dataset> whole, const std::vector<double>& shares,
                                                     Generator* generator = nullptr);
template <std::floating_point T>
std::vector<std::shared_ptr<Subset>> random_split(std::shared_ptr<const Dataset> whole, std::initializer_list<T> shares,
                                                  Generator* generator = nullptr) {
  return split_by_shares(std::move(whole), std::vector<double>(shares.begin(), shares.end()), generator);
}

struct LoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;            // a new order for each pass
  bool drop_last = false;          // leave out a last batch that is not full
  Generator* generator = nullptr;  // draws the order; must outlive the loader
  int num_workers = 0;             // threads that make batches ahead of time; the data set must bear being read by several
  int prefetch_factor = 2;         // batches each of them has under way
  bool pin_memory = false;         // tensors on cpu are copied to page-locked memory (by the workers, if there are any)
  std::shared_ptr<const Sampler> sampler = nullptr;  // the order, in place of shuffle
  Collate collate = nullptr;                         // makes a batch of its samples; default_collate
};

// Samples that come one after another, their number unknown.
class IterableDataset {
 public:
  virtual ~IterableDataset();
  // A new pass. Each call of the function gives a sample; an empty one ends the pass.
  virtual std::function<Sample()> begin() const = 0;
};

// Several such data sets, one behind the other.
class ChainDataset : public IterableDataset {
 public:
  explicit ChainDataset(std::vector<std::shared_ptr<const IterableDataset>> parts);
  std::function<Sample()> begin() const override;

 private:
  std::vector<std::shared_ptr<const IterableDataset>> parts_;
};

class Pass;  // data/pass.h

// Iterates over a data set in batches, in the order of the samples whatever the number of workers. An exception in a worker is thrown where
// its batch is asked for, an Error or std::runtime_error with the worker's number in its text; the pass then is over. A pass may be left early.
class DataLoader {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Sample;
    using difference_type = std::ptrdiff_t;
    using pointer = const Sample*;
    using reference = const Sample&;
    Iterator();  // the end
    const Sample& operator*() const { return batch_; }
    const Sample* operator->() const { return &batch_; }
    Iterator& operator++();
    void operator++(int) { ++*this; }
    bool operator==(const Iterator& other) const noexcept { return pass_ == other.pass_; }

   private:
    friend class DataLoader;
    std::shared_ptr<Pass> pass_;  // none: the end
    Sample batch_;
  };

  // ValueError for an empty data set, for a batch size below 1, and for a sampler together with shuffle.
  explicit DataLoader(std::shared_ptr<const Dataset> dataset, LoaderOptions options = {});
  // ValueError for shuffle and for a sampler. One worker at most reads the samples; batches are stacked.
  explicit DataLoader(std::shared_ptr<const IterableDataset> dataset, LoaderOptions options = {});
  int64_t size() const;  // batches in a pass; RuntimeError for an iterable data set
  const Dataset& dataset() const noexcept { return *dataset_; }
  // A new pass.
  Iterator begin() const;
  Iterator end() const noexcept;

 private:
  void check_options() const;
  std::shared_ptr<const Dataset> dataset_;
  std::shared_ptr<const IterableDataset> iterable_;
  std::shared_ptr<const Sampler> sampler_;  // none for an iterable data set
  LoaderOptions options_;
};

}  // namespace naru::data
