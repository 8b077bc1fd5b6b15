// One model in several processes, each with a part of every batch: all end with the same parameters. torchrun starts them:
//
//   naru torchrun --standalone --nproc_per_node=2 --no-python ./distributed
#include <naru/distributed/gradient_reducer.h>
#include <naru/naru.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

using naru::Tensor;
namespace nn = naru::nn;

struct Net : nn::Module {
  std::shared_ptr<nn::Linear> first = register_module("first", nn::Linear(16, 32));
  std::shared_ptr<nn::Linear> last = register_module("last", nn::Linear(32, 1));
  Tensor forward(const Tensor& x) override { return (*last)((*first)(x).relu()); }
};

int main() {
  const auto told = [](const char* name, const char* otherwise) {
    const char* const value = std::getenv(name);
    return std::string(value ? value : otherwise);
  };
  // Without torchrun: one process.
  const int rank = std::stoi(told("RANK", "0")), size = std::stoi(told("WORLD_SIZE", "1"));
  const auto port = static_cast<uint16_t>(std::stoi(told("MASTER_PORT", "0")));
  auto store = std::make_shared<naru::distributed::TCPStore>(told("MASTER_ADDR", "127.0.0.1"), port, rank == 0);
  naru::distributed::ProcessGroup group(store, rank, size);

  naru::manual_seed(static_cast<uint64_t>(rank));  // each rank has its own data, and at first its own parameters
  Net model;
  naru::distributed::GradientReducer reducer(model.parameters(), group);
  reducer.broadcast();
  naru::optim::SGD optimizer(model.parameters(), 0.05);
  const Tensor x = naru::randn({32, 16}), y = x.sum({1}, true);
  for (int step = 0; step < 50; ++step) {
    optimizer.zero_grad();
    const Tensor loss = nn::functional::mse_loss(model.forward(x), y);
    reducer.prepare();
    loss.backward();  // gradients are the means over all processes
    optimizer.step();
  }

  const Tensor mine = model.parameters()[0].detach(), first = mine.clone();
  group.broadcast(first, 0);
  const Tensor same = naru::tensor(naru::equal(mine, first) ? 1.0F : 0.0F);
  group.all_reduce(same, naru::distributed::ReduceOp::Min);
  const Tensor loss = nn::functional::mse_loss(model.forward(x), y).detach();
  group.all_reduce(loss, naru::distributed::ReduceOp::Avg);
  if (rank == 0)
    std::printf("%d process(es); the same parameters in all: %s\nloss %.4f\n", size, same.item<float>() == 1 ? "yes" : "no",
                loss.item<double>());
}
