// Two streams of a device work side by side. Nothing has to be waited for by hand: whoever uses a tensor waits for what is still to be written there.
#include <naru/naru.h>

#include <cstdio>

using naru::Tensor;

int main() {
  // A machine without a GPU gets one made of host memory and threads.
  if (!naru::is_available(naru::DeviceType::Cuda)) naru::set_virtual_devices("cuda:1");
  const naru::Device device("cuda:0");

  const naru::Stream first(device), second(device);
  Tensor a, b;
  {
    const naru::StreamGuard guard(first);
    a = naru::ones({512, 512}, device).matmul(naru::full({512, 512}, 2.0, device));
  }
  naru::Event halfway = first.record_event();
  {
    const naru::StreamGuard guard(second);
    b = naru::arange(0, 512, 1, device) + 1;
    b = a * b;  // the product comes from the other stream
  }
  halfway.synchronize();
  const naru::CountSyncs syncs;
  std::printf("stream %d made a, stream %d b: the last element is %.0f\n", first.number(), second.number(), b[{-1, -1}].item<double>());
  std::printf("the host waited %zu time(s): %s\n", syncs.list().size(), syncs.list().at(0).what.c_str());
}
