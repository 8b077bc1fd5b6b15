// DataLoader: a pass over a data set, with threads that make batches ahead of time or without.
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "naru/autograd.h"
#include "naru/data.h"
#include "naru/error.h"
#include "naru/ops.h"

namespace naru::data {
namespace {

Sample stacked(const std::vector<Sample>& samples) {
  Sample all;
  for (size_t c = 0; c < samples[0].size(); ++c) {
    std::vector<Tensor> column;
    for (const Sample& s : samples) {
      if (s.size() != samples[0].size())
        throw RuntimeError("each element in list of batch should be of equal size: one sample has {} tensors, another {}", samples[0].size(), s.size());
      column.push_back(s[c]);
    }
    all.push_back(stack(column));
  }
  return all;
}

}  // namespace

class DataLoader::Pass {
 public:
  // Of the samples of a batch, taken in order by one thread at a time; making it is everybody's own.
  struct Task {
    uint64_t number = 0;
    std::vector<int64_t> numbers;
    std::vector<Sample> samples;  // of an iterable data set
  };

  explicit Pass(const DataLoader& loader) : dataset_(loader.dataset_), options_(loader.options_) {
    // In Python a pass begins by drawing the seed of its worker processes. It is drawn here, too, so that the order is the same.
    random_(empty({}, Options(DType::I64, Device(DeviceType::Cpu))), {}, {}, options_.generator);
    if (loader.iterable_) next_sample_ = loader.iterable_->begin();
    else order_ = loader.sampler_->pass();
    grad_ = grad_enabled();
    for (int i = 0; i < options_.num_workers; ++i) threads_.emplace_back([this, i] { work(i); });
  }
  Pass(const Pass&) = delete;
  ~Pass() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    room_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

  // The next batch, or nothing at the end. Throws what went wrong with it; then the pass is over.
  std::optional<Sample> next() {
    if (threads_.empty()) {
      std::optional<Task> task = take();
      if (!task) return {};
      return make(*task);
    }
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return done_.contains(wanted_) || (ended_ && wanted_ >= taken_); });
    const auto it = done_.find(wanted_);
    if (it == done_.end()) return {};
    Done done = std::move(it->second);
    done_.erase(it);
    ++wanted_;
    if (done.error) stopped_ = ended_ = true, taken_ = wanted_;
    lock.unlock();
    room_.notify_all();
    if (done.error) std::rethrow_exception(done.error);
    return std::move(done.batch);
  }

 private:
  struct Done {
    Sample batch;
    std::exception_ptr error;
  };

  // The next task; nothing at the end. Called by one thread at a time.
  std::optional<Task> take() {
    Task task;
    const auto size = static_cast<size_t>(options_.batch_size);
    if (next_sample_) {
      for (Sample s; task.samples.size() < size && !(s = next_sample_()).empty();) task.samples.push_back(std::move(s));
      if (task.samples.empty() || (task.samples.size() < size && options_.drop_last)) return {};
      return task;
    }
    const size_t left = order_.size() - next_;
    if (left == 0 || (left < size && options_.drop_last)) return {};
    const size_t n = std::min(size, left);
    task.numbers.assign(order_.begin() + static_cast<long>(next_), order_.begin() + static_cast<long>(next_ + n));
    next_ += n;
    return task;
  }

  Sample make(const Task& task) const {
    Sample batch = task.samples.empty() ? dataset_->batch(task.numbers) : stacked(task.samples);
    if (options_.pin_memory)
      for (Tensor& t : batch)
        if (t.device().is_cpu()) t = t.pin_memory();
    return batch;
  }

  Done attempt(const std::optional<Task>& task, std::exception_ptr error, int worker) const {
    if (!error) {
      try {
        Done done{make(*task), {}};
        // Nothing is left to be done on this thread, which may end before somebody looks.
        for (const Tensor& t : done.batch)
          if (t.device().is_cpu()) t.data_ptr();
        return done;
      } catch (...) {
        error = std::current_exception();
      }
    }
    try {
      try {
        std::rethrow_exception(error);
      } catch (const Error& e) {
        throw_error(e.kind(), fmt::format("in DataLoader worker thread {}: {}", worker, e.what()));
      }
    } catch (...) {
      return {{}, std::current_exception()};
    }
  }

  void work(int worker) {
    set_grad_enabled(grad_);
    const auto most = static_cast<uint64_t>(options_.num_workers) * static_cast<uint64_t>(options_.prefetch_factor);
    std::unique_lock lock(mutex_);
    for (;;) {
      room_.wait(lock, [&] { return stopped_ || ended_ || (!taking_ && taken_ < wanted_ + most); });
      if (stopped_ || ended_) return;
      // One thread takes samples at a time, without the lock, as an iterable data set may be slow.
      taking_ = true;
      const uint64_t number = taken_;
      lock.unlock();
      std::optional<Task> task;
      std::exception_ptr error;
      try {
        task = take();
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      taking_ = false;
      if (!task) ended_ = true;
      if (task || error) ++taken_;
      room_.notify_all();
      if (task || error) {
        lock.unlock();
        Done done = attempt(task, error, worker);
        lock.lock();
        done_.emplace(number, std::move(done));
      }
      ready_.notify_all();
    }
  }

  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
  std::vector<int64_t> order_;
  size_t next_ = 0;  // where the batch behind this one starts
  std::function<Sample()> next_sample_;
  bool grad_ = true;

  std::mutex mutex_;
  std::condition_variable room_, ready_;
  uint64_t taken_ = 0, wanted_ = 0;  // batches begun; the one to be given next
  std::map<uint64_t, Done> done_;
  bool taking_ = false, ended_ = false, stopped_ = false;
  std::vector<std::thread> threads_;
};

void DataLoader::check_options() const {
  if (options_.batch_size < 1)
    throw ValueError("batch_size should be a positive integer value, but got batch_size={}", options_.batch_size);
  if (options_.num_workers < 0)
    throw ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing. (got {})", options_.num_workers);
  if (options_.prefetch_factor < 1) throw ValueError("prefetch_factor: wanted at least 1, got {}", options_.prefetch_factor);
}

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, LoaderOptions options) : dataset_(std::move(dataset)), options_(options) {
  if (!dataset_) throw ValueError("DataLoader: the data set is null");
  check_options();
  if (options_.sampler && options_.shuffle) throw ValueError("sampler option is mutually exclusive with shuffle");
  if (dataset_->size() < 1)
    throw ValueError("num_samples should be a positive integer value, but got num_samples={} (DataLoader: the data set is empty)", dataset_->size());
  if (options_.sampler) sampler_ = options_.sampler;
  else if (options_.shuffle) sampler_ = std::make_shared<RandomSampler>(dataset_->size(), false, std::nullopt, options_.generator);
  else sampler_ = std::make_shared<SequentialSampler>(dataset_->size());
}

DataLoader::DataLoader(std::shared_ptr<const IterableDataset> dataset, LoaderOptions options) : iterable_(std::move(dataset)), options_(options) {
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
  it.pass_ = std::make_shared<Pass>(*this);
  return ++it;
}

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  std::optional<Sample> batch = pass_->next();
  if (batch) batch_ = std::move(*batch);
  else *this = {};
  return *this;
}

}  // namespace naru::data
