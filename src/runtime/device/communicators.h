// Communicators: what a backend has to join its devices with those of other processes. src/distributed is the user of it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/communicator.h"
#include "naru/device.h"

namespace naru::runtime {

class Communicators {
 public:
  virtual ~Communicators() = default;
  // "NCCL 2.32.3". Ranks must have the same.
  virtual std::string name() const = 0;
  // Why it can't be used, and what helps; "" if it can. The first call opens the library.
  virtual std::string trouble() const = 0;
  // One rank makes an id, and all join with it.
  virtual std::string make_id() = 0;
  // Returns when all have joined. look: called several times in a second, here and in the communicator's other functions, while others are
  // waited for; what it throws ends the wait.
  virtual std::shared_ptr<Communicator> join(Device device, const std::string& id, int rank, int size, std::function<void()> look) = 0;
};

}  // namespace naru::runtime
