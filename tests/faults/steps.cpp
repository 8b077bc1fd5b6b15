#include "steps.h"

#include <cstring>
#include <memory>
#include <stdexcept>

#include "naru/autograd.h"
#include "naru/data.h"
#include "naru/device/devices.h"
#include "naru/device/graph.h"
#include "naru/kernel.h"
#include "naru/nn.h"
#include "naru/ops/linalg.h"
#include "naru/optim.h"
#include "naru/optim/amp.h"
#include "naru/random.h"

namespace naru::faults {
namespace {

Options f32(Device d) { return {DType::F32, d}; }

Values values(std::initializer_list<Tensor> tensors) {
  Values v;
  for (const Tensor& t : tensors) v.push_back(t.to_doubles());
  return v;
}

// A model whose parameters start each step with the same values.
struct Model {
  nn::Sequential net;
  std::vector<Tensor> first;

  explicit Model(Device d)
      : net(nn::Linear(6, 8, true, f32(d)), nn::Tanh(), nn::LayerNorm({8}, 1e-5, true, true, f32(d)), nn::Dropout(0.25),
            nn::Linear(8, 3, true, f32(d))) {
    const NoGrad no_history;
    for (const Tensor& p : net.parameters()) first.push_back(p.to(Device("cpu"), false, true));
  }
  void begin() {
    const NoGrad no_history;
    const std::vector<Tensor> now = net.parameters();
    for (size_t i = 0; i < now.size(); ++i) Tensor(now[i]).copy_(first[i]);
    net.zero_grad();
    manual_seed(2);
  }
  Values parameters() {
    Values v;
    for (const Tensor& p : net.parameters()) v.push_back(p.detach().to_doubles());
    return v;
  }
};

std::shared_ptr<Model> model(Device d) {
  manual_seed(1);
  return std::make_shared<Model>(d);
}

Tensor inputs(Device d) { return linspace(-1, 1, 30, f32(d)).view({5, 6}); }
Tensor targets(Device d) { return tensor({0, 2, 1, 1, 0}, Options(d)); }

template <class Optimizer, class Settings>
Once training(Device d, Settings settings, int times) {
  return [m = model(d), x = inputs(d), y = targets(d), settings, times] {
    m->begin();
    Optimizer optimizer(m->net.parameters(), settings);
    for (int i = 0; i < times; ++i) {
      optimizer.zero_grad();
      cross_entropy(m->net(x), y).backward();
      optimizer.step();
    }
    return m->parameters();
  };
}

Once adam(Device d) { return training<optim::AdamW>(d, 0.01, 1); }
Once sgd(Device d) { return training<optim::SGD>(d, SgdOptions{.lr = 0.1, .momentum = 0.9}, 2); }

Once mixed_precision(Device d) {
  return [m = model(d), x = inputs(d), y = targets(d), d] {
    m->begin();
    optim::SGD optimizer(m->net.parameters(), 0.1);
    GradScaler scaler({.init_scale = 1024});
    Tensor loss;
    {
      const Autocast block(d.type, DType::BF16);
      loss = cross_entropy(m->net(x), y);
    }
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    return m->parameters();
  };
}

Once copies(Device d) {
  return [d] {
    const Tensor here = arange(0, 1000, 1, DType::F32), there = here.to(d);
    Tensor narrow = there.to(DType::F64).view({10, 100}).t();
    Tensor other = empty({100, 10}, f32(d));
    other.copy_(narrow, true);
    other += there.view({100, 10});
    Tensor back = empty({100, 10}, DType::F32);
    back.copy_(other);
    return values({back, cat({there, other.flatten()}), there.cpu(), stack({there, there}).narrow(1, 3, 7).clone()});
  };
}

Once elementwise(Device d) {
  return [x = linspace(-2, 2, 300, f32(d))] {
    const Tensor a = (x * 2 + 1).tanh(), b = (a - x).square().mean(), c = where(x.gt(0), a, x.exp());
    Tensor y = c.view({3, 100}).t().clone();
    y.add_(1).mul_(a.view({100, 3}));
    y[{Slice(0, 10)}].zero_();
    return values({b, y, (y / 3).sum(), c});
  };
}

Once reductions(Device d) {
  return [x = linspace(-3, 3, 6000, f32(d)).view({20, 300})] {
    const auto [largest, where_largest] = max(x, 1);
    const auto [variance, average] = var_mean(x, Dims{0});
    return values({sum(x), mean(x, Dims{0}), largest, where_largest, variance, average, argmin(x), softmax(x, 1), logsumexp(x, {0}),
                   cumsum(x, 1), norm(x), any(x.gt(0), Dims{0})});
  };
}

Once products(Device d) {
  return [a = linspace(-1, 1, 600, f32(d)).view({20, 30}), b = linspace(0, 1, 1200, f32(d)).view({40, 30})] {
    return values({matmul(a, b.t()), linear(a, b, b.select(1, 0)), bmm(a.view({2, 10, 30}), b.view({2, 20, 30}).transpose(1, 2)),
                   mv(a, b[3]), addmm(ones({20, 20}, f32(a.device())), a, a.t(), 0.5, 2)});
  };
}

Once convolutions(Device d) {
  return [x = linspace(-1, 1, 2 * 3 * 6 * 5, f32(d)).view({2, 3, 6, 5}), w = linspace(0, 1, 4 * 3 * 3 * 3, f32(d)).view({4, 3, 3, 3}),
          b = ones({4}, f32(d))] {
    const Tensor image = x.clone().requires_grad_(), weight = w.clone().requires_grad_();
    const Tensor y = conv2d(image, weight, b, 1, 1);
    y.square().sum().backward();
    return values({y.detach(), image.grad(), weight.grad(), conv2d(x.transpose(2, 3), w)});
  };
}

// Operators that only libraries implement on cuda.
Once factors(Device d) {
  return [a = linspace(-1, 1, 24, f32(d)).view({2, 4, 3}), m = eye(3, 3, f32(d)) * 3 + 0.5] {
    const auto [q, r] = linalg::qr(a);
    const auto [u, s, vt] = linalg::svd(a.transpose(1, 2), false);
    return values(
        {q, r, s, matmul(u * s.unsqueeze(-2), vt), linalg::eigvalsh(m), linalg::solve(m, a[0].t()), linalg::cholesky(stack({m, m}))});
  };
}

Once sorting(Device d) {
  return [x = (arange(0, 500, 1, f32(d)) * 37).remainder(101).view({5, 100})] {
    const auto [sorted, order] = sort(x, 1, true);
    const auto [largest, places] = topk(x, 7);
    const auto [found, back, counts] = unique(x);
    return values({sorted, order, largest, places, found, back, counts, argsort(x, 0)});
  };
}

Once indexing(Device d) {
  return [d, x = linspace(-1, 1, 120, f32(d)).view({12, 10}), i = tensor({3, 0, 3, 11}, Options(d))] {
    Tensor written = x.clone();
    written.index_put_(std::vector<Index>{i}, ones({4, 10}, f32(d)), true);
    const Tensor leaf = x.clone().requires_grad_();
    (leaf[{i}] * 2).sum().backward();
    const Tensor columns = i.unsqueeze(1).expand({4, 10}).contiguous();
    return values({index_select(x, 0, i), written, leaf.grad(), gather(x, 0, columns), scatter_add(x, 0, columns, ones({4, 10}, f32(d))),
                   masked_select(x, x.gt(0)), nonzero(x.gt(0.5)), masked_fill(x, x.lt(0), 0), one_hot(i, 12), embedding(x, i)});
  };
}

Once random_numbers(Device d) {
  return [d] {
    manual_seed(3);
    Tensor drawn = empty({64}, f32(d));
    drawn.normal_();
    return values({rand({100}, f32(d)), randn({7, 9}, f32(d)), randint(0, 9, {20}, Options(d)), randperm(50, Options(d)), drawn,
                   dropout(ones({200}, f32(d))), multinomial(ones({5}, f32(d)), 8, true), bernoulli(full({30}, 0.5, f32(d)))});
  };
}

constexpr const char* kSource = R"(
kernel void scaled(const float* x, float scale, float* y) { int i = global_id(0); y[i] = scale * x[i] * x[i]; }
kernel void scaled_backward(const float* x, float scale, const float* grad_y, float* grad_x) {
  int i = global_id(0);
  grad_x[i] = 2 * scale * x[i] * grad_y[i];
})";

Once user_kernel(Device d) {
  auto kernel = std::make_shared<Kernel>(kSource, "scaled");
  kernel->set_backward("scaled_backward");
  return [d, kernel, x = linspace(0, 1, 200, f32(d))] {
    const Tensor leaf = x.clone().requires_grad_();
    Tensor y = zeros({200}, f32(d));
    (*kernel)({leaf, 3, y}, {.grid = {200}});
    y.sum().backward();
    return values({y.detach(), leaf.grad()});
  };
}

// x, through a chain of operators that change nothing; the variant's digits choose them.
Once new_programs(Device d) {
  return [chosen = variant, x = linspace(1, 2, 2000, f32(d))] {
    Tensor y = x + 0.0;
    for (uint64_t digits = chosen + 1; digits != 0; digits /= 4) switch (digits % 4) {
        case 0:
          y = neg(neg(y));
          break;
        case 1:
          y = abs(y);
          break;
        case 2:
          y = relu(y);
          break;
        default:
          y = maximum(y, x);
      }
    return values({y, sum(y.view({20, 100}).t().clone()), amax(y * 1.0, Dims{0})});
  };
}

struct Captured {
  Graph graph;
  Tensor x, w, loss, noise;
};

void capture(Captured& c, Device d) {
  c.graph.capture(
      [&] {
        c.noise = rand({4, 5}, f32(d));
        c.loss = (matmul(c.x, c.w).tanh() + c.noise).square().mean();
        c.w.mul_(0.5);
      },
      d);
}

Once graph_replays(Device d) {
  auto c = std::make_shared<Captured>();
  c->x = ones({4, 3}, f32(d)), c->w = ones({3, 5}, f32(d));
  capture(*c, d);
  return [c, d] {
    c->x.copy_(linspace(-1, 1, 12, DType::F32).view({4, 3}));
    c->w.fill_(2);
    manual_seed(4);
    c->graph.replay();
    c->graph.replay();
    return values({c->loss, c->w, c->noise});
  };
}

Once graph_captures(Device d) {
  return [d] {
    manual_seed(5);
    Captured c;
    c.x = ones({4, 3}, f32(d)), c.w = ones({3, 5}, f32(d));
    capture(c, d);
    c.graph.replay();
    return values({c.loss, c.w, c.noise});
  };
}

Once batches(Device d) {
  auto set = std::make_shared<data::TensorDataset>(linspace(0, 1, 60, DType::F32).view({20, 3}), arange(0, 20));
  return [d, set] {
    Generator order(6);
    const data::DataLoader loader(set, {.batch_size = 6, .shuffle = true, .generator = &order, .num_workers = 2});
    Values v;
    for (const data::Sample& batch : loader)
      for (const Tensor& t : batch) v.push_back((t.to(d) * 2).to_doubles());
    return v;
  };
}

}  // namespace

const std::vector<Step>& steps() {
  static const std::vector<Step> all = {{"adam", adam},
                                        {"sgd", sgd},
                                        {"mixed_precision", mixed_precision},
                                        {"copies", copies},
                                        {"elementwise", elementwise},
                                        {"reductions", reductions},
                                        {"products", products},
                                        {"convolutions", convolutions},
                                        {"factors", factors},
                                        {"sorting", sorting},
                                        {"indexing", indexing},
                                        {"random_numbers", random_numbers},
                                        {"user_kernel", user_kernel},
                                        {"new_programs", new_programs},
                                        {"graph_replays", graph_replays},
                                        {"graph_captures", graph_captures},
                                        {"batches", batches}};
  return all;
}

const Step& step(const char* name) {
  for (const Step& s : steps())
    if (!std::strcmp(s.name, name)) return s;
  throw std::out_of_range(name);
}

}  // namespace naru::faults
