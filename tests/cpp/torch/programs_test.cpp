// libtorch programs that include naru/torch.h instead of torch/torch.h; nothing else is changed.
#include "naru/torch.h"

#include <gtest/gtest.h>

#include <unistd.h>
#include <cmath>
#include <cstdio>

#include <filesystem>
#include <fstream>
#include <tuple>

namespace {

// --- fitting a polynomial

constexpr int64_t kDegree = 3;

torch::Tensor powers(torch::Tensor x) {
  x = x.unsqueeze(1);
  std::vector<torch::Tensor> columns;
  for (int64_t i = 0; i < kDegree; ++i) columns.push_back(x.pow(i + 1));
  return torch::cat(columns, /*dim=*/1);
}

TEST(TorchPrograms, ARegressionFindsItsCoefficients) {
  torch::manual_seed(3);
  const torch::Tensor weights = torch::randn({kDegree, 1}) * 2, offset = torch::randn({1});
  auto fc = torch::nn::Linear(weights.size(0), 1);
  torch::optim::SGD optimizer(fc->parameters(), /*lr=*/0.05);
  double loss = 1;
  for (int step = 0; step < 3000 && loss > 1e-4; ++step) {
    const auto x = powers(torch::rand({32}) * 2 - 1);
    const auto y = x.matmul(weights) + offset[0].item<float>();
    optimizer.zero_grad();
    auto error = torch::smooth_l1_loss(fc(x), y);
    error.backward();
    optimizer.step();
    loss = error.item<float>();
  }
  EXPECT_LE(loss, 1e-4);
  EXPECT_NEAR(fc->bias[0].item<float>(), offset[0].item<float>(), 0.1);
  fc->zero_grad();
  for (auto& p : fc->parameters()) EXPECT_FALSE(p.grad().defined());
}

// --- derivatives

class AffineFunction : public torch::autograd::Function<AffineFunction> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* ctx, torch::Tensor input, torch::Tensor weight,
                               torch::Tensor bias = torch::Tensor(), double scale = 1) {
    ctx->save_for_backward({input, weight, bias});
    ctx->saved_data["scale"] = scale;
    auto output = input.matmul(weight.t()) * scale;
    if (bias.defined()) output += bias;
    return output;
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* ctx, torch::autograd::tensor_list grads) {
    const auto saved = ctx->get_saved_variables();
    const double scale = ctx->saved_data["scale"].toDouble();
    auto bias = saved[2].defined() ? torch::sum(grads[0], 0) : torch::Tensor();
    return {grads[0].matmul(saved[1]) * scale, grads[0].t().matmul(saved[0]) * scale, bias, torch::Tensor()};
  }
};

TEST(TorchPrograms, DerivativesAreTakenInAllWays) {
  auto x = torch::ones({2, 2}, torch::requires_grad());
  auto y = x + 2;
  EXPECT_EQ(y.grad_fn()->name(), "AddBackward0");
  (y * y * 3).mean().backward();
  EXPECT_FLOAT_EQ(x.grad()[0][0].item<float>(), 4.5);
  {
    torch::NoGradGuard no_grad;
    EXPECT_FALSE((x * 2).requires_grad());
    EXPECT_FALSE(torch::GradMode::is_enabled());
  }
  {
    torch::InferenceMode inference;
    EXPECT_FALSE((x * 2).requires_grad());
  }
  auto v = torch::tensor({0.1, 1.0, 0.0001}, torch::kFloat);
  EXPECT_EQ(v.dtype(), torch::kFloat32);

  auto model = torch::nn::Linear(4, 3);
  auto input = torch::randn({3, 4}).requires_grad_(true);
  auto output = model(input);
  auto gradients = torch::autograd::grad({output}, {input}, {torch::ones_like(output) / 3.0}, /*retain_graph=*/true, /*create_graph=*/true);
  auto penalty = ((gradients[0] * gradients[0]).sum().sqrt() - 1).pow(2);
  penalty.backward();
  EXPECT_TRUE(model->weight.grad().defined());

  const auto a = torch::randn({2, 3}, torch::kDouble).requires_grad_(), w = torch::randn({4, 3}, torch::kDouble).requires_grad_(),
             b = torch::randn({4}, torch::kDouble).requires_grad_();
  auto z = AffineFunction::apply(a, w, b, 2.0);
  z.sum().backward();
  EXPECT_TRUE(torch::allclose(a.grad(), torch::ones({2, 4}, torch::kDouble).matmul(w.detach()) * 2));
  EXPECT_TRUE(torch::autograd::gradcheck(
      [](const torch::Tensor& i, const torch::Tensor& k) { return AffineFunction::apply(i, k, torch::Tensor(), 1.0); }, {a, w}));
}

