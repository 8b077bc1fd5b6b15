// libtorch's datasets, transforms, samplers and data loaders. Included by naru/torch.h.
#pragma once

#include <deque>
#include <future>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "naru/standard.h"
#include "naru/torch/tensor.h"

namespace torch::data {

// A sample or a batch.
template <class Data = Tensor, class Target = Tensor>
struct Example {
  using DataType = Data;
  using TargetType = Target;
  Example() = default;
  Example(Data d, Target t) : data(std::move(d)), target(std::move(t)) {}
  Data data;
  Target target;
};
struct NoTarget {};
using TensorExample = Example<Tensor, NoTarget>;

namespace transforms {

// Collates examples into a batch: stacks tensors along a new first dimension.
template <class E = Example<>>
struct Stack {
  E operator()(std::vector<E> examples) const {
    std::vector<Tensor> data, target;
    for (E& e : examples) {
      data.push_back(std::move(e.data));
      if constexpr (std::is_same_v<typename E::TargetType, Tensor>) target.push_back(std::move(e.target));
    }
    if constexpr (std::is_same_v<typename E::TargetType, Tensor>)
      return E(stack(data), stack(target));
    else
      return E(stack(data), {});
  }
};
// (data - mean) / std, with one value or one per channel (first dimension).
template <class Target = Tensor>
struct Normalize {
  Normalize(std::vector<double> mean, std::vector<double> std) : f_(naru::data::normalize(std::move(mean), std::move(std))) {}
  Normalize(double mean, double std) : Normalize(std::vector<double>{mean}, std::vector<double>{std}) {}
  Example<Tensor, Target> operator()(Example<Tensor, Target> e) const {
    e.data = f_({std::move(e.data)})[0];
    return e;
  }

 private:
  naru::data::MapDataset::Transform f_;
};
// Applies any function to an example.
template <class In, class Out = In>
struct Lambda {
  Lambda(std::function<Out(In)> f) : f_(std::move(f)) {}
  Out operator()(In e) const { return f_(std::move(e)); }

 private:
  std::function<Out(In)> f_;
};
template <class Target = Tensor>
struct TensorLambda {
  TensorLambda(std::function<Tensor(Tensor)> f) : f_(std::move(f)) {}
  Example<Tensor, Target> operator()(Example<Tensor, Target> e) const {
    e.data = f_(std::move(e.data));
    return e;
  }

 private:
  std::function<Tensor(Tensor)> f_;
};

}  // namespace transforms

namespace datasets {

// A dataset with a transform applied to each example, or a collation applied to batches (a function of a vector of examples).
template <class D, class T>
class MapDataset;

// Base class of datasets: `Self` defines get(index) and size().
template <class Self, class E = Example<>>
class Dataset {
 public:
  using ExampleType = E;
  using BatchType = std::vector<E>;
  virtual ~Dataset() = default;
  virtual E get(size_t index) = 0;
  virtual std::optional<size_t> size() const = 0;
  std::vector<E> get_batch(const std::vector<int64_t>& numbers) {
    std::vector<E> list;
    for (const int64_t i : numbers) list.push_back(get(static_cast<size_t>(i)));
    return list;
  }
  template <class T>
  MapDataset<Self, T> map(T transform) && {
    return MapDataset<Self, T>(std::move(static_cast<Self&>(*this)), std::move(transform));
  }
  template <class T>
  MapDataset<Self, T> map(T transform) & {
    return MapDataset<Self, T>(static_cast<Self&>(*this), std::move(transform));
  }
};

template <class D, class T>
class MapDataset {
 public:
  static constexpr bool kPerExample =
      std::is_same_v<typename D::BatchType, std::vector<typename D::ExampleType>> && std::is_invocable_v<const T&, typename D::ExampleType>;
  template <bool PerExample>
  static auto example_of() {
    if constexpr (PerExample)
      return std::type_identity<std::invoke_result_t<const T&, typename D::ExampleType>>();
    else
      return std::type_identity<typename D::ExampleType>();
  }
  template <bool PerExample>
  static auto batch_of() {
    if constexpr (PerExample)
      return std::type_identity<std::vector<std::invoke_result_t<const T&, typename D::ExampleType>>>();
    else
      return std::type_identity<std::invoke_result_t<const T&, typename D::BatchType>>();
  }
  using ExampleType = typename decltype(example_of<kPerExample>())::type;
  using BatchType = typename decltype(batch_of<kPerExample>())::type;

  MapDataset(D source, T transform) : source_(std::move(source)), transform_(std::move(transform)) {}
  std::optional<size_t> size() const { return source_.size(); }
  BatchType get_batch(const std::vector<int64_t>& numbers) {
    auto batch = source_.get_batch(numbers);
    if constexpr (kPerExample) {
      BatchType list;
      for (auto& e : batch) list.push_back(transform_(std::move(e)));
      return list;
    } else {
      return transform_(std::move(batch));
    }
  }
  template <class U>
  MapDataset<MapDataset, U> map(U transform) {
    return MapDataset<MapDataset, U>(*this, std::move(transform));
  }

 private:
  D source_;
  T transform_;
};

// Rows of a tensor.
class TensorDataset : public Dataset<TensorDataset, TensorExample> {
 public:
  explicit TensorDataset(Tensor tensor) : tensor_(std::move(tensor)) {}
  TensorExample get(size_t i) override { return {tensor_[static_cast<int64_t>(i)], {}}; }
  std::optional<size_t> size() const override { return static_cast<size_t>(tensor_.size(0)); }

