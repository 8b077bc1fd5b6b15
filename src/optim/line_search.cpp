// L-BFGS: directions from past steps, and the line search (strong Wolfe conditions).
#include <algorithm>
#include <cmath>

#include "naru/autograd.h"
#include "naru/ops.h"
#include "naru/optim/steps.h"

namespace naru::optim {
namespace {

double dot_of(const Tensor& a, const Tensor& b) { return dot(a, b).item<double>(); }

// A point of the line search: the step length t, and the function's value, slope and gradient.
struct Point {
  double t, f;
  Tensor g;
  double slope;
};

// The minimum of the cubic through two points with their slopes, within [low, high]; the midpoint if there is none.
double cubic_minimum(const Point& a, const Point& b, double low, double high) {
  const double d1 = a.slope + b.slope - 3 * (a.f - b.f) / (a.t - b.t), square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const double d2 = std::sqrt(square);
  const Point &left = a.t <= b.t ? a : b, &right = a.t <= b.t ? b : a;
  const double place = right.t - (right.t - left.t) * ((right.slope + d2 - d1) / (right.slope - left.slope + 2 * d2));
  return std::min(std::max(place, low), high);
}

constexpr double kArmijo = 1e-4, kCurvature = 0.9;

class Search {
 public:
  Search(const std::function<std::pair<double, Tensor>(double)>& at, const Tensor& d, Point start, double tolerance, int64_t most)
      : at_(at), d_(d), start_(std::move(start)), tolerance_(tolerance), most_(most) {}

  LineSearch run(double t) {
    if (bracket(t)) return result(low_);
    zoom();
    return result(low_);
  }

 private:
  Point at(double t) {
    auto [f, g] = at_(t);
    ++evaluations_;
    const double slope = dot_of(g, d_);
    return {t, f, std::move(g), slope};
  }
  bool too_high(const Point& p) const { return p.f > start_.f + kArmijo * p.t * start_.slope; }
  bool flat_enough(const Point& p) const { return std::abs(p.slope) <= -kCurvature * start_.slope; }
  void between(Point a, Point b) {
    const bool first = a.f <= b.f;
    low_ = first ? a : b, high_ = first ? b : a;
  }
  // Increases the step until a point satisfies the conditions (returns true), or two points bracket one that does.
  bool bracket(double t) {
    Point before = start_, now = at(t);
    for (; steps_ < most_; ++steps_) {
      if (too_high(now) || (steps_ > 1 && now.f >= before.f)) return between(before, now), false;
      if (flat_enough(now)) return low_ = now, true;
      if (now.slope >= 0) return between(before, now), false;
      const double next = cubic_minimum(before, now, now.t + 0.01 * (now.t - before.t), now.t * 10);
      before = std::move(now);
      now = at(next);
    }
    between(start_, now);
    return false;
  }
  // A trial point between the two, moved away from either end if the last one was also close to an end.
  double next_place() {
    const double left = std::min(low_.t, high_.t), right = std::max(low_.t, high_.t), margin = 0.1 * (right - left);
    // The order of the points may differ from PyTorch's; the cubic is the same.
    double t = cubic_minimum(low_, high_, left, right);
    if (std::min(right - t, t - left) >= margin) {
      stuck_ = false;
      return t;
    }
    if (!stuck_ && t < right && t > left) {
      stuck_ = true;
      return t;
    }
    stuck_ = false;
    return std::abs(t - right) < std::abs(t - left) ? right - margin : left + margin;
  }
  void zoom() {
    const double width = d_.abs().max().item<double>();
    bool done = false;
    while (!done && steps_ < most_ && std::abs(high_.t - low_.t) * width >= tolerance_) {
      Point now = at(next_place());
      ++steps_;
      if (too_high(now) || now.f >= low_.f) {
        between(std::move(low_), std::move(now));
        continue;
      }
      done = flat_enough(now);
      if (!done && now.slope * (high_.t - low_.t) >= 0) high_ = low_;
      low_ = std::move(now);
    }
  }
  LineSearch result(const Point& p) const { return {p.f, p.g, p.t, evaluations_}; }

  const std::function<std::pair<double, Tensor>(double)>& at_;
  Tensor d_;
  Point start_, low_{}, high_{};
  double tolerance_;
  int64_t most_, steps_ = 0, evaluations_ = 0;
  bool stuck_ = false;
};

}  // namespace

void LbfgsHistory::add(const Tensor& change, const Tensor& step, size_t most) {
  const double curve = dot_of(change, step);
  if (!(curve > 1e-10)) return;
  if (changes.size() == most && most > 0) {
    changes.erase(changes.begin());
    steps.erase(steps.begin());
    inverse.erase(inverse.begin());
  }
  changes.push_back(change);
  steps.push_back(step);
  inverse.push_back(1 / curve);
  diagonal = curve / dot_of(change, change);
}

Tensor LbfgsHistory::direction(const Tensor& grad) const {
  Tensor q = -grad;
  std::vector<double> shares(changes.size());
  for (size_t i = changes.size(); i-- > 0;) {
    shares[i] = dot_of(steps[i], q) * inverse[i];
    q.add_(changes[i], -shares[i]);
  }
  q.mul_(diagonal);
  for (size_t i = 0; i < changes.size(); ++i) q.add_(steps[i], shares[i] - dot_of(changes[i], q) * inverse[i]);
  return q;
}

LineSearch strong_wolfe(const std::function<std::pair<double, Tensor>(double)>& at, double t, const Tensor& d, double f, const Tensor& g,
                        double slope, double tolerance_change, int64_t most) {
  return Search(at, d, {0, f, g, slope}, tolerance_change, most).run(t);
}

}  // namespace naru::optim