// --- digits: files, a convolutional network, training and test

void write_idx(const std::string& path, const std::vector<int32_t>& sizes, const std::vector<uint8_t>& bytes) {
  std::ofstream f(path, std::ios::binary);
  const char head[] = {0, 0, 8, static_cast<char>(sizes.size())};
  f.write(head, 4);
  for (const int32_t n : sizes)
    for (int shift = 24; shift >= 0; shift -= 8) f.put(static_cast<char>(n >> shift & 255));
  f.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// Images of 28 x 28 with a bar at one of three heights.
std::string digits_folder(int count) {
  const std::string root = ::testing::TempDir() + "naru_digits_" + std::to_string(::getpid());
  std::filesystem::create_directories(root);
  std::vector<uint8_t> images(static_cast<size_t>(count) * 784), labels(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    labels[static_cast<size_t>(i)] = static_cast<uint8_t>(i % 3);
    for (int y = 0; y < 6; ++y)
      for (int x = 4; x < 24; ++x) images[static_cast<size_t>(i * 784 + (3 + 8 * (i % 3) + y) * 28 + x)] = 255;
  }
  for (const char* kind : {"/train", "/t10k"}) {
    write_idx(root + kind + "-images-idx3-ubyte", {count, 28, 28}, images);
    write_idx(root + kind + "-labels-idx1-ubyte", {count}, labels);
  }
  return root;
}

struct Net : torch::nn::Module {
  Net()
      : conv1(torch::nn::Conv2dOptions(1, 4, /*kernel_size=*/5)),
        conv2(torch::nn::Conv2dOptions(4, 8, 5).stride(1)),
        fc1(128, 16),
        fc2(16, 3) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("drop", drop);
    register_module("fc1", fc1);
    fc2 = register_module("fc2", torch::nn::Linear(torch::nn::LinearOptions(16, 3).bias(true)));
  }
  torch::Tensor forward(const torch::Tensor& in) override {
    auto x = torch::relu(torch::max_pool2d(conv1->forward(in), 2));
    x = torch::relu(torch::max_pool2d(drop->forward(conv2->forward(x)), 2));
    x = x.view({-1, 128});
    x = torch::relu(fc1->forward(x));
    x = torch::dropout(x, /*p=*/0.1, /*training=*/is_training());
    x = fc2->forward(x);
    return torch::log_softmax(x, /*dim=*/1);
  }
  torch::nn::Conv2d conv1;
  torch::nn::Conv2d conv2;
  torch::nn::Dropout2d drop{torch::nn::DropoutOptions(0.1)};
  torch::nn::Linear fc1;
  torch::nn::Linear fc2{nullptr};
};

template <typename DataLoader>
void train(Net& model, torch::Device device, DataLoader& data_loader, torch::optim::Optimizer& optimizer) {
  model.train();
  for (auto& batch : data_loader) {
    auto data = batch.data.to(device), targets = batch.target.to(device);
    optimizer.zero_grad();
    auto output = model.forward(data);
    auto loss = torch::nll_loss(output, targets);
    TORCH_CHECK(!std::isnan(loss.template item<float>()), "the loss is ", "nan");
    loss.backward();
    optimizer.step();
  }
}

