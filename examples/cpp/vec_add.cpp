// A kernel of one's own, on the best device of the machine.
#include <naru/naru.h>

#include <cstdio>

constexpr const char* kSource = R"(
kernel void vec_add(const float* a, const float* b, float* out) {
  int i = global_id(0);
  out[i] = a[i] + b[i];
})";

int main() {
  const naru::Device device = naru::best_device().device;
  const naru::Options options(naru::DType::F32, device);
  const naru::Kernel vec_add(kSource, "vec_add");

  const int64_t n = 1'000'000;
  const naru::Tensor a = naru::arange(0, n, 1, options), b = naru::ones({n}, options);
  naru::Tensor out = naru::empty({n}, options);
  vec_add({a, b, out}, {.grid = {n}});
  std::printf("on %s: the last of %lld sums is %.0f\n", device.str().c_str(), static_cast<long long>(n), out[{n - 1}].item<double>());
}
