// Counting the floating-point operations of a part of a program.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "naru/standard.h"

namespace naru {

// Counts the operations of matrix products, convolutions and attention that its thread calls, including those of backward, from
// construction (or start()) to stop(). A multiplication and an addition count as one each, for complex numbers too; attention counts as if
// nothing were masked. Only shapes matter, so tensors on Device::meta() count too. Replays of graphs are not counted. Counters may be
// nested; each counts everything.
class FlopCounter {
 public:
  using Counts = std::map<std::string, int64_t, std::less<>>;

  FlopCounter() : counts_(std::make_shared<Counts>()) { start(); }
  ~FlopCounter() { stop(); }
  FlopCounter(const FlopCounter&) = delete;

  // Starts counting on the calling thread; does nothing if it already counts.
  void start();
  // Stops counting on the calling thread. Other threads that called start() count until they call stop().
  void stop() noexcept;

  int64_t total() const;
  // Keys: "mm", "addmm", "bmm", "mv", "dot", "convolution", "convolution_backward", "scaled_dot_product_attention", and its "_backward".
  const Counts& by_operator() const noexcept { return *counts_; }

 private:
  std::shared_ptr<Counts> counts_;
};

}  // namespace naru
