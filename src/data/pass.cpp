#include "data/pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <typeinfo>

#include "naru/autograd.h"
#include "naru/error.h"
#include "naru/ops.h"
#include "runtime/memory/memory.h"

namespace naru::data {
Pass::Pass(std::shared_ptr<const Dataset> dataset, std::vector<int64_t> order, const LoaderOptions& options)
    : dataset_(std::move(dataset)), options_(options), order_(std::move(order)) {
  start();
}

Pass::Pass(std::function<Sample()> samples, const LoaderOptions& options) : options_(options), next_sample_(std::move(samples)) { start(); }

void Pass::start() {
  grad_ = grad_enabled();
  constexpr size_t kMost = 65536;
  const size_t batches = next_sample_ ? kMost : order_.size() / static_cast<size_t>(options_.batch_size) + 1;
  const size_t wanted = static_cast<size_t>(options_.num_workers) * static_cast<size_t>(options_.prefetch_factor);
  done_.resize(std::clamp<size_t>(wanted, 1, batches));
  try {
    for (int i = 0; i < options_.num_workers; ++i) threads_.emplace_back([this, i] { work(i); });
  } catch (...) {
    stop();
    throw;
  }
}

Pass::~Pass() { stop(); }

void Pass::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  room_.notify_all();
  for (std::thread& t : threads_) t.join();
}

bool Pass::ready() const {
  if (threads_.empty()) return true;
  const std::lock_guard lock(mutex_);
  return there();
}

bool Pass::wait(double seconds) {
  if (threads_.empty()) return true;
  std::unique_lock lock(mutex_);
  waiting_ = true;
  const bool here = ready_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return there(); });
  waiting_ = false;
  return here;
}

std::optional<Sample> Pass::next() {
  if (threads_.empty()) {
    std::optional<Task> task = take();
    if (!task) return {};
    return make(*task);
  }
  std::unique_lock lock(mutex_);
  waiting_ = true;
  ready_.wait(lock, [this] { return there(); });
  waiting_ = false;
  std::optional<Done>& here = place(wanted_);
  if (!here) return {};
  Done done = std::move(*here);
  here.reset();
  ++wanted_;
  if (done.error) stopped_ = ended_ = true, taken_ = wanted_;
  const auto now = Clock::now();
  pace_ = now - given_;
  given_ = now;
  // A polling worker notices the free slot by itself in time, unless the program now takes batches faster.
  const bool wake = stopped_ || (resting_ > 0 && room() && (!dozing_ || !there()));
  lock.unlock();
  if (wake) room_.notify_all();
  if (done.error) std::rethrow_exception(done.error);
  return std::move(done.batch);
}

std::optional<Pass::Task> Pass::take() {
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
  task.numbers.assign(order_.begin() + static_cast<std::ptrdiff_t>(next_), order_.begin() + static_cast<std::ptrdiff_t>(next_ + n));
  next_ += n;
  return task;
}

Sample Pass::make(const Task& task) const {
  Sample batch;
  if (!task.samples.empty()) {
    batch = options_.collate ? options_.collate(task.samples) : default_collate(task.samples);
  } else if (options_.collate) {
    std::vector<Sample> samples;
    for (const int64_t i : task.numbers) samples.push_back(dataset_->get(i));
    batch = options_.collate(samples);
  } else {
    batch = dataset_->batch(task.numbers);
  }
  if (options_.pin_memory && runtime::can_pin())
    for (Tensor& t : batch)
      if (t.device().is_cpu()) t = t.pin_memory();
  return batch;
}

Pass::Done Pass::attempt(const std::optional<Task>& task, std::exception_ptr error, int worker) const {
  if (!error) {
    try {
      Done done{make(*task), {}};
      // Finish pending work now: this thread may end before the batch is read.
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
    } catch (const std::runtime_error& e) {
      if (typeid(e) != typeid(std::runtime_error)) throw;  // a user-defined class carries more information than the worker's number
      throw RuntimeError("in DataLoader worker thread {}: {}", worker, e.what());
    }
  } catch (...) {
    return {{}, std::current_exception()};
  }
}

bool Pass::room() const noexcept { return taken_ < wanted_ + done_.size(); }

// Waits until there is work. Waking a thread costs the waker about 6 us, which is significant for a program that takes a batch every few hundred
// us: so, at first, one worker polls.
void Pass::rest(std::unique_lock<std::mutex>& lock) {
  constexpr Clock::duration kBrisk = std::chrono::milliseconds(10), kLeast = std::chrono::microseconds(50);
  constexpr int kLooks = 4;
  const auto over = [this] { return stopped_ || ended_ || (!taking_ && room()); };
  if (!dozing_ && pace_ > Clock::duration::zero() && pace_ < kBrisk) {
    dozing_ = true;
    for (int i = 0; i < kLooks && !over(); ++i) room_.wait_for(lock, std::max(pace_ / 2, kLeast));
    dozing_ = false;
  }
  room_.wait(lock, over);
}

void Pass::work(int worker) {
  set_grad_enabled(grad_);
  std::unique_lock lock(mutex_);
  for (;;) {
    ++resting_;
    rest(lock);
    --resting_;
    if (stopped_ || ended_) return;
    // One thread takes samples at a time, without holding the lock, because an iterable data set may be slow.
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
    if (resting_ > 0 && (ended_ || room())) room_.notify_all();
    if (task || error) {
      lock.unlock();
      Done done = attempt(task, error, worker);
      lock.lock();
      place(number) = std::move(done);
    }
    if (waiting_) ready_.notify_all();
  }
}

}  // namespace naru::data
