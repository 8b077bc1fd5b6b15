// Pass: one pass (an iterator) of a DataLoader, with or without worker threads that make batches ahead of time.
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "naru/condition_variable.h"
#include "naru/data.h"

namespace naru::data {

class Pass {
 public:
  // The samples `order` of a data set, in batches. Uses only batch_size, drop_last, pin_memory and the worker options.
  Pass(std::shared_ptr<const Dataset> dataset, std::vector<int64_t> order, const LoaderOptions& options);
  // The samples of an iterable data set; see IterableDataset::begin.
  Pass(std::function<Sample()> samples, const LoaderOptions& options);
  Pass(const Pass&) = delete;
  ~Pass();

  // True if next() would not block. Always true without workers: then next() makes the batch itself.
  bool ready() const;
  // Waits until ready(), for at most `seconds`; returns ready().
  bool wait(double seconds);
  // Returns the next batch, or nothing at the end. Rethrows the error of making it; the pass is then over. Call from one thread only.
  std::optional<Sample> next();

 private:
  // The samples of a batch. Workers take tasks in order, one worker at a time, and make the batches in parallel.
  struct Task {
    std::vector<int64_t> numbers;
    std::vector<Sample> samples;  // of an iterable data set
  };
  using Clock = std::chrono::steady_clock;
  struct Done {
    Sample batch;
    std::exception_ptr error;
  };

  void start();
  void stop() noexcept;
  // Returns the next task, or nothing at the end. Called by one thread at a time.
  std::optional<Task> take();
  Sample make(const Task& task) const;
  Done attempt(const std::optional<Task>& task, std::exception_ptr error, int worker) const;
  void work(int worker);
  void rest(std::unique_lock<std::mutex>& lock);
  bool room() const noexcept;
  std::optional<Done>& place(uint64_t number) noexcept { return done_[number % done_.size()]; }
  bool there() const noexcept { return done_[wanted_ % done_.size()] || (ended_ && wanted_ >= taken_); }

  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
  std::vector<int64_t> order_;
  size_t next_ = 0;  // start of the next batch in order_
  std::function<Sample()> next_sample_;
  bool grad_ = true;

  mutable std::mutex mutex_;
  ConditionVariable room_, ready_;
  uint64_t taken_ = 0, wanted_ = 0;        // batches started; the number of the next batch to return
  std::vector<std::optional<Done>> done_;  // a ring buffer with a slot for each batch in flight
  bool taking_ = false, ended_ = false, stopped_ = false;
  int resting_ = 0;                         // workers that wait for a free slot
  bool dozing_ = false;                     // one of them polls
  bool waiting_ = false;                    // next() waits for a batch
  Clock::time_point given_ = Clock::now();  // time of the last batch
  Clock::duration pace_{0};                 // time between the last two batches
  std::vector<std::thread> threads_;
};

}  // namespace naru::data
