// The settings of each optimizer, by their PyTorch names.
#include "naru/optim.h"

namespace naru::optim {

SettingPlaces places_of(SgdOptions& o) {
  return {{"lr", o.lr},
          {"momentum", o.momentum},
          {"dampening", o.dampening},
          {"weight_decay", o.weight_decay},
          {"nesterov", o.nesterov},
          {"maximize", o.maximize}};
}
SettingPlaces places_of(AdamOptions& o) {
  return {{"lr", o.lr},
          {"betas", o.beta1, o.beta2},
          {"eps", o.eps},
          {"weight_decay", o.weight_decay},
          {"amsgrad", o.amsgrad},
          {"maximize", o.maximize},
          {"capturable", o.capturable},
          {"decoupled_weight_decay", o.decoupled}};
}
SettingPlaces places_of(RmspropOptions& o) {
  return {{"lr", o.lr},
          {"momentum", o.momentum},
          {"alpha", o.alpha},
          {"eps", o.eps},
          {"centered", o.centered},
          {"weight_decay", o.weight_decay},
          {"maximize", o.maximize}};
}
SettingPlaces places_of(AdagradOptions& o) {
  return {{"lr", o.lr},
          {"lr_decay", o.lr_decay},
          {"eps", o.eps},
          {"weight_decay", o.weight_decay},
          {"initial_accumulator_value", o.initial_accumulator_value},
          {"maximize", o.maximize}};
}
SettingPlaces places_of(SparseAdamOptions& o) {
  return {{"lr", o.lr}, {"betas", o.beta1, o.beta2}, {"eps", o.eps}, {"maximize", o.maximize}};
}
SettingPlaces places_of(AdadeltaOptions& o) {
  return {{"lr", o.lr}, {"rho", o.rho}, {"eps", o.eps}, {"weight_decay", o.weight_decay}, {"maximize", o.maximize}};
}
SettingPlaces places_of(AdamaxOptions& o) {
  return {{"lr", o.lr}, {"betas", o.beta1, o.beta2}, {"eps", o.eps}, {"weight_decay", o.weight_decay}, {"maximize", o.maximize}};
}
SettingPlaces places_of(NadamOptions& o) {
  return {{"lr", o.lr},
          {"betas", o.beta1, o.beta2},
          {"eps", o.eps},
          {"weight_decay", o.weight_decay},
          {"momentum_decay", o.momentum_decay},
          {"decoupled_weight_decay", o.decoupled},
          {"maximize", o.maximize}};
}

SettingPlaces places_of(RadamOptions& o) {
  return {{"lr", o.lr},
          {"betas", o.beta1, o.beta2},
          {"eps", o.eps},
          {"weight_decay", o.weight_decay},
          {"decoupled_weight_decay", o.decoupled},
          {"maximize", o.maximize}};
}
SettingPlaces places_of(RpropOptions& o) {
  return {{"lr", o.lr}, {"etas", o.eta_minus, o.eta_plus}, {"step_sizes", o.step_min, o.step_max}, {"maximize", o.maximize}};
}
SettingPlaces places_of(AsgdOptions& o) {
  return {{"lr", o.lr}, {"lambd", o.lambd}, {"alpha", o.alpha}, {"t0", o.t0}, {"weight_decay", o.weight_decay}, {"maximize", o.maximize}};
}
SettingPlaces places_of(AdafactorOptions& o) {
  return {{"lr", o.lr}, {"beta2_decay", o.beta2_decay}, {"d", o.d}, {"weight_decay", o.weight_decay}, {"maximize", o.maximize}};
}
SettingPlaces places_of(MuonOptions& o) {
  return {{"lr", o.lr}, {"weight_decay", o.weight_decay}, {"momentum", o.momentum}, {"nesterov", o.nesterov}, {"eps", o.eps}};
}

std::vector<Optimizer::Setting> read_settings(const SettingPlaces& places) {
  using Kind = Optimizer::Setting::Kind;
  std::vector<Optimizer::Setting> list;
  for (const SettingPlace& p : places)
    list.push_back(p.on ? Optimizer::Setting{p.name, Kind::Switch, *p.on ? 1.0 : 0.0}
                        : Optimizer::Setting{p.name, p.second ? Kind::Pair : Kind::Number, *p.value, p.second ? *p.second : 0});
  return list;
}

void write_settings(const SettingPlaces& places, const std::vector<Optimizer::Setting>& settings) {
  for (const Optimizer::Setting& s : settings)
    for (const SettingPlace& p : places) {
      if (s.name != p.name) continue;
      if ((s.kind == Optimizer::Setting::Kind::Pair) != (p.second != nullptr))
        throw ValueError("optimizer: {} should be {}", s.name, p.second ? "two numbers" : "one number");
      if (p.on) *p.on = s.value != 0;
      if (p.value) *p.value = s.value;
      if (p.second) *p.second = s.second;
    }
}

}  // namespace naru::optim