 private:
  Tensor tensor_;
};

// MNIST from its original files (train-images-idx3-ubyte ...) in a folder: images (1, 28, 28) of float32 in [0, 1], and int64 labels.
// Throws RuntimeError if a file is missing or malformed.
class MNIST : public Dataset<MNIST> {
 public:
  enum class Mode { kTrain, kTest };
  explicit MNIST(const std::string& root, Mode mode = Mode::kTrain) {
    const std::string kind = root + (mode == Mode::kTrain ? "/train" : "/t10k");
    images_ = naru::data::read_idx(kind + "-images-idx3-ubyte").to(naru::DType::F32).div(255).unsqueeze(1);
    targets_ = naru::data::read_idx(kind + "-labels-idx1-ubyte").to(naru::DType::I64);
  }
  Example<> get(size_t i) override { return {images_[static_cast<int64_t>(i)], targets_[static_cast<int64_t>(i)]}; }
  std::optional<size_t> size() const override { return static_cast<size_t>(images_.size(0)); }
  const Tensor& images() const { return images_; }
  const Tensor& targets() const { return targets_; }

 private:
  Tensor images_, targets_;
};

}  // namespace datasets

namespace samplers {
using RandomSampler = naru::data::RandomSampler;
using SequentialSampler = naru::data::SequentialSampler;
}  // namespace samplers

struct DataLoaderOptions {
  size_t batch_size_;
  size_t workers_ = 0;
  bool drop_last_ = false;
  DataLoaderOptions(size_t size = 1) : batch_size_(size) {}
  DataLoaderOptions& batch_size(size_t n) { return batch_size_ = n, *this; }
  DataLoaderOptions& drop_last(bool on) { return drop_last_ = on, *this; }
  // Threads that prepare batches ahead of time, each with a copy of the dataset; 0: batches are made on the calling thread.
  DataLoaderOptions& workers(size_t n) { return workers_ = n, *this; }
};

// Iterates over a dataset in batches; each begin() starts a new epoch.
template <class D>
class StatelessDataLoader {
 public:
  using BatchType = typename D::BatchType;
  StatelessDataLoader(D dataset, std::shared_ptr<const naru::data::Sampler> sampler, const DataLoaderOptions& o)
      : dataset_(std::move(dataset)),
        batches_(std::move(sampler), static_cast<int64_t>(o.batch_size_), o.drop_last_),
        workers_(o.workers_) {}

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = BatchType;
    using difference_type = std::ptrdiff_t;
    using pointer = BatchType*;
    using reference = BatchType&;
    Iterator() = default;
    Iterator(StatelessDataLoader* loader, std::vector<std::vector<int64_t>> batches) : loader_(loader), batches_(std::move(batches)) {
      load();
    }
    BatchType& operator*() { return *batch_; }
    BatchType* operator->() { return &*batch_; }
    Iterator& operator++() {
      ++at_;
      load();
      return *this;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.loader_ == b.loader_ && (!a.loader_ || a.at_ == b.at_); }

   private:
    void load() {
      if (at_ >= batches_.size())
        loader_ = nullptr;
      else if (loader_->workers_ == 0)
        batch_ = loader_->dataset_.get_batch(batches_[at_]);
      else
        batch_ = ahead().get();
    }
    // Returns the batch at at_, and starts the following ones: as many as there are workers, whose dataset copies are used round-robin.
    std::future<BatchType> ahead() {
      if (copies_.empty())
        for (size_t i = 0; i < loader_->workers_; ++i) copies_.push_back(std::make_shared<D>(loader_->dataset_));
      for (; next_ < batches_.size() && next_ < at_ + copies_.size(); ++next_)
        under_way_.push_back(std::async(
            std::launch::async, [d = copies_[next_ % copies_.size()], numbers = batches_[next_]] { return d->get_batch(numbers); }));
      std::future<BatchType> first = std::move(under_way_.front());
      under_way_.pop_front();
      return first;
    }
    std::vector<std::shared_ptr<D>> copies_;
    std::deque<std::future<BatchType>> under_way_;
    size_t next_ = 0;
    StatelessDataLoader* loader_ = nullptr;  // null: the end iterator
    std::vector<std::vector<int64_t>> batches_;
    size_t at_ = 0;
    std::optional<BatchType> batch_;
  };
  Iterator begin() { return Iterator(this, batches_.pass()); }
  Iterator end() { return {}; }

 private:
  D dataset_;
  naru::data::BatchSampler batches_;
  size_t workers_;
};

template <class Sampler = samplers::RandomSampler, class D>
std::unique_ptr<StatelessDataLoader<D>> make_data_loader(D dataset, DataLoaderOptions options = {}) {
  const auto size = dataset.size();
  if (!size) throw naru::RuntimeError("Expected the dataset to be sized in order to construct the Sampler");
  return std::make_unique<StatelessDataLoader<D>>(std::move(dataset), std::make_shared<Sampler>(static_cast<int64_t>(*size)), options);
}
template <class D>
std::unique_ptr<StatelessDataLoader<D>> make_data_loader(D dataset, std::shared_ptr<const naru::data::Sampler> sampler,
                                                         DataLoaderOptions options = {}) {
  return std::make_unique<StatelessDataLoader<D>>(std::move(dataset), std::move(sampler), options);
}

}  // namespace torch::data
