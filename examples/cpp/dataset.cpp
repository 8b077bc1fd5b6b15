// A data set of one's own: points of two spirals, computed when they are asked for, read by two threads, and learned by a small network.
#include <naru/naru.h>

#include <cmath>
#include <cstdio>
#include <memory>

namespace nn = naru::nn;
namespace data = naru::data;

class Spirals : public data::Dataset {
 public:
  explicit Spirals(int64_t count) : count_(count) {}
  int64_t size() const override { return count_; }
  // Input: a point (2). Target: which spiral it lies on.
  data::Sample get(int64_t i) const override {
    const int64_t arm = i % 2;
    const double t = 0.25 + static_cast<double>(i) / static_cast<double>(count_);
    const double angle = 6 * t + (arm ? 3.14159 : 0);
    return {naru::tensor({t * std::cos(angle), t * std::sin(angle)}), naru::tensor(arm)};
  }

 private:
  int64_t count_;
};

int main() {
  naru::manual_seed(1);
  const auto parts = data::random_split(std::make_shared<Spirals>(1000), {0.8, 0.2});
  const data::DataLoader loader(parts[0], {.batch_size = 32, .shuffle = true, .num_workers = 2});

  nn::Sequential model{nn::Linear(2, 32), nn::Tanh(), nn::Linear(32, 32), nn::Tanh(), nn::Linear(32, 2)};
  naru::optim::Adam optimizer(model.parameters(), 0.01);
  for (int epoch = 0; epoch < 20; ++epoch) {
    for (const data::Sample& batch : loader) {
      optimizer.zero_grad();
      nn::functional::cross_entropy(model(batch[0]), batch[1]).backward();
      optimizer.step();
    }
  }
  const naru::NoGrad no_grad;
  const data::Sample held_out = parts[1]->all();
  const double right = (model(held_out[0]).argmax(1) == held_out[1]).to(naru::DType::F32).mean().item<double>();
  std::printf("%lld points learned, %.0f %% of %lld others right\n", static_cast<long long>(parts[0]->size()), right * 100,
              static_cast<long long>(parts[1]->size()));
}
