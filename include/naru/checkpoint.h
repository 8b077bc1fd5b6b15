// Models and optimizers in files of PyTorch's format: what torch.save(model.state_dict(), "model.pt") writes, and reads.
//
//   save(model, "model.pt");                      // and Python: model.load_state_dict(torch.load("model.pt"))
//   load(model, "model.pt");
//   save(Value::Dict{{"model", state_of(model)}, {"optimizer", state_of(optimizer)}, {"epoch", epoch}}, "checkpoint.pt");
//   const Value checkpoint = load("checkpoint.pt");
//   load_state(model, checkpoint["model"]);
#pragma once

#include <string>
#include <vector>

#include "naru/io.h"
#include "naru/module.h"
#include "naru/optim.h"
#include "naru/value.h"

namespace naru {

// A module's parameters and persistent buffers by name.
Value state_of(const nn::Module& module);
// {"state": a dict for each parameter's number, "param_groups": the settings with the numbers as "params"}, as PyTorch's optimizers have it.
Value state_of(const optim::Optimizer& optimizer);
// RuntimeError as Module::load_state_dict and Optimizer::load_state_dict throw it, ValueError for groups that don't fit; nothing is changed then.
void load_state(nn::Module& module, const Value& state, bool strict = true);
void load_state(optim::Optimizer& optimizer, const Value& state);

inline void save(const nn::Module& module, const std::string& path) { save(state_of(module), path); }
inline void save(const optim::Optimizer& optimizer, const std::string& path) { save(state_of(optimizer), path); }
template <class M>
requires(nn::ModuleLike<M> && !std::is_base_of_v<nn::Module, M>) void save(const M& shared, const std::string& path) {
  save(*std::shared_ptr<nn::Module>(shared), path);
}
inline void load(nn::Module& module, const std::string& path, Place where = NARU_CALLER) {
  const Here here(where);
  load_state(module, load(path, {}, where));
}
inline void load(optim::Optimizer& optimizer, const std::string& path, Place where = NARU_CALLER) {
  const Here here(where);
  load_state(optimizer, load(path, {}, where));
}
template <class M>
requires(nn::ModuleLike<M> && !std::is_base_of_v<nn::Module, M>) void load(M& shared, const std::string& path) {
  load(*std::shared_ptr<nn::Module>(shared), path);
}
inline void load(Tensor& t, const std::string& path) { t = load(path).tensor(); }
inline void load(std::vector<Tensor>& list, const std::string& path) { list = load(path).tensors(); }

}  // namespace naru
