// The job of `./run demo` in C++: trains Linear(784, 256), ReLU, Linear(256, 10) on handwritten digits and says how
// well it reads a fifth of them that it has not seen.
//
//   ./run python examples/export_digits.py digits.bin
//   ./run build examples && build/release/examples/cpp/digits digits.bin [--seed 0] [--steps 900] [--device cuda:1]
#include <naru/naru.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

using naru::Tensor;
namespace nn = naru::nn;
namespace data = naru::data;

namespace {

constexpr int64_t kBatch = 64;
constexpr double kLearningRate = 2e-3;

struct Settings {
  std::string file = "digits.bin";
  uint64_t seed = 0;
  int64_t steps = 900;
  naru::Device device = naru::best_device();
};

// The file of examples/export_digits.py, which describes its format: (count, 784) float32 pixels and (count) int64
// labels.
data::Sample read_digits(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw naru::RuntimeError("cannot open {}. Make it first: ./run python examples/export_digits.py {}", path, path);
  char magic[8] = {};
  int32_t shape[3] = {};
  file.read(magic, sizeof magic);
  file.read(reinterpret_cast<char*>(shape), sizeof shape);
  if (!file || std::memcmp(magic, "NARUDIG1", 8) != 0 || shape[0] < 2 * kBatch || shape[0] > 1000000 || shape[1] != 28 || shape[2] != 28)
    throw naru::RuntimeError("{} is not a file of digits of 28 x 28 pixels. Make it anew: ./run python examples/export_digits.py {}", path,
                             path);
  const int64_t count = shape[0], pixels = int64_t{shape[1]} * shape[2];
  std::vector<uint8_t> labels(static_cast<size_t>(count));
  std::vector<float> images(static_cast<size_t>(count * pixels));
  file.read(reinterpret_cast<char*>(labels.data()), count);
  file.read(reinterpret_cast<char*>(images.data()), static_cast<std::streamsize>(images.size() * sizeof(float)));
  if (!file) throw naru::RuntimeError("{} ends too early. Make it anew: ./run python examples/export_digits.py {}", path, path);
  return {naru::from_data(images.data(), {count, pixels}, naru::DType::F32),
          naru::from_data(labels.data(), {count}, naru::DType::U8).to(naru::DType::I64)};
}

Settings parse(int argc, char** argv) {
  Settings s;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--", 0) != 0) {
      s.file = word;
      continue;
    }
    if (i + 1 == argc) throw naru::ValueError("{} wants a value behind it", word);
    const std::string value = argv[++i];
    if (word == "--seed")
      s.seed = std::stoull(value);
    else if (word == "--steps")
      s.steps = std::stoll(value);
    else if (word == "--device")
      s.device = naru::Device(value);
    else
      throw naru::ValueError("unknown option {}; there are --seed, --steps and --device", word);
  }
  if (s.steps < 1) throw naru::ValueError("--steps must be at least 1, got {}", s.steps);
  return s;
}

int run(const Settings& s) {
  const data::Sample digits = read_digits(s.file);
  naru::manual_seed(s.seed);
  const int64_t count = digits[0].size(0), fifth = count / 5;
  const auto all = std::make_shared<data::TensorDataset>(digits[0].to(s.device), digits[1].to(s.device));
  const auto parts = data::random_split(all, {fifth, count - fifth});
  const data::DataLoader loader(parts[1], {.batch_size = kBatch, .shuffle = true, .drop_last = true});

  nn::Sequential model{nn::Linear(784, 256), nn::ReLU(), nn::Linear(256, 10)};
  model.to(s.device);
  nn::CrossEntropyLoss loss_of;
  naru::optim::Adam optimizer(model.parameters(), kLearningRate);
  std::printf("%s\ntraining on %s (%s)\n", model.str().c_str(), s.device.str().c_str(), naru::device_name(s.device).c_str());

  naru::synchronize(s.device);
  const auto start = std::chrono::steady_clock::now();
  Tensor loss;
  for (int64_t step = 0; step < s.steps;) {
    for (const data::Sample& batch : loader) {
      loss = loss_of(model(batch[0]), batch[1]);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      if (++step % 100 == 0) std::printf("  step %5lld   loss %.4f\n", static_cast<long long>(step), loss.item<double>());
      if (step == s.steps) break;
    }
  }
  naru::synchronize(s.device);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const naru::NoGrad no_grad;
  model.eval();
  const data::Sample held_out = parts[0]->all();
  const Tensor answers = model(held_out[0]).argmax(1);
  const double accuracy = naru::mean((answers == held_out[1]).to(naru::DType::F32)).item<double>();
  std::printf("loss %.4f at last\n", loss.item<double>());
  std::printf("held-out accuracy %.1f %% on %s, %lld steps, %.0f us a step\n", accuracy * 100, s.device.str().c_str(),
              static_cast<long long>(s.steps), seconds / static_cast<double>(s.steps) * 1e6);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try { return run(parse(argc, argv)); } catch (const std::exception& e) {
  std::fprintf(stderr, "digits: %s\n", e.what());
  return 1;
}
