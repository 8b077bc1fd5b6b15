// DataParallel in C++: replicas of one module on several devices, each of which gets a part of the batch.
//
//   nn::DataParallel model([] { return std::make_shared<Net>(); });          // on all devices of the best kind
//   auto optimizer = optim::SGD(model.parameters(), 0.1);
//   loss(model(x), y).backward();                                            // gradients are accumulated on the first device
#pragma once

#include <optional>
#include <vector>

#include "naru/nn.h"
#include "naru/standard.h"

namespace naru::nn {

// Modules own their tensors, so a function creates the replicas, once. Later, a replica's tensor is copied again only if the original has
// changed, which its version counter shows. Parameters, state and modes are those of module(), the first replica.
class DataParallel : public Module {
 public:
  // make: returns a new module at each call, always with the same structure. devices: empty means all of the best kind; if there are none,
  // the module runs as it is. output_device: where results are gathered (default: the first). dim: the batch dimension. Throws
  // DeviceUnavailableError, or RuntimeError if the created modules differ.
  explicit DataParallel(std::function<std::shared_ptr<Module>()> make, std::vector<Device> devices = {},
                        std::optional<Device> output_device = {}, int64_t dim = 0);
  // Splits x along dim, one chunk per device (fewer if the batch is smaller), runs each on a separate thread, and concatenates the results
  // along dim. An error keeps its kind and names the replica and its device.
  Tensor forward(const Tensor& x) override;
  using Module::operator();

  Module& module() noexcept;
  const std::vector<Device>& devices() const noexcept { return devices_; }
  // The number of tensors copied to other devices so far.
  uint64_t copies() const noexcept { return copies_; }
  std::string name() const override { return "DataParallel"; }

 private:
  struct Pair {
    Tensor original, copy;
    uint64_t writes = UINT64_MAX, own_writes = 0;  // versions of both at the last copy
    bool parameter;
  };
  void refresh(size_t replica);

  std::vector<Device> devices_;
  Device output_;
  int64_t dim_;
  std::vector<std::shared_ptr<Module>> replicas_;
  std::vector<std::vector<Pair>> pairs_;  // per replica
  uint64_t copies_ = 0;
};

}  // namespace naru::nn
