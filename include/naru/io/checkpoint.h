// Saving and loading models and optimizers in PyTorch's format, as torch.save(model.state_dict(), "model.pt") does.
//
//   save(model, "model.pt");                      // in Python: model.load_state_dict(torch.load("model.pt"))
//   load(model, "model.pt");
//   save(Value::Dict{{"model", state_of(model)}, {"optimizer", state_of(optimizer)}, {"epoch", epoch}}, "checkpoint.pt");
//   const Value checkpoint = load("checkpoint.pt");
//   load_state(model, checkpoint["model"]);
#pragma once

#include <string>
#include <vector>

#include "naru/io.h"
#include "naru/io/value.h"
#include "naru/nn/module.h"
#include "naru/optim.h"

namespace naru {

// A module's parameters and persistent buffers by name.
Value state_of(const nn::Module& module);
// In the form of PyTorch's optimizers: {"state": a dict per parameter index, "param_groups": the settings, with the parameter indices as
// "params"}.
Value state_of(const optim::Optimizer& optimizer);
// Throw RuntimeError like Module::load_state_dict and Optimizer::load_state_dict, and ValueError for groups that don't fit; then nothing is
// changed.
void load_state(nn::Module& module, const Value& state, bool strict = true);
void load_state(optim::Optimizer& optimizer, const Value& state);

inline void save(const nn::Module& module, const std::string& path) { save(state_of(module), path); }
inline void save(const optim::Optimizer& optimizer, const std::string& path) { save(state_of(optimizer), path); }
template <class M>
requires(nn::ModuleLike<M> && !std::is_base_of_v<nn::Module, M>) void save(const M& shared, const std::string& path) {
  save(*std::shared_ptr<nn::Module>(shared), path);
}
inline void load(nn::Module& module, const std::string& path, SourceLocation where = NARU_CURRENT_LOCATION) {
  const SourceLocationScope here(where);
  load_state(module, load(path, {}, where));
}
inline void load(optim::Optimizer& optimizer, const std::string& path, SourceLocation where = NARU_CURRENT_LOCATION) {
  const SourceLocationScope here(where);
  load_state(optimizer, load(path, {}, where));
}
template <class M>
requires(nn::ModuleLike<M> && !std::is_base_of_v<nn::Module, M>) void load(M& shared, const std::string& path) {
  load(*std::shared_ptr<nn::Module>(shared), path);
}
inline void load(Tensor& t, const std::string& path) { t = load(path).tensor(); }
inline void load(std::vector<Tensor>& list, const std::string& path) { list = load(path).tensors(); }

}  // namespace naru
