// Line 17: the OpenCL device. `opencl naru` measures naru's xpu:0; `opencl hand`, the same work through OpenCL itself, with kernels written by hand.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <vector>

#include "backends/opencl/api.h"
#include "naru/naru.h"
#include "runtime/queue/queue.h"

namespace {

constexpr size_t kSmall = 1000, kBig = 1 << 24, kMatrix = 1024;
constexpr int kQueued = 2000;

// Median seconds of f, which waits for the device itself.
template <class F>
void report(const char* work, int of, F f) {
  using clock = std::chrono::steady_clock;
  std::vector<double> times;
  f();
  for (int i = 0; i < 15; ++i) {
    const auto start = clock::now();
    f();
    times.push_back(std::chrono::duration<double>(clock::now() - start).count() / of);
  }
  std::sort(times.begin(), times.end());
  std::printf("{\"work\": \"%s\", \"seconds\": %.4g}\n", work, times[times.size() / 2]);
}

constexpr const char* kNames[] = {"x += y, n = 1000, OpenCL: queued", "x += y, n = 1000, OpenCL: and waited for",
                                  "9 operators in a chain, 16 M, OpenCL", "x + y, 16 M, OpenCL", "matmul fp32, OpenCL 1024"};

void naru_side() {
  using naru::Tensor;
  const naru::Device device("xpu:0");
  const auto wait = [&] { naru::synchronize(device); };
  Tensor x = naru::ones({kSmall}, device), y = naru::ones({kSmall}, device);
  const bool fused = naru::runtime::set_fusion(false);
  report(kNames[0], kQueued, [&] {
    for (int i = 0; i < kQueued; ++i) x.add_(y);
    wait();
  });
  report(kNames[1], 1, [&] { x.add_(y), wait(); });
  naru::runtime::set_fusion(fused);
  const Tensor a = naru::rand({kBig}, device), b = naru::rand({kBig}, device);
  report(kNames[2], 1, [&] {
    const Tensor c = ((((a * 0.5 + 1.0) * a - 2.0) * a + 0.25) * b - a) * b;
    wait();
  });
  report(kNames[3], 1, [&] {
    const Tensor c = a + b;
    wait();
  });
  const Tensor p = naru::rand({kMatrix, kMatrix}, device), q = naru::rand({kMatrix, kMatrix}, device);
  report(kNames[4], 1, [&] {
    const Tensor c = naru::matmul(p, q);
    wait();
  });
}

constexpr const char* kSource = R"c(
#pragma OPENCL FP_CONTRACT OFF
kernel void add(global const float* a, global const float* b, global float* c) { size_t i = get_global_id(0); c[i] = a[i] + b[i]; }
kernel void chain(global const float* a, global const float* b, global float* c) {
  size_t i = get_global_id(0);
  float x = a[i], y = b[i];
  c[i] = ((((x * 0.5f + 1.0f) * x - 2.0f) * x + 0.25f) * y - x) * y;
}
kernel void product(global const float* a, global const float* b, global float* c) {
  const int n = 1024, j = get_global_id(0) * 16, i = get_global_id(1) * 8;
  float16 s[8];
  for (int r = 0; r < 8; ++r) s[r] = 0;
  for (int k = 0; k < n; ++k) {
    float16 v = vload16(0, b + k * n + j);
    for (int r = 0; r < 8; ++r) s[r] = fma((float16)a[(i + r) * n + k], v, s[r]);
  }
  for (int r = 0; r < 8; ++r) vstore16(s[r], 0, c + (i + r) * n + j);
}
)c";

void hand_side() {
  using namespace naru::backends::opencl;
  const Api& cl = api();
  cl_platform_id platform = nullptr;
  cl_device_id device = nullptr;
  check(cl.clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
  check(cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "clGetDeviceIDs");
  cl_int status = 0;
  const cl_context context = cl.clCreateContext(nullptr, 1, &device, nullptr, nullptr, &status);
  check(status, "clCreateContext");
  const cl_command_queue queue = cl.clCreateCommandQueue(context, device, 0, &status);
  const char* source = kSource;
  const cl_program program = cl.clCreateProgramWithSource(context, 1, &source, nullptr, &status);
  check(cl.clBuildProgram(program, 1, &device, "", nullptr, nullptr), "clBuildProgram");
  cl_mem memory[3];
  const float one = 1;
  for (cl_mem& m : memory) {
    m = cl.clCreateBuffer(context, CL_MEM_READ_WRITE, kBig * 4, nullptr, &status);
    check(cl.clEnqueueFillBuffer(queue, m, &one, 4, 0, kBig * 4, 0, nullptr, nullptr), "clEnqueueFillBuffer");
  }
  const auto kernel = [&](const char* name, int out) {
    const cl_kernel k = cl.clCreateKernel(program, name, &status);
    check(status, "clCreateKernel");
    for (cl_uint i = 0; i < 3; ++i)
      check(cl.clSetKernelArg(k, i, sizeof(cl_mem), &memory[i == 2 ? out : static_cast<int>(i)]), "clSetKernelArg");
    return k;
  };
  const auto start = [&](cl_kernel k, cl_uint dimensions, const size_t* items, const size_t* group) {
    check(cl.clEnqueueNDRangeKernel(queue, k, dimensions, nullptr, items, group, 0, nullptr, nullptr), "clEnqueueNDRangeKernel");
  };
  const size_t small = kSmall, big = kBig, group = 1024, half[2] = {kMatrix / 16, kMatrix / 8}, square[2] = {4, 4};
  const cl_kernel in_place = kernel("add", 0), add = kernel("add", 2), chain = kernel("chain", 2), product = kernel("product", 2);
  report(kNames[0], kQueued, [&] {
    for (int i = 0; i < kQueued; ++i) start(in_place, 1, &small, &small);
    cl.clFinish(queue);
  });
  report(kNames[1], 1, [&] { start(in_place, 1, &small, &small), cl.clFinish(queue); });
  report(kNames[2], 1, [&] { start(chain, 1, &big, &group), cl.clFinish(queue); });
  report(kNames[3], 1, [&] { start(add, 1, &big, &group), cl.clFinish(queue); });
  report(kNames[4], 1, [&] { start(product, 2, half, square), cl.clFinish(queue); });
}

}  // namespace

int main(int argc, char** argv) {
  const bool hand = argc > 1 && std::strcmp(argv[1], "hand") == 0;
  if (!hand && naru::device_count(naru::DeviceType::Xpu) == 0) {
    std::fprintf(stderr, "no xpu device: %s\n", naru::why_unavailable(naru::DeviceType::Xpu).c_str());
    return 1;
  }
  hand ? hand_side() : naru_side();
  return 0;
}
