// DataLoader: passes over a data set.
#include "data/pass.h"
#include "naru/error.h"
#include "naru/ops.h"

namespace naru::data {

void DataLoader::check_options() const {
  if (options_.batch_size < 1)
    throw ValueError("batch_size should be a positive integer value, but got batch_size={}", options_.batch_size);
  if (options_.num_workers < 0)
    throw ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing. (got {})",
                     options_.num_workers);
  if (options_.prefetch_factor < 1) throw ValueError("prefetch_factor: wanted at least 1, got {}", options_.prefetch_factor);
}

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, LoaderOptions options) : dataset_(std::move(dataset)), options_(options) {
  if (!dataset_) throw ValueError("DataLoader: the data set is null");
  check_options();
  if (options_.sampler && options_.shuffle) throw ValueError("sampler option is mutually exclusive with shuffle");
  if (dataset_->size() < 1)
    throw ValueError("num_samples should be a positive integer value, but got num_samples={} (DataLoader: the data set is empty)",
                     dataset_->size());
  if (options_.sampler)
    sampler_ = options_.sampler;
  else if (options_.shuffle)
    sampler_ = std::make_shared<RandomSampler>(dataset_->size(), false, std::nullopt, options_.generator);
  else
    sampler_ = std::make_shared<SequentialSampler>(dataset_->size());
}

DataLoader::DataLoader(std::shared_ptr<const IterableDataset> dataset, LoaderOptions options)
    : iterable_(std::move(dataset)), options_(options) {
  if (!iterable_) throw ValueError("DataLoader: the data set is null");
  check_options();
  if (options_.shuffle) throw ValueError("DataLoader with IterableDataset: expected unspecified shuffle option, but got shuffle=true");
  if (options_.sampler) throw ValueError("DataLoader with IterableDataset: expected unspecified sampler option, but got a sampler");
}

int64_t DataLoader::size() const {
  if (iterable_) throw RuntimeError("DataLoader: an iterable data set does not say how many samples it has");
  const int64_t n = sampler_->size(), b = options_.batch_size;
  return options_.drop_last ? n / b : (n + b - 1) / b;
}

DataLoader::Iterator DataLoader::begin() const {
  Iterator it;
  // Python draws the base seed of its worker processes when a pass begins. Draw it here, too, so that later draws agree.
  random_(empty({}, Options(DType::I64, Device(DeviceType::Cpu))), {}, {}, options_.generator);
  it.pass_ =
      iterable_ ? std::make_shared<Pass>(iterable_->begin(), options_) : std::make_shared<Pass>(dataset_, sampler_->pass(), options_);
  return ++it;
}

DataLoader::Iterator::Iterator() = default;
DataLoader::Iterator DataLoader::end() const noexcept { return {}; }

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  std::optional<Sample> batch = pass_->next();
  if (batch)
    batch_ = std::move(*batch);
  else
    *this = {};
  return *this;
}

}  // namespace naru::data
