// GradientReducer: data parallel training. It averages the gradients of a module's parameters over the ranks of a group during backward, in
// buckets: while one is exchanged by another thread, backward computes the next.
//
//   distributed::GradientReducer reducer(model.parameters(), group);   // in each process, with the same parameters in the same order
//   reducer.broadcast();                                               // all begin with rank 0's parameters
//   for (...) {
//     optimizer.zero_grad();
//     const Tensor loss = ...;
//     reducer.prepare();
//     loss.backward();                                                 // p.grad() is the mean over the ranks
//     optimizer.step();
//   }
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "naru/distributed/group.h"

namespace naru::distributed {

class GradientReducer {
 public:
  struct Options {
    size_t first_bucket = size_t{1} << 20, bucket = size_t{25} << 20;  // bytes of gradients
    bool as_views = false;                                             // gradients become views of the buckets
    std::vector<std::string> names{};                                  // of the parameters, for errors
  };
  // parameters: leaves that require gradients, in the order of forward; buckets are filled from the last one. The group must outlive it.
  GradientReducer(std::vector<Tensor> parameters, ProcessGroup& group, Options options);
  GradientReducer(std::vector<Tensor> parameters, ProcessGroup& group) : GradientReducer(std::move(parameters), group, Options()) {}
  GradientReducer(const GradientReducer&) = delete;
  ~GradientReducer();

  // All ranks take rank 0's parameters.
  void broadcast();

  // Before a backward whose gradients are to be averaged. Throws RuntimeError if the last one has not reached all parameters.
  void prepare();
  // The same; parameters on which no output depends need no gradient. On ranks where others have one theirs counts as zero; where no rank has
  // one it stays what it was.
  void prepare(const std::vector<Tensor>& outputs);
  // The next backwards only accumulate on this rank, until prepare.
  void stop();
  // Takes part in the averaging of one backward with gradients of zero, on a rank that has no more inputs.
  void join_with_zeros();
  // Gradients are sums divided by this, in place of means over all ranks.
  void set_divisor(std::optional<int> divisor);

  // Replaces the averaging of a bucket: called with its number, its gradients in one vector, its parameters, and whether it is the last one.
  // What it returns is called at the end of backward and leaves the result in the vector.
  using Exchange =
      std::function<std::function<void()>(size_t bucket, const Tensor& vector, const std::vector<Tensor>& parameters, bool last)>;
  void set_exchange(Exchange exchange);

 private:
  struct State;
  std::shared_ptr<State> state_;  // the hooks on the parameters refer to it weakly
};

}  // namespace naru::distributed
