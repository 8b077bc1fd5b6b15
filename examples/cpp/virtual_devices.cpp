// Tests code for several devices on a machine without any: a small memory that runs out, and a device that is lost.
#include <naru/naru.h>

#include <cstdio>

using naru::Tensor;

// Works through the rows in parts that fit: halves the part when memory runs out.
double sum_of_squares(int64_t rows, naru::Device device) {
  double total = 0;
  for (int64_t at = 0, part = rows; at < rows;) {
    try {
      const Tensor x = naru::ones({std::min(part, rows - at), 1024}, device);
      total += (x * x).sum().item<double>();
      at += x.size(0);
    } catch (const naru::OutOfMemoryError&) {
      part /= 2;
      std::printf("out of memory: now %lld rows at a time\n", static_cast<long long>(part));
    }
  }
  return total;
}

int main() {
  {
    const naru::VirtualDevices two(naru::DeviceType::Cuda, naru::parse_virtual_options("memory=16MiB", 2));
    std::printf("sum on cuda:1: %.0f\n", sum_of_squares(8192, naru::Device("cuda:1")));
    try {
      naru::add(naru::ones({2}, naru::Device("cuda:0")), naru::ones({2}, naru::Device("cuda:1")));
    } catch (const naru::DeviceMismatchError& error) {
      std::printf("as on hardware: %.60s...\n", error.what());
    }
  }
  const naru::VirtualDevices fragile(naru::DeviceType::Cuda, naru::parse_virtual_options("lose_after=20"));
  try {
    Tensor x = naru::ones({4}, naru::Device("cuda:0"));
    for (int i = 0; i < 100; ++i) x = (x + 1).sum({0}, true) + naru::zeros({4}, naru::Device("cuda:0"));
    naru::synchronize(naru::Device("cuda:0"));
    std::puts("the device lived on");
    return 1;
  } catch (const naru::DeviceLostError&) {
    std::puts("the device was lost, the program was not");
  }
}
