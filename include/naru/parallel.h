// DataParallel in C++: one module on several devices, each with a part of the batch.
//
//   nn::DataParallel model([] { return std::make_shared<Net>(); });          // on all devices of the best kind
//   auto optimizer = optim::SGD(model.parameters(), 0.1);
//   loss(model(x), y).backward();                                            // gradients are added up on the first device
#pragma once

#include <optional>
#include <vector>

#include "naru/nn.h"
#include "naru/standard.h"

namespace naru::nn {

// Modules hold their tensors themselves, so replicas are made by a function, once; from then on a replica's tensor is copied again only
// when the original has changed, which its count of writes tells. Parameters, state and modes are those of module(), the first one.
class DataParallel : public Module {
 public:
  // make: a new module at each call, all of the same structure. devices: where (none: all of the best kind; if there are none, the module
  // runs as it is). output_device: where results are put together (the first). dim: the batch's.
  // Throws DeviceUnavailableError, or RuntimeError if the modules made differ.
  explicit DataParallel(std::function<std::shared_ptr<Module>()> make, std::vector<Device> devices = {},
                        std::optional<Device> output_device = {}, int64_t dim = 0);
  // x in pieces along dim, one a device (fewer for a batch smaller than their number), each run in a thread of its own; the results along
  // dim. An error keeps its kind and names the replica and its device.
  Tensor forward(const Tensor& x) override;
  using Module::operator();

  Module& module() noexcept;
  const std::vector<Device>& devices() const noexcept { return devices_; }
  // How many tensors were copied to other devices so far.
  uint64_t copies() const noexcept { return copies_; }
  std::string name() const override { return "DataParallel"; }

 private:
  struct Pair {
    Tensor original, copy;
    uint64_t writes = UINT64_MAX, own_writes = 0;  // of both when it was copied
    bool parameter;
  };
  void refresh(size_t replica);

  std::vector<Device> devices_;
  Device output_;
  int64_t dim_;
  std::vector<std::shared_ptr<Module>> replicas_;
  std::vector<std::vector<Pair>> pairs_;  // by replica
  uint64_t copies_ = 0;
};

}  // namespace naru::nn
