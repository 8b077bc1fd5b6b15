// An inference server: clients' threads put requests into a queue, one worker gathers what is there into a batch and answers all of it at once.
// The model is shared by nobody but the worker; modules may be called by several threads, too (docs/cpp.md).
#include <naru/naru.h>
#include <iterator>

#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

using naru::Tensor;
namespace nn = naru::nn;

class Server {
 public:
  Server() : worker_([this] { work(); }) {}
  ~Server() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_one();
    worker_.join();
  }
  // The model's answer to one input (16).
  std::future<Tensor> ask(Tensor x) {
    std::promise<Tensor> promise;
    std::future<Tensor> answer = promise.get_future();
    {
      const std::lock_guard lock(mutex_);
      waiting_.emplace_back(std::move(x), std::move(promise));
    }
    changed_.notify_one();
    return answer;
  }

 private:
  using Request = std::pair<Tensor, std::promise<Tensor>>;

  void work() {
    const naru::InferenceMode no_history;
    for (std::vector<Request> batch; !(batch = next()).empty();) {
      try {
        std::vector<Tensor> inputs;
        for (const Request& r : batch) inputs.push_back(r.first);
        const Tensor answers = naru::softmax(model_(naru::stack(inputs)), -1);
        for (size_t i = 0; i < batch.size(); ++i) batch[i].second.set_value(answers[i]);
      } catch (...) {
        for (Request& r : batch) r.second.set_exception(std::current_exception());
      }
    }
  }
  // What is waiting, 32 at most; nothing when the server is closed.
  std::vector<Request> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
    const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(waiting_.size(), 32));
    std::vector<Request> batch(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end));
    waiting_.erase(waiting_.begin(), end);
    return batch;
  }

  nn::Sequential model_{nn::Linear(16, 32), nn::ReLU(), nn::Linear(32, 4)};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Request> waiting_;
  bool closed_ = false;
  std::thread worker_;  // begins when all else is there
};

int main() {
  Server server;
  std::vector<std::thread> clients;
  std::mutex mutex;
  int answered = 0;
  double sum = 0;
  for (int c = 0; c < 4; ++c) {
    clients.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const Tensor answer = server.ask(naru::randn({16})).get();
        const std::lock_guard lock(mutex);
        ++answered, sum += answer.sum().item<double>();
      }
    });
  }
  for (std::thread& t : clients) t.join();
  bool refused = false;
  try {
    server.ask(naru::ones({3})).get();  // the error comes back to the one who asked
  } catch (const naru::RuntimeError&) {
    refused = true;
  }
  std::printf("%d answers, probabilities add up to %.1f, a wrong shape is %s\n", answered, sum, refused ? "refused" : "taken");
}
