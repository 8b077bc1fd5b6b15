// Pass: one pass of a DataLoader, with threads that make batches ahead of time or without.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "naru/data.h"

namespace naru::data {

class Pass {
 public:
  // The samples `order` of a data set, in batches. Of the options, batch_size, drop_last, pin_memory and those of workers count.
  Pass(std::shared_ptr<const Dataset> dataset, std::vector<int64_t> order, const LoaderOptions& options);
  // Samples that come one after another; see IterableDataset::begin.
  Pass(std::function<Sample()> samples, const LoaderOptions& options);
  Pass(const Pass&) = delete;
  ~Pass();

  // Whether next() has nothing to wait for. Where there are no workers, it never has: it makes the batch itself.
  bool ready() const;
  // Waits for that, so many seconds at most.
  bool wait(double seconds);
  // The next batch, or nothing at the end. Throws what went wrong with it; then the pass is over. For one thread.
  std::optional<Sample> next();

 private:
  // Of the samples of a batch, taken in order by one thread at a time; making it is everybody's own.
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
  // The next task; nothing at the end. Called by one thread at a time.
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
  size_t next_ = 0;  // where the batch behind this one starts
  std::function<Sample()> next_sample_;
  bool grad_ = true;

  mutable std::mutex mutex_;
  std::condition_variable room_, ready_;
  uint64_t taken_ = 0, wanted_ = 0;        // batches begun; the one to be given next
  std::vector<std::optional<Done>> done_;  // a place for each batch that may be under way, in turn
  bool taking_ = false, ended_ = false, stopped_ = false;
  int resting_ = 0;                         // workers that wait for room
  bool dozing_ = false;                     // one of them looks by itself
  bool waiting_ = false;                    // for a batch
  Clock::time_point given_ = Clock::now();  // when the last batch was
  Clock::duration pace_{0};                 // from the one before to it
  std::vector<std::thread> threads_;
};

}  // namespace naru::data
