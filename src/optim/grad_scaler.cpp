// GradScaler.
#include <fmt/format.h>

#include "naru/autograd.h"
#include "naru/error.h"
#include "naru/optim/amp.h"

namespace naru {

GradScaler::GradScaler(Options options) : options_(options), scale_(options.init_scale) {
  if (!(options.growth_factor > 1)) throw ValueError("GradScaler: the growth factor must be > 1, got {}", options.growth_factor);
  if (!(options.backoff_factor < 1 && options.backoff_factor > 0))
    throw ValueError("GradScaler: the backoff factor must be between 0 and 1, got {}", options.backoff_factor);
  if (options.growth_interval < 1) throw ValueError("GradScaler: the growth interval must be at least 1, got {}", options.growth_interval);
}

Tensor GradScaler::scale(const Tensor& loss) {
  if (!options_.enabled) return loss;
  used_ = true;
  return loss * scale_;
}

GradScaler::Progress& GradScaler::progress_of(const optim::Optimizer& optimizer) {
  for (auto& [known, progress] : progress_)
    if (known == &optimizer) return progress;
  return progress_.emplace_back(&optimizer, Progress()).second;
}

void GradScaler::unscale_(optim::Optimizer& optimizer) {
  if (!options_.enabled) return;
  if (!used_) throw RuntimeError("GradScaler: unscale_() before scale(); scale the loss first: scaler.scale(loss).backward()");
  Progress& progress = progress_of(optimizer);
  if (progress.stage == Stage::Unscaled)
    throw RuntimeError("unscale_() has already been called on this optimizer since the last update().");
  if (progress.stage == Stage::Stepped) throw RuntimeError("unscale_() is being called after step().");
  NoGrad guard;
  std::vector<std::pair<size_t, Tensor>> gradients;
  for (size_t i = 0; i < optimizer.parameters().size(); ++i)
    if (Tensor g = optimizer.parameters()[i].grad(); g.defined()) gradients.emplace_back(i, g);
  if (gradients.empty()) throw RuntimeError("GradScaler: no parameter of this optimizer has a gradient; call backward() first");
  for (const auto& [i, g] : gradients)
    if (g.dtype() == DType::F16) throw ValueError("Attempting to unscale FP16 gradients. (parameter {}: keep parameters in float32)", i);
  // 0 * x is 0 for finite x and NaN otherwise. Submit all sums before reading the first, to wait only once.
  std::vector<Tensor> found;
  for (auto& [i, g] : gradients) {
    g.mul_(1 / scale_);
    found.push_back(sum(g * 0));
  }
  size_t bad = 0, first = 0;
  for (size_t k = found.size(); k-- > 0;)
    if (found[k].item().to_double() != 0) ++bad, first = k;
  progress.bad = bad != 0;
  if (bad)
    progress.why = fmt::format("{} of {} gradients are not finite; the first is of parameter {}, shape {}", bad, gradients.size(),
                               gradients[first].first, gradients[first].second.sizes().str());
  progress.stage = Stage::Unscaled;
}

bool GradScaler::step(optim::Optimizer& optimizer) {
  why_.clear();
  if (!options_.enabled) {
    optimizer.step();
    return true;
  }
  if (progress_of(optimizer).stage == Stage::Stepped) throw RuntimeError("step() has already been called since the last update().");
  if (progress_of(optimizer).stage == Stage::Ready) unscale_(optimizer);
  Progress& progress = progress_of(optimizer);
  progress.stage = Stage::Stepped;
  if (progress.bad)
    why_ = fmt::format("skipped at scale {}: {}", scale_, progress.why);
  else
    optimizer.step();
  return !progress.bad;
}

void GradScaler::update() {
  if (!options_.enabled) return;
  bool any = false, bad = false;
  for (const auto& [optimizer, progress] : progress_) any |= progress.stage != Stage::Ready, bad |= progress.bad;
  if (!any) throw RuntimeError("GradScaler: update() without a step() or unscale_() since the last one");
  if (bad) {
    scale_ *= options_.backoff_factor;
    good_ = 0;
  } else if (++good_ == options_.growth_interval) {
    const double grown = scale_ * options_.growth_factor;
    if (grown < 0x1p128) scale_ = grown;  // within float32's range
    good_ = 0;
  }
  progress_.clear();
}

}  // namespace naru