template <typename DataLoader>
double accuracy(Net& model, torch::Device device, DataLoader& data_loader, size_t size) {
  torch::NoGradGuard no_grad;
  model.eval();
  double loss = 0;
  int64_t correct = 0;
  for (const auto& batch : data_loader) {
    auto data = batch.data.to(device), targets = batch.target.to(device);
    auto output = model.forward(data);
    loss += torch::nll_loss(output, targets, /*weight=*/{}, torch::Reduction::Sum).template item<float>();
    correct += output.argmax(1).eq(targets).sum().template item<int64_t>();
  }
  EXPECT_TRUE(std::isfinite(loss));
  return static_cast<double>(correct) / static_cast<double>(size);
}

TEST(TorchPrograms, ANetworkLearnsDigitsFromFiles) {
  torch::manual_seed(1);
  torch::DeviceType device_type = torch::kCPU;
  if (torch::cuda::is_available()) device_type = torch::kCUDA;
  torch::Device device(device_type);
  Net model;
  model.to(device);
  const std::string root = digits_folder(30);
  auto train_dataset =
      torch::data::datasets::MNIST(root).map(torch::data::transforms::Normalize<>(0.1307, 0.3081)).map(torch::data::transforms::Stack<>());
  const size_t train_size = train_dataset.size().value();
  EXPECT_EQ(train_size, 30u);
  auto train_loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(std::move(train_dataset), 8);
  auto test_dataset = torch::data::datasets::MNIST(root, torch::data::datasets::MNIST::Mode::kTest)
                          .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
                          .map(torch::data::transforms::Stack<>());
  auto test_loader = torch::data::make_data_loader(std::move(test_dataset), torch::data::DataLoaderOptions().batch_size(16).workers(2));
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.05).momentum(0.5));
  for (int epoch = 0; epoch < 6; ++epoch) train(model, device, *train_loader, optimizer);
  EXPECT_EQ(accuracy(model, device, *test_loader, 30), 1.0);
  std::ofstream(root + "/train-images-idx3-ubyte") << "short";
  EXPECT_THROW(torch::data::datasets::MNIST{root}, naru::RuntimeError);
  std::filesystem::remove_all(root);
}

// --- a user-defined data set

class Squares : public torch::data::datasets::Dataset<Squares> {
 public:
  explicit Squares(size_t n) : n_(n) {}
  torch::data::Example<> get(size_t i) override {
    const auto x = static_cast<double>(i);
    return {torch::tensor({x}, torch::kFloat), torch::tensor({x * x}, torch::kFloat)};
  }
  torch::optional<size_t> size() const override { return n_; }

 private:
  size_t n_;
};

TEST(TorchPrograms, ADataSetOfTheProgramsOwnIsReadInBatches) {
  auto data_set = Squares(10).map(torch::data::transforms::Stack<>());
  auto loader = torch::data::make_data_loader<torch::data::samplers::RandomSampler>(
      std::move(data_set), torch::data::DataLoaderOptions().batch_size(4).drop_last(false));
  int64_t samples = 0;
  double sum = 0;
  for (auto& batch : *loader) {
    EXPECT_TRUE(torch::equal(batch.data * batch.data, batch.target));
    samples += batch.data.size(0);
    sum += batch.data.sum().item<double>();
  }
  EXPECT_EQ(samples, 10);
  EXPECT_EQ(sum, 45);
  auto examples = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(Squares(3), 2);
  size_t batches = 0;
  for (auto& batch : *examples) EXPECT_EQ(batch.size(), ++batches == 1 ? 2u : 1u);
  auto changed = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Squares(2)
          .map(torch::data::transforms::TensorLambda<>([](torch::Tensor t) { return t + 1; }))
          .map(torch::data::transforms::Stack<>()),
      2);
  EXPECT_EQ(changed->begin()->data.sum().item<double>(), 3);
}

// --- two adversarial networks

