#include "naru/nn/parallel.h"

#include <fmt/format.h>

#include <exception>
#include <thread>

#include "autograd/history/history.h"
#include "naru/device/devices.h"
#include "naru/error.h"
#include "runtime/device/registry.h"

namespace naru::nn {
namespace {

uint64_t writes_of(const Tensor& t) {
  const Storage& s = *t.impl()->storage;
  return uint64_t{s.version.load()} + s.silent_writes.load();
}

// Makes a cached copy the differentiable result of copying the original, so that gradients flow to the original.
void link(const Tensor& original, Tensor copy) {
  copy.detach_();
  if (!grad_enabled() || !original.requires_grad()) return;
  auto f = [home = original.device()](const std::vector<Tensor>& g, const std::vector<Tensor>&) { return std::vector{g[0].to(home)}; };
  auto node = make_ref<autograd::FunctionNode<decltype(f)>>("ReplicaBackward", f);
  autograd::connect(*node, {&original});
  autograd::set_history(copy, Ref<autograd::Node>(node));
}

std::vector<Device> all_of_the_best_kind() {
  std::vector<Device> devices;
  const Device best = best_device();
  if (!best.is_cpu())
    for (int i = 0; i < device_count(best.type); ++i) devices.push_back(Device(best.type, i));
  return devices;
}

}  // namespace

DataParallel::DataParallel(std::function<std::shared_ptr<Module>()> make, std::vector<Device> devices, std::optional<Device> output_device,
                           int64_t dim)
    : devices_(devices.empty() ? all_of_the_best_kind() : std::move(devices)), dim_(dim) {
  for (Device& d : devices_) d = runtime::resolve(d);
  output_ = output_device ? *output_device : devices_.empty() ? Device(DeviceType::Cpu) : devices_[0];
  replicas_.push_back(register_module("module", make()));
  if (!devices_.empty()) module().to(devices_[0]);
  pairs_.resize(1);
  for (size_t i = 1; i < devices_.size(); ++i) {
    replicas_.push_back(make());
    replicas_[i]->requires_grad_(false);
    replicas_[i]->to(devices_[i]);
    std::vector<Pair> pairs;
    for (const bool parameters : {true, false}) {
      const NamedTensors ours = parameters ? module().named_parameters() : module().named_buffers();
      const NamedTensors theirs = parameters ? replicas_[i]->named_parameters() : replicas_[i]->named_buffers();
      if (ours.size() != theirs.size())
        throw RuntimeError("DataParallel: wanted modules of one structure, got {} and {} tensors", ours.size(), theirs.size());
      for (size_t k = 0; k < ours.size(); ++k) {
        if (ours[k].first != theirs[k].first || !(ours[k].second.sizes() == theirs[k].second.sizes()))
          throw RuntimeError("DataParallel: wanted modules of one structure, got '{}' of shape {} and '{}' of shape {}", ours[k].first,
                             ours[k].second.sizes().str(), theirs[k].first, theirs[k].second.sizes().str());
        pairs.push_back({ours[k].second, theirs[k].second, UINT64_MAX, 0, parameters});
      }
    }
    pairs_.push_back(std::move(pairs));
  }
}

Module& DataParallel::module() noexcept { return *replicas_[0]; }

void DataParallel::refresh(size_t replica) {
  replicas_[replica]->train(is_training() && module().is_training());
  for (Pair& p : pairs_[replica]) {
    if (p.original.device() != devices_[0])
      throw RuntimeError("module must have its parameters and buffers on device {} (device_ids[0]) but found one of them on device: {}",
                         devices_[0].str(), p.original.device().str());
    if (writes_of(p.original) != p.writes || writes_of(p.copy) != p.own_writes) {
      const NoGrad guard;
      p.copy.detach_();
      p.copy.copy_(p.original, true);
      p.writes = writes_of(p.original), p.own_writes = writes_of(p.copy);
      ++copies_;
    }
    if (p.parameter) link(p.original, p.copy);
  }
}

Tensor DataParallel::forward(const Tensor& x) {
  if (devices_.empty()) return module().forward(x);
  const int64_t size = x.size(dim_),
                each = std::max<int64_t>(1, (size + static_cast<int64_t>(devices_.size()) - 1) / static_cast<int64_t>(devices_.size()));
  std::vector<Tensor> pieces;
  for (int64_t first = 0; first < std::max<int64_t>(size, 1); first += each)
    pieces.push_back(x.slice(dim_, first, std::min(size, first + each)).to(devices_[pieces.size()], true, false));
  std::vector<Tensor> results(pieces.size());
  for (size_t i = 1; i < pieces.size(); ++i) refresh(i);
  std::vector<std::exception_ptr> errors(pieces.size());
  const bool grad = grad_enabled();
  const auto work = [&](size_t i) {
    const bool before = set_grad_enabled(grad);
    const int device_before = runtime::current_device(devices_[i].type);
    try {
      runtime::set_current_device(devices_[i].type, devices_[i].index);
      results[i] = replicas_[i]->forward(pieces[i]);
    } catch (...) {
      errors[i] = std::current_exception();
    }
    runtime::set_current_device(devices_[i].type, device_before);
    set_grad_enabled(before);
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < pieces.size(); ++i) threads.emplace_back(work, i);
  work(0);
  for (std::thread& t : threads) t.join();
  for (size_t i = 0; i < errors.size(); ++i) {
    if (!errors[i]) continue;
    try {
      std::rethrow_exception(errors[i]);
    } catch (const Error& e) {
      throw_error(e.kind(), fmt::format("in replica {} on device {}: {}", i, devices_[i].str(), e.what()));
    }
  }
  for (Tensor& r : results) r = r.dim() == 0 ? r.view({1}).to(output_) : r.to(output_);
  return results.size() == 1 ? results[0] : cat(results, results[0].dim() == 1 ? 0 : dim_);
}

}  // namespace naru::nn
