// How many floating-point operations a part of a program takes.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "naru/standard.h"

namespace naru {

// From its making (or start()) to stop() counts the operations of matrix products, convolutions and attention that its thread asks for, those of backward
// among them: a multiplication and an addition are one each, of complex numbers, too; of attention as if nothing were masked. Shapes alone count: tensors on
// Device::meta() do as well. What is replayed from a graph is not seen. Counters may lie within one another; each sees all.
class FlopCounter {
 public:
  using Counts = std::map<std::string, int64_t, std::less<>>;

  FlopCounter() : counts_(std::make_shared<Counts>()) { start(); }
  ~FlopCounter() { stop(); }
  FlopCounter(const FlopCounter&) = delete;

  // Counts on, for the thread that calls; nothing happens if it does already.
  void start();
  // For the thread that calls: one that start() was called on counts until its own stop().
  void stop() noexcept;

  int64_t total() const;
  // By operator: "mm", "addmm", "bmm", "mv", "dot", "convolution", "convolution_backward", "scaled_dot_product_attention", its "_backward".
  const Counts& by_operator() const noexcept { return *counts_; }

 private:
  std::shared_ptr<Counts> counts_;
};

}  // namespace naru