struct GeneratorImpl : torch::nn::Module {
  explicit GeneratorImpl(int noise)
      : up1(torch::nn::ConvTranspose2dOptions(noise, 8, 4).bias(false)),
        norm(8),
        up2(torch::nn::ConvTranspose2dOptions(8, 1, 4).stride(2).padding(1).bias(false)) {
    register_module("up1", up1);
    register_module("norm", norm);
    register_module("up2", up2);
  }
  torch::Tensor forward(const torch::Tensor& x) override { return torch::tanh(up2(torch::relu(norm(up1(x))))); }
  torch::nn::ConvTranspose2d up1;
  torch::nn::BatchNorm2d norm;
  torch::nn::ConvTranspose2d up2;
};
TORCH_MODULE(Generator);

TEST(TorchPrograms, AGeneratorAndADiscriminatorTakeTurns) {
  torch::manual_seed(1);
  Generator generator(3);
  torch::nn::Sequential discriminator(torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 4, 4).stride(2).padding(1).bias(false)),
                                      torch::nn::LeakyReLU(torch::nn::LeakyReLUOptions().negative_slope(0.2)),
                                      torch::nn::Conv2d(torch::nn::Conv2dOptions(4, 1, 4).bias(false)), torch::nn::Sigmoid(),
                                      torch::nn::Functional([](const torch::Tensor& x, int64_t n) { return x.reshape({n}); }, int64_t{-1}));
  torch::optim::Adam slow(generator->parameters(), torch::optim::AdamOptions(2e-4).betas(std::make_tuple(0.5, 0.5)));
  torch::optim::Adam fast(discriminator->parameters(), torch::optim::AdamOptions(5e-3).betas(std::make_tuple(0.5, 0.5)));
  double first = 0, last = 0;
  for (int step = 0; step < 20; ++step) {
    discriminator->zero_grad();
    const auto real = torch::ones({4, 1, 8, 8}), labels = torch::empty({4}, torch::kCPU).fill_(0.9);
    auto noise = torch::randn({4, 3, 1, 1}, torch::kCPU);
    auto fake = generator->forward(noise);
    auto loss = torch::binary_cross_entropy(discriminator->forward(real), labels) +
                torch::binary_cross_entropy(discriminator->forward(fake.detach()), torch::zeros({4}));
    loss.backward();
    fast.step();
    generator->zero_grad();
    torch::binary_cross_entropy(discriminator->forward(fake), torch::ones({4})).backward();
    slow.step();
    (step == 0 ? first : last) = loss.item<float>();
  }
  EXPECT_LT(last, first);
}

// --- module holders, options

struct BlockImpl : torch::nn::Module {
  BlockImpl(int64_t in, int64_t out) : linear(register_module("linear", torch::nn::Linear(in, out))) {
    scale = register_parameter("scale", torch::ones({out}));
  }
  torch::Tensor forward(torch::Tensor x, double by = 1) { return torch::relu(linear(x)) * scale * by; }
  torch::nn::Linear linear{nullptr};
  torch::Tensor scale;
};
TORCH_MODULE(Block);

TEST(TorchNames, HoldersShareTheirModules) {
  Block block(3, 2), same = block;
  EXPECT_EQ(block.get(), same.get());
  EXPECT_EQ(block(torch::ones({1, 3}), 2.0).sizes(), (torch::IntArrayRef{1, 2}));
  std::vector<std::string> names;
  for (const auto& [name, p] : block->named_parameters()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"scale", "linear.weight", "linear.bias"}));
  torch::nn::Linear empty{nullptr};
  EXPECT_TRUE(empty.is_empty());
  EXPECT_THROW(empty->forward(torch::ones({1})), naru::RuntimeError);
  torch::nn::Sequential model(torch::nn::Linear(3, 4), torch::nn::ReLU(), torch::nn::Dropout(torch::nn::DropoutOptions().p(0.5)),
                              torch::nn::Functional([](const torch::Tensor& x) { return x * 2; }),
                              torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(4).affine(false)));
  model->push_back(torch::nn::LogSoftmax(torch::nn::LogSoftmaxOptions(1)));
  model->push_back("last", torch::nn::Flatten());
  model->eval();
  EXPECT_EQ(model(torch::ones({2, 3})).sizes(), (torch::IntArrayRef{2, 4}));
  EXPECT_EQ(model->parameters().size(), 2u);
  const auto criterion = torch::nn::CrossEntropyLoss(torch::nn::CrossEntropyLossOptions().reduction(torch::kSum));
  EXPECT_NEAR(criterion(torch::zeros({2, 4}), torch::tensor({0, 1})).item<double>(), 2 * std::log(4), 1e-6);
}

TEST(TorchNames, FunctionsAreLayersWithWhatFollowsTheTensor) {
  const torch::ExpandingArray<2> two({2, 2});
  torch::nn::Sequential net(torch::nn::Functional(torch::relu), torch::nn::Functional(torch::max_pool2d, 2, two, 0, 1, false),
                            torch::nn::Functional(torch::reshape, torch::ExpandingArray<2>({-1, 4})),
                            torch::nn::Functional(torch::log_softmax, 1, torch::nullopt));
  const at::Tensor x = torch::arange(-4, 12, 1, torch::kFloat).view({1, 1, 4, 4});
  const at::Tensor y = net->forward(x);
  EXPECT_TRUE(torch::allclose(y, torch::log_softmax(torch::tensor({1.0, 3.0, 9.0, 11.0}, torch::kFloat).view({1, 4}), 1)));
  EXPECT_TRUE(torch::allclose(torch::max_pool2d(x, 2), torch::tensor({1.0, 3.0, 9.0, 11.0}, torch::kFloat).view({1, 1, 2, 2})));
  const auto target = torch::zeros({1}, torch::kLong);
  EXPECT_NEAR(torch::nll_loss(y, target, {}, at::Reduction::Sum).item<float>(), -y[0][0].item<float>(), 1e-6);
  torch::DeviceType kind;
  kind = torch::kCPU;
  EXPECT_EQ(x.to(kind).device(), torch::Device(kind));
  EXPECT_THROW(AT_ASSERT(x.size(0) == 2), naru::RuntimeError);
  EXPECT_THROW(AT_ASSERTM(x.size(0) == 2, "batch of ", x.size(0)), c10::RuntimeError);
}

TEST(TorchNames, OptionsSayWhatATensorIsLike) {
  const auto options = torch::TensorOptions().dtype(torch::kDouble).device(torch::kCPU).requires_grad(true);
  const auto t = torch::zeros({2}, options);
  EXPECT_TRUE(t.requires_grad() && t.dtype() == torch::kFloat64 && t.device().is_cpu());
  EXPECT_EQ(torch::ones({1}, torch::dtype(torch::kLong)).dtype(), torch::kInt64);
  namespace F = torch::nn::functional;
  const auto x = torch::randn({1, 1, 4, 4});
  EXPECT_EQ(F::max_pool2d(x, F::MaxPool2dFuncOptions(2).stride(1)).sizes(), (torch::IntArrayRef{1, 1, 3, 3}));
  EXPECT_TRUE(torch::equal(F::dropout(x, F::DropoutFuncOptions().p(0.5).training(false)), x));
  EXPECT_TRUE(torch::equal(x[{0, 0, torch::indexing::Slice(0, 2), torch::indexing::None}], x[0][0].slice(0, 0, 2).unsqueeze(1)));
  torch::optim::Adam adam({torch::ones({1}, torch::requires_grad())}, torch::optim::AdamOptions(1e-3).betas({0.5, 0.9}).weight_decay(0.1));
  EXPECT_EQ(adam.options.beta1, 0.5);
  torch::optim::StepLR schedule(adam, /*step_size=*/1, /*gamma=*/0.5);
  schedule.step();
  EXPECT_EQ(adam.lr(), 5e-4);
  EXPECT_THROW(TORCH_CHECK(1 == 2, "one is ", 1), naru::RuntimeError);
  EXPECT_THROW(TORCH_CHECK(1 == 2), naru::RuntimeError);
}

// --- files, parameter groups, named modules, workers

struct Doubled : torch::nn::Cloneable<Doubled> {
  Doubled() { reset(); }
  void reset() override { fc = register_module("fc", torch::nn::Linear(2, 2)); }
  torch::Tensor forward(const torch::Tensor& x) override { return fc->forward(x) * 2; }
  torch::nn::Linear fc{nullptr};
};

TEST(TorchPrograms, ModelsAndOptimizersAreSavedAndLoaded) {
  const std::string file = ::testing::TempDir() + "naru_torch_" + std::to_string(::getpid()) + ".pt";
  auto net = std::make_shared<Doubled>(), other = std::make_shared<Doubled>();
  torch::save(net, file);
  torch::load(other, file);
  EXPECT_TRUE(torch::equal(net->fc->weight, other->fc->weight));
  EXPECT_TRUE(torch::equal(net->clone()->parameters()[0], net->fc->weight));
  torch::optim::Adam first(net->parameters(), torch::optim::AdamOptions(0.25)), second(other->parameters());
  torch::save(first, file);
  torch::load(second, file);
  EXPECT_EQ(second.param_groups()[0].options().get_lr(), 0.25);
  torch::Tensor t;
  torch::save(torch::ones({3}), file);
  torch::load(t, file);
  EXPECT_EQ(t.numel(), 3);
  std::filesystem::remove(file);
}

TEST(TorchPrograms, TheRateOfAGroupIsSetThroughItsOptions) {
  torch::nn::Sequential net({{"first", torch::nn::Linear(2, 3)}, {"act", torch::nn::ReLU()}, {"last", torch::nn::Linear(3, 1)}});
  EXPECT_EQ(net->named_parameters()[2].first, "last.weight");
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<torch::Tensor>{net->parameters()[0]}, std::make_unique<torch::optim::SGDOptions>(0.5));
  groups.emplace_back(std::vector<torch::Tensor>{net->parameters()[2]});
  torch::optim::SGD optimizer(groups, torch::optim::SGDOptions(0.1).momentum(0.9));
  for (auto& group : optimizer.param_groups()) {
    auto& options = static_cast<torch::optim::SGDOptions&>(group.options());
    options.lr(options.lr() * 0.5);
  }
  EXPECT_EQ(optimizer.lr(0), 0.25);
  EXPECT_EQ(optimizer.lr(1), 0.05);
  EXPECT_EQ(optimizer.momentum(1), 0.9);
  torch::optim::SGDOptions copy = static_cast<torch::optim::SGDOptions&>(optimizer.param_groups()[0].options());
  copy.lr(7);
  EXPECT_EQ(optimizer.lr(0), 0.25);
}

struct SquareNumbers : torch::data::datasets::Dataset<SquareNumbers> {
  torch::data::Example<> get(size_t i) override {
    if (i == bad) throw std::runtime_error("no such square");
    return {torch::tensor(static_cast<int64_t>(i * i)), torch::tensor(static_cast<int64_t>(i))};
  }
  torch::optional<size_t> size() const override { return 10; }
  size_t bad = 99;
};

TEST(TorchPrograms, WorkersMakeTheSameBatchesInOrder) {
  const auto batches = [](size_t workers, size_t bad) {
    SquareNumbers squares;
    squares.bad = bad;
    auto loader = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
        std::move(squares).map(torch::data::transforms::Stack<>()), torch::data::DataLoaderOptions().batch_size(3).workers(workers));
    std::vector<int64_t> all;
    for (auto& batch : *loader)
      for (const int64_t v : batch.data.to_ints()) all.push_back(v);
    return all;
  };
  EXPECT_EQ(batches(3, 99), batches(0, 99));
  EXPECT_EQ(batches(2, 99).back(), 81);
  EXPECT_THROW(batches(2, 4), std::runtime_error);
}

}  // namespace
